/**
 * rows - the stored rows of received messages: entries, standings, heads and streams, many messages a read
 *
 * Keys: `received received-state:<server>:<segment>`, `received-head:<server>:<day>:<n>`, `stream:<id>`
 */

import type { Entry, FactOf } from '../../../cluster/behaviour.ts'
import { entryIdOf, idOfEntry, msOf, shortId } from '../../../cluster/id.ts'
import { CONTENT_RETENTION_DAYS_MAX } from '../../../schemas/limits.ts'
import { DAY_MS } from '../../state/calendar.ts'
import { receivedStateKey } from '../../state/keys.ts'
import { type ContentHead, contentHeadKey, unpackContentHead } from '../../state/received/content-head.ts'
import { parseReceivedEntry, type ReceivedEntry, receivedFact } from '../../state/received/entry.ts'
import { type ReceivedStanding, unpackStanding } from '../../state/received/standing.ts'
import { type StreamState, streamRef } from '../../state/stream.ts'
import { entityFact, parseState } from '../entity.ts'
import type { Reader } from '../key.ts'
import { readTogether } from '../read-together.ts'

/** A message and its entry in the log. */
export interface LoggedReceived {
  readonly messageId: string
  readonly segment: string
  readonly entry: ReceivedEntry
}

/** A message as it is stored. */
export interface StoredReceived extends LoggedReceived {
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
  const seen = await read(shard, [receivedFact(shard, { serverId, segment, messageId })])
  if (seen === null) return undefined
  const [entry] = seen[0]
  const logged =
    entry === undefined || entry.id !== entryIdOf(messageId) ? null : parseLogged(entry, { shard, segment })
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
  for (const { messageId, segment } of messages) {
    states.add(receivedStateKey(shard, serverId, segment), shortId(messageId))
    heads.add(contentHeadKey(shard, serverId, messageId), shortId(messageId))
  }
  const streamFacts = streamIds.map((id) => entityFact(shard, streamRef(id)))
  const seen = await readTogether(read, shard, [states.facts(), heads.facts(), streamFacts])
  if (seen === null) return null
  const standingOf = states.take(seen[0])
  const headOf = heads.take(seen[1])
  const streams = new Map(streamIds.map((id, index) => [id, parseState<StreamState>(seen[2][index])]))
  return messages.flatMap((message): StoredReceived[] => {
    const { messageId, segment, entry } = message
    const short = shortId(messageId)
    const receivedAtMs = msOf(messageId)
    const standing = standingOf(receivedStateKey(shard, serverId, segment), short)
    const head = headOf(contentHeadKey(shard, serverId, messageId), short)
    if (standing === null) return []
    const days = streams.get(entry.streamId)?.contentRetentionDays ?? CONTENT_RETENTION_DAYS_MAX
    return [
      {
        ...message,
        serverId,
        receivedAtMs,
        standing: unpackStanding(standing, receivedAtMs),
        head: head === null ? null : unpackContentHead(head),
        contentExpiresAtMs: receivedAtMs + days * DAY_MS,
      },
    ]
  })
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
