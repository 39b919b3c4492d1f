/**
 * stats-rows - the figures of a server's hours that have ended, in one hash for each month.
 *
 * Key: `stats:<server>:<yyyymm>`: `<stream>.<dd>` -> `[[hour of the day, figures...], ...]`, the earliest first, and
 * `*.<dd>` the same of all streams together. Streams and figures as in `hour-count.ts`. A hash goes when the last of
 * its days is past its age.
 *
 * Spec stats.count, retention.stats
 */

import type { FactOf, Facts, Op } from '../../../cluster/behaviour.ts'
import { STATS_MONTHS } from '../age.ts'
import { computeMonth, DAY_MS, dayName, HOUR_MS, monthName, monthStartMs } from '../calendar.ts'
import { statsKey } from '../keys.ts'
import type { HourCounters } from '../server.ts'
import { addRows, type MailRow } from './hour-count.ts'

/** All streams together. */
export const ALL_STREAMS = '*'

const DAY_HOURS = 24

type HourRow = readonly [hourOfDay: number, ...figures: number[]]

/** The place of a server. */
export interface StatsPlace {
  readonly shard: number
  readonly serverId: string
}

/** The field of a stream's day. Takes an instant of the day. */
export function statsField(stream: string, ms: number): string {
  return `${stream}.${dayName(ms).slice(6)}`
}

/**
 * Reads a field, with the figures of each of its hours by the hour of the day. Null, for a missing field, gives an
 * empty map.
 */
export function unpackStatsDay(text: string | null): ReadonlyMap<number, MailRow> {
  const rows = text === null ? [] : (JSON.parse(text) as HourRow[])
  return new Map(rows.map(([hour, ...figures]) => [hour, figures]))
}

/** The read needed before an hour can be moved. */
export function statsFact({ shard, serverId }: StatsPlace, ended: HourCounters): FactOf<'fields'> {
  const [hour, streams] = ended
  const ms = hour * HOUR_MS
  const fields = [...Object.keys(streams), ALL_STREAMS].map((stream) => statsField(stream, ms))
  return { read: 'fields', key: statsKey(shard, serverId, monthName(ms)), fields }
}

/** Writes that add an hour to its month. Takes the result of `statsFact`. */
export function statsOps(facts: Facts, place: StatsPlace, ended: HourCounters): Op[] {
  const [hour, streams] = ended
  const ms = hour * HOUR_MS
  const { key } = statsFact(place, ended)
  const args: string[] = []
  let all: MailRow | undefined
  const write = (stream: string, figures: MailRow): void => {
    const field = statsField(stream, ms)
    args.push(field, packDay(facts.field(key, field), hour % DAY_HOURS, figures))
  }
  for (const [stream, figures] of Object.entries(streams)) {
    write(stream, figures)
    all = addRows(all, figures)
  }
  if (all !== undefined) write(ALL_STREAMS, all)
  if (args.length === 0) return []
  const expiresAtMs = monthStartMs(computeMonth(ms) + STATS_MONTHS + 1) + DAY_MS
  return [
    { key, write: 'HSET', args },
    { key, write: 'PEXPIREAT', args: [String(expiresAtMs)] },
  ]
}

function packDay(before: string | null, hour: number, figures: MailRow): string {
  const rows = new Map(unpackStatsDay(before))
  rows.set(hour, addRows(rows.get(hour), figures))
  return JSON.stringify([...rows].sort(([one], [other]) => one - other).map(([at, row]) => [at, ...row]))
}
