/**
 * received-reports - the reports about a domain that came, the latest first
 *
 * Keys: `report-log:<domain>:<yyyymm>`
 *
 * Spec reports.received
 */

import { homeShard } from '../../../cluster/id.ts'
import type { ReceivedReport, ReceivedReports } from '../../../schemas/report/report.ts'
import { reportLogKey } from '../../state/keys.ts'
import { type LoggedReport, reportLogMonths, unpackReportLog } from '../../state/report/report-log.ts'
import type { Unseen } from '../entity.ts'
import { formatInstant } from '../instant.ts'
import type { AccountKey, Reader } from '../key.ts'
import { readOfDomain } from './of-domain.ts'

interface ReceivedInput {
  readonly domainId: string
  readonly query: { readonly limit: number; readonly after: string | null }
  readonly nowMs: number
}

/** A page of the reports; null if the account has no such domain. */
export async function listReceivedReports(
  read: Reader,
  owner: AccountKey,
  { domainId, query, nowMs }: ReceivedInput,
): Promise<ReceivedReports | null | Unseen> {
  const shard = homeShard(owner.accountId)
  const id = domainId.toLowerCase()
  const facts = reportLogMonths(nowMs).map((month) => ({ read: 'hash', key: reportLogKey(shard, id, month) }) as const)
  const seen = await readOfDomain(read, owner, id, facts)
  if (seen === null || typeof seen === 'string') return seen
  const all = seen.values.flatMap((log) => unpackReportLog(log as ReadonlyMap<string, string>))
  const rest = query.after === null ? all : all.filter((one) => isAfter(one, query.after as string))
  const page = rest.slice(0, query.limit)
  const last = page.at(-1)
  return { reports: page.map(formatReport), next: rest.length > page.length && last ? placeOf(last) : null }
}

/** Reports are in the order of their reception, and then of their ids. */
function placeOf({ receivedAtMs, id }: LoggedReport): string {
  return `${receivedAtMs}.${id}`
}

function isAfter({ receivedAtMs, id }: LoggedReport, place: string): boolean {
  const [ms = '', last = ''] = place.split('.')
  return receivedAtMs < Number(ms) || (receivedAtMs === Number(ms) && id > last)
}

function formatReport({ receivedAtMs, beginMs, endMs, id: _, ...report }: LoggedReport): ReceivedReport {
  return { ...report, receivedAt: formatInstant(receivedAtMs), from: formatInstant(beginMs), to: formatInstant(endMs) }
}
