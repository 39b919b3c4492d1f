/**
 * report-days - what reports say about a domain, by the day that they are about
 *
 * Keys: `reports:<domain>:<yyyymm>`, a hash: `d.<dd>` -> `[policy, row...]` of DMARC reports, `t.<dd>` -> `[0, row...]`
 * of TLS reports. A policy is `[p, sp, np, adkim, aspf, pct]` as the last report states it. A row is
 * `[count, name...]` (`fold.ts`). Names of a DMARC row: source address, results of DKIM and SPF as the receiver
 * evaluated them (two letters, `p` or `f`), disposition (letter), override, domain of From if it is another, result,
 * domain and selector of a signature, result and domain of SPF. Names of a TLS row: reporter, type of policy, result,
 * receiving server, sending address, reason. A hash goes when the last of its days is past its age.
 *
 * Spec reports.rows, retention.reports
 */

import type { FactOf, Facts, Op } from '../../../cluster/behaviour.ts'
import type { DmarcRecord, PublishedPolicy, TlsRecord } from '../../mail/aggregate/report.ts'
import { STATS_MONTHS } from '../age.ts'
import { computeMonth, DAY_MS, dayName, monthName, monthStartMs } from '../calendar.ts'
import { reportsKey } from '../keys.ts'
import { type FoldedRow, makeFold, type RowKind } from './fold.ts'

export type ReportKind = 'dmarc' | 'tls'

/** A domain's day. */
export interface ReportDay {
  readonly shard: number
  readonly domainId: string
  /** An instant of the day. */
  readonly atMs: number
}

export type PackedPolicy = readonly string[] | 0

/** The rows of a day. */
export interface DayRows {
  readonly policy: PackedPolicy
  readonly rows: readonly FoldedRow[]
}

const NO_ROWS: DayRows = { policy: 0, rows: [] }
const LETTERS: Readonly<Record<ReportKind, string>> = { dmarc: 'd', tls: 't' }
const PASS = 'p'
const FAIL = 'f'

/** A row of DMARC belongs to the aligned mail of a domain, or to all other mail under its name. */
export const DMARC_ROWS: RowKind = {
  classOf: ([, results = '']) => (results.includes(PASS) ? 'aligned' : 'failed'),
  restOf: ([, results = '', disposition = '']) => ['', results, disposition],
}

/** A row of TLS counts sessions that succeeded, or that failed. */
export const TLS_ROWS: RowKind = {
  classOf: ([, , result = '']) => (result === '' ? 'succeeded' : 'failed'),
  restOf: ([, , result = '']) => (result === '' ? [] : ['', '', 'other']),
}

/** How rows of a kind of report are added up. */
export function rowsOfKind(kind: ReportKind): RowKind {
  return kind === 'dmarc' ? DMARC_ROWS : TLS_ROWS
}

/** The names of a record of a DMARC report about a domain. */
export function dmarcNames(record: DmarcRecord, domain: string): string[] {
  const { source, dkim, spf, disposition, override, headerFrom } = record
  return [
    source,
    `${dkim ? PASS : FAIL}${spf ? PASS : FAIL}`,
    disposition[0] as string,
    override,
    headerFrom === domain ? '' : headerFrom,
    record.dkimResult,
    record.dkimDomain,
    record.dkimSelector,
    record.spfResult,
    record.spfDomain,
  ]
}

/** The names of a record of a TLS report by a reporter. */
export function tlsNames(record: TlsRecord, reporter: string): string[] {
  const { policyType, result, receivingMx, sendingIp, reason } = record
  return [reporter, policyType, result, receivingMx, sendingIp, reason]
}

/** Packs a policy. */
export function packPolicy({ p, sp, np, adkim, aspf, pct }: PublishedPolicy): string[] {
  return [p, sp, np, adkim, aspf, pct]
}

/** The field of a day. */
export function reportField(kind: ReportKind, atMs: number): string {
  return `${LETTERS[kind]}.${dayName(atMs).slice(6)}`
}

/** The read of a day. */
export function reportDayFact(kind: ReportKind, { shard, domainId, atMs }: ReportDay): FactOf<'fields'> {
  return { read: 'fields', key: reportsKey(shard, domainId, monthName(atMs)), fields: [reportField(kind, atMs)] }
}

/** Reads a field; a missing one is null. */
export function unpackReportDay(text: string | null): DayRows {
  if (text === null) return NO_ROWS
  const [policy, ...rows] = JSON.parse(text) as [PackedPolicy, ...FoldedRow[]]
  return { policy, rows }
}

/** The writes that add a report to its day. Takes the result of `reportDayFact`. */
export function reportDayOps(
  facts: Facts,
  day: ReportDay,
  { kind, added }: { kind: ReportKind; added: DayRows },
): Op[] {
  const { key } = reportDayFact(kind, day)
  const field = reportField(kind, day.atMs)
  const before = unpackReportDay(facts.field(key, field))
  const fold = makeFold(rowsOfKind(kind), before.rows)
  for (const [count, ...names] of added.rows) fold.add(count, names)
  const policy = added.policy === 0 ? before.policy : added.policy
  return [
    { key, write: 'HSET', args: [field, JSON.stringify([policy, ...fold.rows()])] },
    { key, write: 'PEXPIREAT', args: [String(endOfReportsMs(day.atMs))] },
  ]
}

/** When the reports of a month are removed. */
function endOfReportsMs(atMs: number): number {
  return monthStartMs(computeMonth(atMs) + STATS_MONTHS + 1) + DAY_MS
}

/** Every month that can have rows now, by name. */
export function reportMonths(nowMs: number): string[] {
  const current = computeMonth(nowMs + DAY_MS)
  return Array.from({ length: STATS_MONTHS + 3 }, (_, back) => monthName(monthStartMs(current - back)))
}
