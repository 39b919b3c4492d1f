/**
 * look-item - the name of a received message in the lane in which its header is read for an erasure:
 * `<erasure id>.<server short>.<segment>.<message short>`.
 *
 * Each account has its own lane, as in parsing.
 */

import { formatParseItem, type ReceivedPlace, readParseItem } from './parse-item.ts'

/** Family of the lanes. */
export const LOOK_LANE = 'look'

/** The lane of an account. */
export function lookLane(accountId: string): string {
  return `${LOOK_LANE}/${accountId}`
}

/** The account of a lane. */
export function accountOfLookLane(lane: string): string {
  return lane.slice(LOOK_LANE.length + 1)
}

export function formatLookItem(erasureId: string, place: ReceivedPlace): string {
  return `${erasureId}.${formatParseItem(place)}`
}

/** Reads the result of `formatLookItem`. */
export function readLookItem(item: string): { readonly erasureId: string; readonly place: ReceivedPlace } {
  const dot = item.indexOf('.')
  return { erasureId: item.slice(0, dot), place: readParseItem(item.slice(dot + 1)) }
}
