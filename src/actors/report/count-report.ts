/**
 * count-report - an aggregate report about a domain: counted once, kept apart, or not at all
 *
 * Its log entry and its rows are written by one commit, so a report that is received twice, also because a process
 * ended before its 250, is counted once.
 *
 * Keys: `reports:<domain>:<yyyymm>`, `report-log:<domain>:<yyyymm>`
 *
 * Spec reports.once, reports.bounds, reports.apart
 */

import type { CommandType } from '../../../cluster/behaviour.ts'
import { REPORT_AGE_DAYS_MAX, REPORTS_APART_PER_DAY_MAX, REPORTS_PER_DAY_MAX } from '../../../schemas/limits.ts'
import { DAY_MS } from '../../state/calendar.ts'
import { type DomainState, domainRef } from '../../state/domain.ts'
import { type DayRows, reportDayFact, reportDayOps } from '../../state/report/report-days.ts'
import {
  type DayCount,
  isLogged,
  type LoggedReport,
  reportLogFacts,
  reportLogOps,
  reportsToday,
} from '../../state/report/report-log.ts'

export interface CountReportBody {
  readonly domainId: string
  /** Hash of the report's id. */
  readonly id: string
  readonly report: Omit<LoggedReport, 'id' | 'receivedAtMs'>
  /** Added up, so that it is no larger than the rows of a day. */
  readonly added: DayRows
}

/**
 * `apart`: it is listed, and in no sum. `over_limit`: the domain has had its reports of today. `out_of_period`: it is
 * about days long ago or in the future. `gone`: the domain was removed.
 */
export type CountReportReply = 'counted' | 'repeated' | 'apart' | 'over_limit' | 'out_of_period' | 'gone'

export const countReport: CommandType<CountReportBody, CountReportReply> = {
  name: 'count-report',
  entities: ({ domainId }) => [domainRef(domainId)],
  counters: () => [],
  facts({ domainId, id, report }, _states, { shard, nowMs }) {
    const day = { shard, domainId, atMs: dayOf(report) }
    return [...reportLogFacts({ shard, domainId, id }, nowMs), reportDayFact(report.kind, day)]
  },
  decide(body, states, facts, { shard, nowMs }) {
    const { domainId, id, report, added } = body
    const domain = states.get<DomainState | null>(domainRef(domainId))
    if (domain === null || domain.removedAtMs !== null) return { kind: 'done', reply: 'gone' }
    const place = { shard, domainId, id }
    const today = reportsToday(facts, place, nowMs)
    const dropped = isLogged(facts, place, nowMs) ? 'repeated' : whyDropped(report, today, nowMs)
    if (dropped !== null) return { kind: 'done', reply: dropped }
    const logged = reportLogOps(place, { ...report, receivedAtMs: nowMs }, today)
    if (!report.authenticated) return { kind: 'done', reply: 'apart', ops: logged }
    const day = { shard, domainId, atMs: dayOf(report) }
    const counted = reportDayOps(facts, day, { kind: report.kind, added })
    return { kind: 'done', reply: 'counted', ops: [...logged, ...counted] }
  },
}

/** Why a report that came for the first time is neither counted nor listed; null if it is. */
function whyDropped(
  report: CountReportBody['report'],
  { counted, apart }: DayCount,
  nowMs: number,
): CountReportReply | null {
  if (!isCurrent(report, nowMs)) return 'out_of_period'
  const isOver = report.authenticated ? counted >= REPORTS_PER_DAY_MAX : apart >= REPORTS_APART_PER_DAY_MAX
  return isOver ? 'over_limit' : null
}

/** An instant of the day that a report is about: the middle of its period, because some begin a little early. */
function dayOf({ beginMs, endMs }: Pick<LoggedReport, 'beginMs' | 'endMs'>): number {
  return Math.floor((beginMs + endMs) / 2)
}

function isCurrent(report: Pick<LoggedReport, 'beginMs' | 'endMs'>, nowMs: number): boolean {
  const atMs = dayOf(report)
  return (
    report.endMs >= nowMs - REPORT_AGE_DAYS_MAX * DAY_MS &&
    atMs > nowMs - 2 * REPORT_AGE_DAYS_MAX * DAY_MS &&
    atMs <= nowMs + DAY_MS
  )
}
