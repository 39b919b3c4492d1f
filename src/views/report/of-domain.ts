/**
 * of-domain - reads of what is reported about a domain: its days, with the key and the domain in the same step
 *
 * Keys: `key:<sha256>`, `account:<id>`, `domain:<id>`, and those of the caller
 */

import { homeShard, shardOf } from '../../../cluster/id.ts'
import { REPORT_SPAN_DAYS_MAX } from '../../../schemas/limits.ts'
import { cutoffMs } from '../../state/age.ts'
import { DAY_MS } from '../../state/calendar.ts'
import type { DomainState } from '../../state/domain.ts'
import { type DayRows, type ReportKind, reportDayFact, unpackReportDay } from '../../state/report/report-days.ts'
import { entityFact, parseState, type Unseen } from '../entity.ts'
import { type AccountKey, keyFact, ownerOfRow, type Reader } from '../key.ts'

const DEFAULT_DAYS = 30
/** Days of a page of an export. */
const EXPORT_DAYS = 7

/** The period of a query; null: the default. */
export interface ReportSpanQuery {
  readonly fromMs: number | null
  readonly toMs: number | null
}

/** Why a query is refused: the parameter, and a sentence. */
export interface BadReportQuery {
  readonly path: 'from' | 'to' | 'source'
  readonly message: string
}

/** A day with its rows. */
export interface ReportedDay extends DayRows {
  readonly atMs: number
}

/** A domain of the key's account, and its days, the latest first; null if the account has no such domain. */
export async function readReportedDays(
  read: Reader,
  owner: AccountKey,
  query: ReportSpanQuery & { readonly domainId: string; readonly kind: ReportKind; readonly nowMs: number },
): Promise<{ readonly domain: DomainState; readonly days: readonly ReportedDay[] } | null | BadReportQuery | Unseen> {
  const span = spanOf(query, query.nowMs)
  if ('path' in span) return span
  const shard = homeShard(owner.accountId)
  const domainId = query.domainId.toLowerCase()
  const facts = span.days.map((atMs) => reportDayFact(query.kind, { shard, domainId, atMs }))
  const seen = await readOfDomain(read, owner, domainId, facts)
  if (seen === null || typeof seen === 'string') return seen
  const days = span.days.map((atMs, at) => ({
    atMs,
    ...unpackReportDay((seen.values[at] as (string | null)[])[0] ?? null),
  }))
  return { domain: seen.domain, days }
}

/** A domain of the key's account, and the values of facts about it; null if the account has no such domain. */
export async function readOfDomain(
  read: Reader,
  owner: AccountKey,
  domainId: string,
  facts: Parameters<Reader>[1],
): Promise<{ readonly domain: DomainState; readonly values: readonly unknown[] } | null | Unseen> {
  const { accountId } = owner
  const shard = homeShard(accountId)
  // An id of another shard belongs to another account, and its key name would not be valid on this shard.
  const own = shardOf(domainId) === shard ? [entityFact(shard, { kind: 'domain', id: domainId }), ...facts] : []
  const seen = await read(shard, [keyFact(shard, owner.hash), ...own])
  if (seen === null) return 'unavailable'
  const [key, state, ...values] = seen as [
    Parameters<typeof ownerOfRow>[1],
    Parameters<typeof parseState>[0],
    ...unknown[],
  ]
  if (ownerOfRow(owner.hash, key) === null) return 'unauthorized'
  const domain = parseState<DomainState>(state)
  if (domain === null || domain.accountId !== accountId || domain.removedAtMs !== null) return null
  return { domain, values }
}

/** A page of days: the latest of a period, and where the next page ends; null: it was the last one. */
export interface DaysPage {
  readonly domain: DomainState
  readonly days: readonly ReportedDay[]
  readonly next: string | null
}

/** The days of a period page by page, so that it may be as long as reports are kept. */
export async function readDaysPage(
  read: Reader,
  owner: AccountKey,
  query: ReportSpanQuery & {
    readonly domainId: string
    readonly kind: ReportKind
    readonly nowMs: number
    /** `next` of the page before. */
    readonly after: string | null
  },
): Promise<DaysPage | null | BadReportQuery | Unseen> {
  const { nowMs, after } = query
  const { fromMs, toMs } = periodOf(query, nowMs)
  if (fromMs >= toMs) return LATE_BEGIN
  // Days after the newest one have no rows.
  const endMs = after === null ? Math.max(Math.min(toMs, newestMs(nowMs)), fromMs + 1) : Number(after)
  const beginMs = Math.max(fromMs, (Math.ceil(endMs / DAY_MS) - EXPORT_DAYS) * DAY_MS)
  const seen = await readReportedDays(read, owner, { ...query, fromMs: beginMs, toMs: endMs })
  if (seen === null || typeof seen === 'string' || 'path' in seen) return seen
  const isLast = beginMs <= Math.max(fromMs, cutoffMs(nowMs, false))
  return { ...seen, next: isLast ? null : String(beginMs) }
}

const LATE_BEGIN: BadReportQuery = { path: 'to', message: 'Must be later than from' }

function periodOf({ fromMs, toMs }: ReportSpanQuery, nowMs: number): { fromMs: number; toMs: number } {
  // The period of a report may end a day ahead of this clock.
  const to = toMs ?? newestMs(nowMs)
  return { fromMs: fromMs ?? Math.min(to, nowMs) - DEFAULT_DAYS * DAY_MS, toMs: to }
}

function newestMs(nowMs: number): number {
  return (Math.floor(nowMs / DAY_MS) + 2) * DAY_MS
}

function spanOf(query: ReportSpanQuery, nowMs: number): { readonly days: readonly number[] } | BadReportQuery {
  const { fromMs, toMs } = periodOf(query, nowMs)
  if (fromMs >= toMs) return LATE_BEGIN
  const begin = Math.max(Math.floor(fromMs / DAY_MS), Math.ceil(cutoffMs(nowMs, false) / DAY_MS))
  const end = Math.min(Math.ceil(toMs / DAY_MS), newestMs(nowMs) / DAY_MS)
  if (end - begin > REPORT_SPAN_DAYS_MAX)
    return { path: 'from', message: `Must be at most ${REPORT_SPAN_DAYS_MAX} days before to` }
  return { days: Array.from({ length: Math.max(0, end - begin) }, (_, back) => (end - 1 - back) * DAY_MS) }
}

/** A page of rows without those that are null. The place of a row stays its own while rows are added. */
export function pageOfRows<Row>(
  days: readonly { readonly atMs: number; readonly rows: readonly (Row | null)[] }[],
  { limit, after }: { readonly limit: number; readonly after: string | null },
): { readonly rows: readonly (readonly [atMs: number, row: Row])[]; readonly next: string | null } {
  const [afterDay, afterRow] = (after ?? '.').split('.').map(Number) as [number, number]
  const rows: (readonly [number, Row])[] = []
  let last: string | null = null
  for (const { atMs, rows: all } of days) {
    const day = atMs / DAY_MS
    if (after !== null && day > afterDay) continue
    for (const [place, row] of all.entries()) {
      if (row === null || (after !== null && day === afterDay && !(place > afterRow))) continue
      if (rows.length === limit) return { rows, next: last }
      rows.push([atMs, row])
      last = `${day}.${place}`
    }
  }
  return { rows, next: null }
}
