/**
 * rows - the stored rows of messages: entries, heads and statuses, many messages a read
 *
 * Keys: `log head status:<server>:<segment>`
 */

import type { FactOf } from '../../../cluster/behaviour.ts'
import { msOf, shortId } from '../../../cluster/id.ts'
import { HEAD_PART } from '../../state/broadcast/content.ts'
import { contentKey } from '../../state/keys.ts'
import { type Head, mergeHeads, unpackHead } from '../../state/message/head.ts'
import { type LogEntry, parseLogEntry, unpackLogEntry } from '../../state/message/log-entry.ts'
import { MessageRows } from '../../state/message/row.ts'
import { type RecipientState, statusField, unpackStatus } from '../../state/message/status.ts'
import type { Reader, ServerKey } from '../key.ts'
import { readContentDays } from '../retention.ts'
import type { Candidate } from './scan.ts'
import type { StoredMessage } from './summary.ts'

/** The server whose log it is. */
type LogOwner = Pick<ServerKey, 'accountId' | 'serverId' | 'mode' | 'defaultStreamId'>

/** A message and its entry in the log. */
export interface Logged {
  readonly messageId: string
  readonly segment: string
  readonly entry: LogEntry
}

/** The entries of candidates, in their order, without removed ones. Null if the store did not answer. */
export async function readEntries(
  read: Reader,
  { shard, serverId }: { readonly shard: number; readonly serverId: string },
  candidates: readonly Candidate[],
): Promise<readonly Logged[] | null> {
  const unread = candidates.filter(({ packed }) => packed === null)
  const facts = unread.map(({ segment, messageId }): FactOf<'range'> => {
    return new MessageRows(shard, { serverId, segment }).entryFact(messageId)
  })
  const seen = facts.length === 0 ? [] : await read(shard, facts)
  if (seen === null) return null
  let at = 0
  return candidates.flatMap(({ messageId, segment, packed }) => {
    if (packed !== null) return [{ messageId, segment, entry: unpackLogEntry(packed) }]
    const [logged] = seen[at++] ?? []
    const entry = logged === undefined ? null : parseLogEntry(logged)
    return entry === null ? [] : [{ messageId, segment, entry }]
  })
}

/**
 * The messages with head and statuses, in order; one whose head is gone is left out. Null if the store did not answer.
 */
export async function readStored(
  read: Reader,
  { owner, shard, entries, nowMs }: { owner: LogOwner; shard: number; entries: readonly Logged[]; nowMs: number },
): Promise<readonly StoredMessage[] | null> {
  if (entries.length === 0) return []
  const serverId = owner.serverId
  const segments = [...new Set(entries.map(({ segment }) => segment))]
  const of = segments.map((segment) => entries.filter((one) => one.segment === segment))
  const facts = segments.flatMap((segment, index): FactOf<'fields'>[] => {
    const rows = new MessageRows(shard, { serverId, segment })
    const logged = of[index] ?? []
    const statuses = logged.flatMap(({ messageId, entry }) => {
      const short = shortId(messageId)
      return entry.recipients.map((_, recipient) => statusField(short, recipient))
    })
    return [rows.headsFact(logged.map(({ messageId }) => shortId(messageId))), rows.statusesFact(statuses)]
  })
  const streamIds = entries.map(({ entry }) => entry.streamId ?? owner.defaultStreamId)
  const [seen, daysOf] = await Promise.all([read(shard, facts), readContentDays(read, { owner, shard, streamIds })])
  if (seen === null || daysOf === null) return null
  const found = segments.flatMap((_, index) => {
    const heads = seen[index * 2] ?? []
    const statuses = seen[index * 2 + 1] ?? []
    let first = 0
    return (of[index] ?? []).flatMap((logged, place) => {
      const rows = statuses.slice(first, first + logged.entry.recipients.length)
      first += logged.entry.recipients.length
      const head = heads[place]
      return head === null || head === undefined ? [] : [makeStored(owner, logged, { head, rows, nowMs, daysOf })]
    })
  })
  return withShared(read, shard, found)
}

/** The read of the head that all messages of a broadcast share. In: the id of the broadcast's content. */
export function sharedHeadFact(shard: number, contentId: string): FactOf<'value'> {
  return { read: 'value', key: contentKey(shard, contentId, HEAD_PART, 0) }
}

/** A head with the text that it shares with its broadcast; undefined if the store did not answer. */
export async function wholeHead(read: Reader, shard: number, own: Head): Promise<Head | undefined> {
  if (!own.broadcast?.contentId) return own
  const seen = await read(shard, [sharedHeadFact(shard, own.broadcast.contentId)])
  if (seen === null) return undefined
  return seen[0] === null ? own : mergeHeads(own, unpackHead(seen[0], 0))
}

/** Adds the shared head to messages of broadcasts. Null if the store did not answer. */
async function withShared(
  read: Reader,
  shard: number,
  messages: readonly StoredMessage[],
): Promise<readonly StoredMessage[] | null> {
  const ids = new Set(messages.flatMap(({ head }) => head.broadcast?.contentId || []))
  if (ids.size === 0) return messages
  const facts = Array.from(ids, (id): FactOf<'value'> => {
    return sharedHeadFact(shard, id)
  })
  const seen = await read(shard, facts)
  if (seen === null) return null
  const shared = new Map([...ids].map((id, index) => [id, seen[index] ?? null]))
  return messages.map((message) => {
    const packed = shared.get(message.head.broadcast?.contentId ?? '')
    return packed == null ? message : { ...message, head: mergeHeads(message.head, unpackHead(packed, 0)) }
  })
}

function makeStored(
  owner: LogOwner,
  { messageId, segment, entry }: Logged,
  {
    head,
    rows,
    nowMs,
    daysOf,
  }: { head: string; rows: readonly (string | null)[]; nowMs: number; daysOf: (streamId: string) => number },
): StoredMessage {
  const submittedAtMs = msOf(messageId)
  const streamId = entry.streamId ?? owner.defaultStreamId
  const unpacked = unpackHead(head, entry.recipients.length)
  return {
    messageId,
    segment,
    submittedAtMs,
    test: owner.mode === 'test',
    contentDays: daysOf(streamId),
    streamId,
    entry,
    head: unpacked,
    recipients: rows.map((row) => withSchedule(unpackStatus(row, submittedAtMs), unpacked.sendAtMs, nowMs)),
  }
}

/** A recipient as it is shown: `scheduled` until the time of its message, if nothing has happened to it. */
function withSchedule(state: RecipientState, sendAtMs: number | undefined, nowMs: number): RecipientState {
  if (sendAtMs === undefined || state.status !== 'accepted' || state.attempts > 0) return state
  return { ...state, nextAttemptAtMs: sendAtMs, ...(sendAtMs > nowMs && { status: 'scheduled' }) }
}
