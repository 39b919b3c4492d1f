/**
 * parse-item - the name of a received message in the lane in which it is parsed:
 * `<server short>.<segment>.<message short>`.
 *
 * Each account has its own lane, so that slow mail of one account delays no other.
 */

import { idOfShort, shortId } from '../../../cluster/id.ts'

/** Family of the lanes. */
export const PARSE_LANE = 'parse'

/** Where a received message is. */
export interface ReceivedPlace {
  readonly serverId: string
  readonly segment: string
  readonly messageId: string
}

/** The lane of an account. */
export function parseLane(accountId: string): string {
  return `${PARSE_LANE}/${accountId}`
}

/** The account of a lane. */
export function accountOfParseLane(lane: string): string {
  return lane.slice(PARSE_LANE.length + 1)
}

export function formatParseItem({ serverId, segment, messageId }: ReceivedPlace): string {
  return `${shortId(serverId)}.${segment}.${shortId(messageId)}`
}

/** Reads the result of `formatParseItem`. */
export function readParseItem(item: string): ReceivedPlace {
  const [server = '', segment = '', message = ''] = item.split('.')
  return { serverId: idOfShort(server), segment, messageId: idOfShort(message) }
}
