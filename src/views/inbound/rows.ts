/**
 * rows - the stored rows of received messages: entries, standings, heads and streams, many messages a read
 *
 * A message of 33 days may move to a block between two reads, so one whose standing is gone is read there.
 *
 * Keys: `received received-state received-blocks:<server>:<segment>`, `received-head:<server>:<day>:<n>`, `stream:<id>`
 */

import type { Entry, FactOf } from '../../../cluster/behaviour.ts'
import { entryIdOf, idOfEntry, msOf, shortId } from '../../../cluster/id.ts'
import { CONTENT_RETENTION_DAYS_MAX } from '../../../schemas/limits.ts'
import { DAY_MS } from '../../state/calendar.ts'
import { receivedStateKey } from '../../state/keys.ts'
import { receivedBlockFact, rowInReceivedBlocks } from '../../state/received/block.ts'
import { type ContentHead, contentHeadKey, unpackContentHead } from '../../state/received/content-head.ts'
import { parseReceivedEntry, receivedFact } from '../../state/received/entry.ts'
import { type ReceivedStanding, unpackStanding } from '../../state/received/standing.ts'
import { type StreamState, streamRef } from '../../state/stream.ts'
import { entityFact, parseState } from '../entity.ts'
import type { Reader } from '../key.ts'
import { readTogether } from '../read-together.ts'
import { type LoggedReceived, loggedOfRow, readRowsOf } from './blocks.ts'

/** A message as it is stored. */
export interface StoredReceived extends Omit<LoggedReceived, 'standing'> {
  readonly serverId: string
  readonly receivedAtMs: number
  readonly standing: ReceivedStanding
  /** Null once its content has left. */
  readonly head: ContentHead | null
  /** When its content ends, by its stream as it is now. */
  readonly contentExpiresAtMs: number
}

/** Where messages are looked for. */
export interface ReceivedOf {
  readonly shard: number
  readonly serverId: string
}

/** The message of a log entry; null if the entry is not one. */
export function parseLogged(
  entry: Entry,
  { shard, segment }: { shard: number; segment: string },
): LoggedReceived | null {
  const received = parseReceivedEntry(entry)
  return received === null ? null : { messageId: idOfEntry(entry.id, shard), segment, entry: received }
}

/** Reads one message; null if it does not exist, undefined if the store did not answer. */
export async function readOneReceived(
  read: Reader,
  { shard, serverId }: ReceivedOf,
  { segment, messageId }: { readonly segment: string; readonly messageId: string },
): Promise<StoredReceived | null | undefined> {
  const entryId = entryIdOf(messageId)
  const place = { shard, serverId, segment }
  const seen = await read(shard, [receivedFact(shard, { ...place, messageId }), receivedBlockFact(place, entryId)])
  if (seen === null) return undefined
  const [entry] = seen[0]
  const row = entry?.id === entryId ? null : rowInReceivedBlocks(seen[1], entryId)
  const logged = entry?.id === entryId ? parseLogged(entry, place) : row && loggedOfRow(row, place)
  if (logged === null) return null
  const stored = await readReceivedRows(read, { shard, serverId }, [logged])
  return stored === null ? undefined : (stored[0] ?? null)
}

/**
 * The messages with their rows, in order; one whose standing is gone is left out. Null if the store did not answer.
 */
export async function readReceivedRows(
  read: Reader,
  { shard, serverId }: ReceivedOf,
  messages: readonly LoggedReceived[],
): Promise<readonly StoredReceived[] | null> {
  if (messages.length === 0) return []
  const streamIds = [...new Set(messages.map(({ entry }) => entry.streamId))]
  const states = new FieldReads()
  const heads = new FieldReads()
  for (const { messageId, segment, standing } of messages) {
    if (standing === undefined) states.add(receivedStateKey(shard, serverId, segment), shortId(messageId))
    heads.add(contentHeadKey(shard, serverId, messageId), shortId(messageId))
  }
  const streamFacts = streamIds.map((id) => entityFact(shard, streamRef(id)))
  const seen = await readTogether(read, shard, [states.facts(), heads.facts(), streamFacts])
  if (seen === null) return null
  const standingOf = states.take(seen[0])
  const headOf = heads.take(seen[1])
  const streams = new Map(streamIds.map((id, index) => [id, parseState<StreamState>(seen[2][index])]))
  const found = messages.map((message) => {
    const { messageId, segment, standing } = message
    if (standing !== undefined) return { ...message, standing }
    return { ...message, standing: standingOf(receivedStateKey(shard, serverId, segment), shortId(messageId)) }
  })
  const moved = await readMoved(
    read,
    { shard, serverId },
    found.filter(({ standing }, at) => standing === null && messages[at]?.standing === undefined),
  )
  if (moved === null) return null
  return found.flatMap((message): StoredReceived[] => {
    const { messageId, segment, entry } = message
    const receivedAtMs = msOf(messageId)
    const standing = message.standing ?? moved.get(messageId) ?? null
    const head = headOf(contentHeadKey(shard, serverId, messageId), shortId(messageId))
    if (standing === null) return []
    const days = streams.get(entry.streamId)?.contentRetentionDays ?? CONTENT_RETENTION_DAYS_MAX
    return [
      {
        messageId,
        segment,
        entry,
        serverId,
        receivedAtMs,
        standing: unpackStanding(standing, receivedAtMs),
        head: head === null ? null : unpackContentHead(head),
        contentExpiresAtMs: receivedAtMs + days * DAY_MS,
      },
    ]
  })
}

/** The standings of messages that moved to blocks after their entries were read; null if the store did not answer. */
async function readMoved(
  read: Reader,
  { shard, serverId }: ReceivedOf,
  messages: readonly LoggedReceived[],
): Promise<ReadonlyMap<string, string | null> | null> {
  const moved = new Map<string, string | null>()
  for (const segment of new Set(messages.map((message) => message.segment))) {
    const ids = messages.filter((one) => one.segment === segment).map(({ messageId }) => entryIdOf(messageId))
    const spans = ids.map((id) => ({ from: id, to: id }))
    const rows = await readRowsOf(read, { shard, serverId, segment }, spans)
    if (rows === undefined) return null
    for (const { entryId, standing } of rows) moved.set(idOfEntry(entryId, shard), standing)
  }
  return moved
}

/** Fields of several hashes, one read for each hash. */
class FieldReads {
  private readonly asked = new Map<string, string[]>()

  add(key: string, field: string): void {
    const fields = this.asked.get(key)
    if (fields === undefined) this.asked.set(key, [field])
    else fields.push(field)
  }

  facts(): FactOf<'fields'>[] {
    return Array.from(this.asked, ([key, fields]) => ({ read: 'fields', key, fields }))
  }

  /** Takes the results of the read. In: the answers, in the order of `facts`. */
  take(seen: readonly (readonly (string | null)[])[]): (key: string, field: string) => string | null {
    const known = new Map<string, string | null>()
    for (const [index, [key, fields]] of [...this.asked].entries())
      for (const [place, field] of fields.entries()) known.set(`${key} ${field}`, seen[index]?.[place] ?? null)
    return (key, field) => known.get(`${key} ${field}`) ?? null
  }
}
