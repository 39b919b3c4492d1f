/**
 * hour-count - the outcomes of a server's mail in the current hour, by stream.
 *
 * Two counters hold it, each written by commits that happen anyway: `hour` in the counters of the server what is known
 * at acceptance, and counters `hour:<server>` what attempts, reports and clicks bring. Both are
 * `[hour, {stream: [figures]}]`: hours since 1970; the stream's short id, `0` for the default stream; figures in the
 * order of `MAIL_FIGURES`, zeros at the end left off. Everything counts recipients, at the time at which it happens.
 *
 * The first commit of a later hour moves what has ended to the rows of its month (`stats-rows.ts`); so does a commit
 * of the same hour where more streams come than one counter holds. Rows add up, so nothing is counted twice or lost.
 *
 * Spec stats.count
 */

import { HOUR_MS } from '../calendar.ts'
import type { HourCounters } from '../server.ts'
import type { StatusEvent } from './status.ts'

/** The counted figures, by their place in a row. */
export const MAIL_FIGURES = [
  'accepted',
  'delivered',
  'deferred',
  'hardBounced',
  'softBounced',
  'complained',
  'unsubscribed',
  'suppressed',
] as const
export type Figure = (typeof MAIL_FIGURES)[number]

/** Figures in their order; those left off are 0. */
export type MailRow = readonly number[]

/** The figures to add for one stream, or for one group of `group-count.ts`. */
export interface Counted {
  /** As in `HourCounters`; the name of a group. */
  readonly stream: string
  readonly figures: MailRow
}

/** The default stream of a server, among the streams of a counter. */
export const DEFAULT_STREAM = '0'
/** Streams that one counter holds: it is written with every commit. */
const STREAMS_MAX = 16

/** How a counter is bounded, and its rows are added. */
export interface CounterKind {
  readonly max: number
  readonly add: (one: MailRow | undefined, other: MailRow) => MailRow
}
const BY_STREAM: CounterKind = { max: STREAMS_MAX, add: addRows }

/** Owner of a server's running hour. */
export function hourOwner(serverId: string): string {
  return `hour:${serverId}`
}

/** The row with one figure. */
export function rowOf(figure: Figure): MailRow {
  const row = new Array<number>(MAIL_FIGURES.indexOf(figure)).fill(0)
  row.push(1)
  return row
}

/** The sum of two rows. */
export function addRows(one: MailRow | undefined, other: MailRow): MailRow {
  if (one === undefined) return other
  const sum = one.slice()
  for (let place = 0; place < other.length; place += 1) sum[place] = (sum[place] ?? 0) + (other[place] ?? 0)
  return sum
}

/** The figures of an acceptance for one stream. Takes the number of recipients, and of suppressed ones among them. */
export function acceptedRow(recipients: number, suppressed: number): MailRow {
  return suppressed === 0 ? [recipients] : [recipients, 0, 0, 0, 0, 0, 0, suppressed]
}

/**
 * The figure that an event of a recipient counts for; null for none. Takes the earlier events; a recipient deferred
 * twice counts once. A message that failed inside the service was never sent, and a suppressed one was counted at its
 * acceptance.
 */
export function classifyEvent(event: StatusEvent, before: readonly StatusEvent[]): Figure | null {
  if (event.event === 'delivered' || event.event === 'unsubscribed') return event.event
  if (event.event === 'spam_complaint') return 'complained'
  if (event.event === 'deferred') return before.some((one) => one.event === 'deferred') ? null : 'deferred'
  if (event.event !== 'bounced' || event.status !== 'bounced') return null
  return event.hard ? 'hardBounced' : 'softBounced'
}

/**
 * Adds to the counter. If the clock goes back, events count in the latest hour. Returns `ended`, the hour that the
 * same commit must move, or null.
 */
export function countInHour(
  before: HourCounters | null | undefined,
  counted: readonly Counted[],
  nowMs: number,
  { max, add }: CounterKind = BY_STREAM,
): { readonly value: HourCounters; readonly ended: HourCounters | null } {
  const hour = Math.max(Math.floor(nowMs / HOUR_MS), before?.[0] ?? 0)
  const stays = before != null && before[0] === hour && hasRoom(before[1], counted, max)
  const streams: Record<string, MailRow> = stays ? { ...before[1] } : {}
  for (const { stream, figures } of counted) streams[stream] = add(streams[stream], figures)
  return { value: [hour, streams], ended: stays || before == null ? null : before }
}

function hasRoom(streams: HourCounters[1], counted: readonly Counted[], max: number): boolean {
  let more = 0
  for (const { stream } of counted) if (streams[stream] === undefined) more += 1
  return more === 0 || Object.keys(streams).length + more <= max
}
