/**
 * item - the name of one recipient's delivery in its lane; everything about it is found from the name.
 *
 * `<server short>.<segment>.<message short>.<recipient n>.<recipients in all><a if there are attachments>`, of a
 * scheduled message `s<ms of its time, base 36>` behind that, and on a broadcast stream `.<stream short>`, because
 * deliveries are counted there.
 */

import { idOfShort, shortId } from '../../../cluster/id.ts'
import { memoize, memoizeShortly } from '../memoize.ts'

/** One recipient of one message. */
export interface AttemptItem {
  readonly serverId: string
  readonly segment: string
  readonly messageId: string
  /** Short id of the message. */
  readonly short: string
  /** From 0. */
  readonly recipient: number
  readonly recipients: number
  readonly hasAttachments: boolean
  /** Null on a stream of another kind. */
  readonly broadcastStreamId: string | null
  /** When a scheduled message is sent, ms; null: at once. */
  readonly sendAtMs: number | null
}

/** Lanes of the simulator and of the relay, and the prefix of those of recipient domains. */
export const LANES = { simulate: 'simulate', relay: 'relay', deliver: 'deliver' } as const
export type LanePrefix = keyof typeof LANES

/** The lane of a recipient at `domain`. */
export function laneOf(prefix: LanePrefix, domain: string): string {
  return prefix === 'deliver' ? `${LANES.deliver}/${domain}` : LANES[prefix]
}

/** The common prefix of the items of a message. */
export function itemPrefix(serverId: string, segment: string, short: string): string {
  return `${shortId(serverId)}.${segment}.${short}.`
}

/** The suffix of the item of recipient `recipient`. */
export function itemSuffix(
  recipient: number,
  {
    recipients,
    hasAttachments,
    broadcastStreamId,
    sendAtMs = null,
  }: Pick<AttemptItem, 'recipients' | 'hasAttachments' | 'broadcastStreamId'> & Partial<Pick<AttemptItem, 'sendAtMs'>>,
): string {
  const at = sendAtMs === null ? '' : `s${sendAtMs.toString(36)}`
  const suffix = `${recipient}.${recipients}${hasAttachments ? 'a' : ''}${at}`
  return broadcastStreamId === null ? suffix : `${suffix}.${shortId(broadcastStreamId)}`
}

/** One server sends many messages. */
const serverOf = memoize(idOfShort)

/**
 * Reads the name of an item. It is cached, because all commands of a batch declare their reads before the first of
 * them is decided.
 */
export const parseAttemptItem = memoizeShortly(readItem)

function readItem(item: string): AttemptItem {
  const [server = '', segment = '', short = '', recipient = '', last = '', stream] = item.split('.')
  const [counted = '', at] = last.split('s')
  return {
    serverId: serverOf(server),
    segment,
    messageId: idOfShort(short),
    short,
    recipient: Number(recipient),
    recipients: Number.parseInt(counted, 10),
    hasAttachments: counted.endsWith('a'),
    broadcastStreamId: stream === undefined ? null : idOfShort(stream),
    sendAtMs: at === undefined ? null : Number.parseInt(last.slice(counted.length + 1), 36),
  }
}
