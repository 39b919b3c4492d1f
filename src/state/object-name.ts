/**
 * object-name - the names of what lies in the content store, and the day that each of them says
 *
 * `<shard>/<tree>/<yyyymmdd>/<leaf>`. Tree `out` is outgoing content, under the day after which it may go; tree `in` is
 * received content, under the day it was received. A day is a directory, or a prefix, so that what is past its age
 * goes as a whole, and what may not go yet is not even looked at.
 *
 * Outgoing: leaf `<contentId>.<part>`, the parts `body` (text and html) and `files` (all attachments, one after the
 * other). The content's id begins with its command's, and that with its time: the name follows from the id, and nothing
 * has to remember it.
 *
 * Spec retention.content, retention.attachments
 */

import { msOfCmdId } from '../../cluster/cmd-id.ts'
import { attachmentExpiresAtMs, contentExpiresAtMs } from './age.ts'
import { DAY_MS, dayName, HOUR_MS } from './calendar.ts'

export type Tree = 'out' | 'in'
export type OutgoingPart = 'body' | 'files'

/** A message is submitted this long after its command's id was made, at most: its content counts from there. */
const LATE_MS = HOUR_MS
/** Received content is kept 30 days; the day after the last of them begins, nothing of the day is left. */
export const RECEIVED_DAYS = 31
const SHARD_DIGITS = 3
const NAME = /^\d{3}\/(?:out|in)\/\d{8}\/[0-9A-Za-z_-]{1,80}(?:\.[a-z]{1,16})?$/

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

/** What the names of a shard begin with. */
export function shardPrefix(shard: number): string {
  return `${String(shard).padStart(SHARD_DIGITS, '0')}/`
}

/** Whether a text is a name of the store: nothing else is ever made a path of. */
export function isObjectName(name: string): boolean {
  return NAME.test(name)
}

/** Takes a name apart; null for what is none. */
export function parseObjectName(name: string): NamedObject | null {
  if (!isObjectName(name)) return null
  const [shard = '', tree, day = '', leaf = ''] = name.split('/')
  return { shard: Number(shard), tree: tree as Tree, day, leaf }
}

/** The name of outgoing content. In: the message's contentId; whether its server is a test server. */
export function outgoingName(
  shard: number,
  { contentId, part, test }: { readonly contentId: string; readonly part: OutgoingPart; readonly test: boolean },
): string {
  const latestMs = msOfCmdId(contentId) + LATE_MS
  const endsAtMs = part === 'body' ? contentExpiresAtMs(latestMs, test) : attachmentExpiresAtMs(latestMs)
  return formatObjectName({ shard, tree: 'out', day: dayName(endsAtMs), leaf: `${contentId}.${part}` })
}

/** The name of received content. In: an id of chance, of letters, digits, `-` and `_`. */
export function receivedName(
  shard: number,
  { id, receivedAtMs }: { readonly id: string; readonly receivedAtMs: number },
): string {
  return formatObjectName({ shard, tree: 'in', day: dayName(receivedAtMs), leaf: id })
}

/** The last day of a tree of which everything may go at `nowMs`, whatever any row says. */
export function lastPastDay(tree: Tree, nowMs: number): string {
  return dayName(tree === 'out' ? nowMs - DAY_MS : nowMs - (RECEIVED_DAYS + 1) * DAY_MS)
}
