/**
 * object-name - the names of objects in the content store, and the day in each name
 *
 * `<shard>/<tree>/<yyyymmdd>/<leaf>`. Tree `out` is outgoing content, tree `cold` sealed segments of the log, both
 * under the day after which they may be removed; tree `in` is received content, under the day it was received. A day is
 * a directory, or a prefix, so that expired days are removed as a whole, and other days are not even listed.
 *
 * Outgoing: leaf `<contentId>.<part>`, the parts `body` (text and html) and `files` (all attachments, one after the
 * other). The content's id begins with its command's, and that with its time, so the name is derived from the id and
 * is not stored. The id of a scheduled message ends with `s`, and its attachments stay as long as its text, because
 * its time may be changed.
 *
 * Spec retention.content, retention.attachments
 */

import { msOfCmdId } from '../../cluster/cmd-id.ts'
import { attachmentExpiresAtMs, contentExpiresAtMs } from './age.ts'
import { DAY_MS, dayName, HOUR_MS } from './calendar.ts'

export type Tree = 'out' | 'in' | 'cold'
export type OutgoingPart = 'body' | 'files'

/**
 * Maximum time between the creation of a command's id and its submission, because the retention of content counts from
 * the id.
 */
const LATE_MS = HOUR_MS
/** Received content is kept 30 days: at the start of the day after the last one, nothing of the day is left. */
export const RECEIVED_DAYS = 31
const SHARD_DIGITS = 3
/** The end of the id of a scheduled message's content, after the digits of its place. */
const SCHEDULED = 's'
const NAME = /^\d{3}\/(?:out|in|cold)\/\d{8}\/[0-9A-Za-z_-]{1,80}(?:\.[a-z]{1,16})?$/

export interface NamedObject {
  readonly shard: number
  readonly tree: Tree
  /** `yyyymmdd`, UTC. */
  readonly day: string
  readonly leaf: string
}

/** Puts a name together. */
export function formatObjectName({ shard, tree, day, leaf }: NamedObject): string {
  return `${shardPrefix(shard)}${tree}/${day}/${leaf}`
}

/** The common beginning of a shard's names. */
export function shardPrefix(shard: number): string {
  return `${String(shard).padStart(SHARD_DIGITS, '0')}/`
}

/** Whether a text is a name of the store. Only such names become paths. */
export function isObjectName(name: string): boolean {
  return NAME.test(name)
}

/** Parses a name; null if it is not one. */
export function parseObjectName(name: string): NamedObject | null {
  if (!isObjectName(name)) return null
  const [shard = '', tree, day = '', leaf = ''] = name.split('/')
  return { shard: Number(shard), tree: tree as Tree, day, leaf }
}

/** The id of a message's content. Takes the id of its command and its place among the messages of the command. */
export function contentIdOf(
  cmdId: string,
  { place, isScheduled }: { readonly place: number; readonly isScheduled: boolean },
): string {
  return `${cmdId}-${place}${isScheduled ? SCHEDULED : ''}`
}

/** The name of outgoing content. Takes the message's contentId, and whether its server is a test server. */
export function outgoingName(
  shard: number,
  { contentId, part, test }: { readonly contentId: string; readonly part: OutgoingPart; readonly test: boolean },
): string {
  const latestMs = msOfCmdId(contentId) + LATE_MS
  return formatObjectName({ shard, tree: 'out', day: dayName(endOf()), leaf: `${contentId}.${part}` })

  function endOf(): number {
    if (part === 'body' || test || contentId.endsWith(SCHEDULED)) return contentExpiresAtMs(latestMs, test)
    return attachmentExpiresAtMs(latestMs, { sendAtMs: 0, test })
  }
}

/** The name of received content. Takes a random id of letters, digits, `-` and `_`. */
export function receivedName(
  shard: number,
  { id, receivedAtMs }: { readonly id: string; readonly receivedAtMs: number },
): string {
  return formatObjectName({ shard, tree: 'in', day: dayName(receivedAtMs), leaf: id })
}

/** The last day of a tree that may be removed completely at `nowMs`, independent of the rows. */
export function lastPastDay(tree: Tree, nowMs: number): string {
  return dayName(tree === 'in' ? nowMs - (RECEIVED_DAYS + 1) * DAY_MS : nowMs - DAY_MS)
}
