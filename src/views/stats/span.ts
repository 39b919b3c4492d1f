/** span - the period of statistics: whole hours or days, as long as they are kept */

import { GROUP_HOURS_DAYS, STATS_HOURS_DAYS_MAX } from '../../../schemas/limits.ts'
import type { StatsBy } from '../../../schemas/stats.ts'
import { cutoffMs } from '../../state/age.ts'
import { DAY_MS, HOUR_MS } from '../../state/calendar.ts'

/** Length of the default period in days, which ends now. */
const DEFAULT_DAYS = { hour: 1, day: 30, total: 30 } as const

/** The period of a query; null: the default. */
export interface SpanQuery {
  readonly fromMs: number | null
  readonly toMs: number | null
  readonly by: StatsBy
}

/** Why a query is refused: the parameter, and a sentence. */
export interface BadSpan {
  readonly path: 'from' | 'to' | 'streamId'
  readonly message: string
}

/** A period of whole units: from, and before to. */
export interface StatsSpan {
  readonly fromMs: number
  readonly toMs: number
  /** An hour or a day. */
  readonly unitMs: number
  /** The begin of the row that an instant counts in. */
  rowOf(ms: number): number
  /** Rows that one stream or group can have. */
  readonly rows: number
}

/** The period of a query as far as statistics are kept, or why it is refused. */
export function parseStatsSpan({ fromMs, toMs, by }: SpanQuery, nowMs: number): StatsSpan | BadSpan {
  const unitMs = by === 'hour' || (by === 'total' && fromMs !== null && isHourly(fromMs, nowMs)) ? HOUR_MS : DAY_MS
  const newest = (Math.floor(nowMs / unitMs) + 1) * unitMs
  const to = toMs ?? newest
  const from = fromMs ?? to - DEFAULT_DAYS[by] * DAY_MS
  if (from >= to) return { path: 'to', message: 'Must be later than from' }
  if (by === 'hour' && to - from > STATS_HOURS_DAYS_MAX * DAY_MS)
    return { path: 'from', message: `Must be at most ${STATS_HOURS_DAYS_MAX} days before to when counted by hour` }
  const oldest = Math.ceil(cutoffMs(nowMs, false) / unitMs) * unitMs
  const begin = Math.max(Math.floor(from / unitMs) * unitMs, oldest)
  const end = Math.max(begin, Math.min(Math.ceil(to / unitMs) * unitMs, newest))
  const rowOf = (ms: number) => (by === 'total' ? begin : Math.floor(ms / unitMs) * unitMs)
  return { fromMs: begin, toMs: end, unitMs, rowOf, rows: by === 'total' ? 1 : (end - begin) / unitMs }
}

/** Whether groups are kept by the hour since an instant. */
export function isHourly(fromMs: number, nowMs: number): boolean {
  return fromMs >= (Math.floor(nowMs / HOUR_MS) - GROUP_HOURS_DAYS * 24) * HOUR_MS
}
