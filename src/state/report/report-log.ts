/**
 * report-log - the reports about a domain that came in a month: each counts once, and so many a day
 *
 * Key: `report-log:<domain>:<yyyymm>`, a hash: `<id>` -> `[kind letter, received ms, reporter, organization, report id,
 * begin ms, end ms, rows, messages, 1 if it is not authenticated]`, and `#<dd>` -> `[counted, kept apart]` of a day.
 * The id is a hash of reporter and report id, and of a report that is not authenticated another one: a forged report
 * must not hide a genuine one. The month is that of the reception. A report that ended over 25 days ago is refused, so
 * a repeated one is found in the current or the previous month.
 *
 * Spec reports.once, reports.bounds
 */

import type { FactOf, Facts, Op } from '../../../cluster/behaviour.ts'
import { computeMonth, DAY_MS, dayName, monthName, monthStartMs } from '../calendar.ts'
import { reportLogKey } from '../keys.ts'
import type { ReportKind } from './report-days.ts'

/** Months after its own for which a log is kept. */
const KEPT_MONTHS = 2

/** A received report. */
export interface LoggedReport {
  /** Hash of its reporter and report id. */
  readonly id: string
  readonly kind: ReportKind
  readonly receivedAtMs: number
  /** The domain that the mail is authenticated for, or claims to come from. */
  readonly reporter: string
  readonly organization: string
  readonly reportId: string
  readonly beginMs: number
  readonly endMs: number
  readonly rows: number
  readonly messages: number
  readonly authenticated: boolean
}

type Row = [string, number, string, string, string, number, number, number, number, apart?: 1]

/** A domain and the hash of a report's id. */
export interface LogPlace {
  readonly shard: number
  readonly domainId: string
  readonly id: string
}

/** Reports of a day so far. */
export interface DayCount {
  readonly counted: number
  readonly apart: number
}

/** The reads that show whether a report came before, and how many came today. */
export function reportLogFacts({ shard, domainId, id }: LogPlace, nowMs: number): FactOf<'fields'>[] {
  const [current, previous] = monthsOf(nowMs)
  return [
    { read: 'fields', key: reportLogKey(shard, domainId, current), fields: [id, dayField(nowMs)] },
    { read: 'fields', key: reportLogKey(shard, domainId, previous), fields: [id] },
  ]
}

/** Whether the report came before. */
export function isLogged(facts: Facts, { shard, domainId, id }: LogPlace, nowMs: number): boolean {
  return monthsOf(nowMs).some((month) => facts.field(reportLogKey(shard, domainId, month), id) !== null)
}

/** The reports of today. */
export function reportsToday(facts: Facts, { shard, domainId }: LogPlace, nowMs: number): DayCount {
  const text = facts.field(reportLogKey(shard, domainId, monthName(nowMs)), dayField(nowMs))
  const [counted, apart] = text === null ? [0, 0] : (JSON.parse(text) as [number, number])
  return { counted, apart }
}

/** The writes that log a report. */
export function reportLogOps(place: LogPlace, report: Omit<LoggedReport, 'id'>, before: DayCount): Op[] {
  const { receivedAtMs, authenticated } = report
  const key = reportLogKey(place.shard, place.domainId, monthName(receivedAtMs))
  const counted = before.counted + (authenticated ? 1 : 0)
  const apart = before.apart + (authenticated ? 0 : 1)
  const endMs = monthStartMs(computeMonth(receivedAtMs) + KEPT_MONTHS + 1) + DAY_MS
  return [
    {
      key,
      write: 'HSET',
      args: [place.id, packLogged(report), dayField(receivedAtMs), JSON.stringify([counted, apart])],
    },
    { key, write: 'PEXPIREAT', args: [String(endMs)] },
  ]
}

/** The months whose logs exist, by name, the latest first. */
export function reportLogMonths(nowMs: number): string[] {
  const current = computeMonth(nowMs)
  return Array.from({ length: KEPT_MONTHS + 1 }, (_, back) => monthName(monthStartMs(current - back)))
}

/** The reports of a log, the latest first. */
export function unpackReportLog(fields: ReadonlyMap<string, string>): LoggedReport[] {
  const rows = [...fields].filter(([field]) => !field.startsWith('#'))
  const reports = rows.map(([id, text]) => ({ id, ...unpackLogged(text) }))
  return reports.sort((one, other) => other.receivedAtMs - one.receivedAtMs || (one.id < other.id ? -1 : 1))
}

function packLogged(report: Omit<LoggedReport, 'id'>): string {
  const { kind, receivedAtMs, reporter, organization, reportId, beginMs, endMs, rows, messages } = report
  const row: Row = [kind[0] as string, receivedAtMs, reporter, organization, reportId, beginMs, endMs, rows, messages]
  return JSON.stringify(report.authenticated ? row : [...row, 1])
}

function unpackLogged(text: string): Omit<LoggedReport, 'id'> {
  const [letter, receivedAtMs, reporter, organization, reportId, beginMs, endMs, rows, messages, apart] = JSON.parse(
    text,
  ) as Row
  const kind = letter === 'd' ? 'dmarc' : 'tls'
  const authenticated = apart !== 1
  return { kind, receivedAtMs, reporter, organization, reportId, beginMs, endMs, rows, messages, authenticated }
}

function dayField(nowMs: number): string {
  return `#${dayName(nowMs).slice(6)}`
}

function monthsOf(nowMs: number): [current: string, previous: string] {
  return [monthName(nowMs), monthName(monthStartMs(computeMonth(nowMs) - 1))]
}
