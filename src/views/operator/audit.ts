/**
 * audit - the log of operators' actions, newest first, of all shards
 *
 * Keys: `audit:<yyyymm>` of every shard, month by month until the page is full
 *
 * Spec operator.audit, list.page
 */

import { msOf, SHARDS } from '../../../cluster/id.ts'
import { AUDIT_MONTHS } from '../../../schemas/limits.ts'
import type { AuditEntry, AuditList } from '../../../schemas/operator/audit.ts'
import { type AuditRecord, unpackAudit } from '../../state/audit.ts'
import { computeMonth, monthName, monthStartMs } from '../../state/calendar.ts'
import { auditKey } from '../../state/keys.ts'
import { formatInstant } from '../instant.ts'
import type { Reader } from '../key.ts'
import { type Page, readNewest } from '../newest.ts'
import { readOperatorNames } from './operator-keys.ts'

const ALL_SHARDS = Array.from({ length: SHARDS }, (_, shard) => shard)

/** A page of the log. `after` is the last entry read. Null when the store did not answer. */
export async function readAudit(read: Reader, { limit, after }: Page, nowMs: number): Promise<AuditList | null> {
  const found: string[] = []
  // Clocks may go back: entries of the month that comes are looked for too.
  const latest = after === null ? computeMonth(nowMs) + 1 : Math.min(computeMonth(msOf(after)), computeMonth(nowMs) + 1)
  for (let month = latest; month >= computeMonth(nowMs) - AUDIT_MONTHS && found.length <= limit; month -= 1) {
    const name = monthName(monthStartMs(month))
    const keys = ALL_SHARDS.map((shard) => ({ shard, key: auditKey(shard, name) }))
    // One entry more than the page shows whether there is a next page.
    const members = await readNewest(read, keys, { limit: limit + 1 - found.length, after })
    if (members === null) return null
    found.push(...members)
  }
  const records = found.slice(0, limit).map(unpackAudit)
  const names = await readOperatorNames(
    read,
    records.flatMap(({ actor }) => actor ?? []),
  )
  if (names === null) return null
  const entries = records.map((record) => formatAudit(record, names))
  return { entries, next: found.length > limit ? (entries.at(-1)?.auditId ?? null) : null }
}

function formatAudit(
  { auditId, actor, act, targets, note, before, after }: AuditRecord,
  names: ReadonlyMap<string, string>,
): AuditEntry {
  const actorName = actor === null ? null : (names.get(actor) ?? null)
  return { auditId, at: formatInstant(msOf(auditId)), actor, actorName, act, targets, note, before, after }
}
