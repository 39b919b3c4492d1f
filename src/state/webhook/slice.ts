/**
 * slice - the deliveries of a webhook by UTC day, so that no key grows without bound and old ones go as a
 * whole.
 *
 * A slice is called `<yyyymmdd>-<n>`; the next n begins at 50,000 deliveries.
 *
 * Keys: slices, queue, delivery, dead
 */

import type { FactOf } from '../../../cluster/behaviour.ts'
import { dayName, endOfNameMs } from '../calendar.ts'
import { slicesKey } from '../keys.ts'

/** Deliveries of one slice, whose hash of records then has 5 MB. */
const DELIVERIES_MAX = 50_000

/** Slices of thirteen months, several a day. */
const SLICES_MAX = 5_000

/** The slices of a webhook with the time of their first delivery, oldest first; those opened until `max` alone. */
export function slicesFact(
  shard: number,
  webhookId: string,
  { max = Number.MAX_SAFE_INTEGER, count = SLICES_MAX }: { readonly max?: number; readonly count?: number } = {},
): FactOf<'sorted'> {
  return { read: 'sorted', key: slicesKey(shard, webhookId), min: 0, max, count }
}

/** The slice that is open. */
export interface Slice {
  readonly name: string
  readonly deliveries: number
}

/**
 * The slice that a delivery made at `nowMs` goes into. Takes the open one or null; `period` names the day of an
 * instant, or the month.
 */
export function enterSlice(
  open: Slice | null,
  nowMs: number,
  { itemsMax = DELIVERIES_MAX, period = dayName }: { itemsMax?: number; period?: (ms: number) => string } = {},
): { readonly slice: Slice; readonly opened: boolean } {
  const now = period(nowMs)
  const isNow = open !== null && periodOf(open.name) === now
  if (isNow && open.deliveries < itemsMax)
    return { slice: { name: open.name, deliveries: open.deliveries + 1 }, opened: false }
  const place = isNow ? placeOf(open.name) + 1 : 0
  return { slice: { name: `${now}-${place}`, deliveries: 1 }, opened: true }
}

/** First millisecond after the day, or the month, of a slice. */
export function sliceEndMs(name: string): number {
  return endOfNameMs(periodOf(name))
}

/** Whether a slice begins after another one, by their names. */
export function isLaterSlice(name: string, other: string): boolean {
  if (periodOf(name) !== periodOf(other)) return periodOf(name) > periodOf(other)
  return placeOf(name) > placeOf(other)
}

function placeOf(name: string): number {
  return Number(name.slice(name.indexOf('-') + 1))
}

function periodOf(name: string): string {
  return name.slice(0, name.indexOf('-'))
}
