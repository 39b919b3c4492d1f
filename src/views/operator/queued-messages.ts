/**
 * queued-messages - the messages that wait for one destination, those due first, and why each waits
 *
 * Reads the first items of each of the destination's lanes, one for each shard, so that a page costs the same however
 * long the queue is.
 *
 * Keys: `due`, `due:<lane>`, `holds`, `status:<server>:<segment>`
 *
 * Spec queue.messages
 */

import { msOf } from '../../../cluster/id.ts'
import { laneKey } from '../../../cluster/keyspace.ts'
import type { QueuedMessage } from '../../../schemas/operator/queue.ts'
import { maskAddress } from '../../mail/reply.ts'
import { HOLDS_SHARD, holdsKey } from '../../state/keys.ts'
import { parseAttemptItem } from '../../state/message/item.ts'
import { MessageRows } from '../../state/message/row.ts'
import { type RecipientState, unpackStatus } from '../../state/message/status.ts'
import { formatInstant } from '../instant.ts'
import type { ReadKeys } from '../read-keys.ts'
import { countDestinations } from './queue.ts'

interface Waiting {
  readonly shard: number
  readonly item: string
  readonly dueAtMs: number
}

/** Returns at most `limit` recipients, those due first; null if the store did not answer. */
export async function readQueuedMessages(
  readKeys: ReadKeys,
  { destination, limit, nowMs }: { destination: string; limit: number; nowMs: number },
): Promise<QueuedMessage[] | null> {
  const [counted, holds] = await Promise.all([
    countDestinations(readKeys),
    readKeys('hkeys', [{ shard: HOLDS_SHARD, key: holdsKey() }]),
  ])
  if (counted === null || holds === null) return null
  const places = counted.get(destination)?.places ?? []
  const range = places.map(({ shard, lane }) => ({
    shard,
    key: laneKey(shard, lane),
    args: [0, limit - 1, 'WITHSCORES'],
  }))
  const lists = await readKeys('zrange', range)
  if (lists === null) return null
  const first = lists
    .flatMap((list, at) => waitingIn(list, places[at]?.shard ?? 0))
    .sort((a, b) => a.dueAtMs - b.dueAtMs)
    .slice(0, limit)
  const rows = await readKeys('hget', first.map(makeStatusFact))
  if (rows === null) return null
  const isHeld = holds[0]?.includes(destination) === true
  return first.map((one, at) => describe(one, { row: rows[at] ?? null, isHeld, nowMs }))
}

/** In: members and scores by turns. */
function waitingIn(list: readonly string[], shard: number): Waiting[] {
  const found: Waiting[] = []
  for (let at = 0; at + 1 < list.length; at += 2)
    found.push({ shard, item: list[at] ?? '', dueAtMs: Number(list[at + 1]) })
  return found
}

function makeStatusFact({ shard, item }: Waiting) {
  const { serverId, segment, short, recipient } = parseAttemptItem(item)
  const { key, fields } = new MessageRows(shard, { serverId, segment }).statusFact({ short, recipient })
  return { shard, key, args: fields }
}

function describe(
  { item, dueAtMs }: Waiting,
  { row, isHeld, nowMs }: { row: string | null; isHeld: boolean; nowMs: number },
): QueuedMessage {
  const { serverId, messageId, recipient, sendAtMs } = parseAttemptItem(item)
  const { attempts, events } = unpackStatus(row, msOf(messageId))
  const last = lastReply(events)
  const isScheduled = attempts === 0 && sendAtMs !== null && sendAtMs > nowMs
  return {
    messageId,
    serverId,
    recipientIndex: recipient,
    why: isHeld ? 'held' : isScheduled ? 'scheduled' : dueAtMs > nowMs ? 'deferred' : 'due',
    attempts,
    dueAt: formatInstant(dueAtMs),
    lastCode: last?.code ?? null,
    // A server may name another recipient than the one it answers.
    lastResponse: last?.response == null ? null : maskAddress(last.response, ''),
  }
}

function lastReply(events: RecipientState['events']) {
  const event = events.at(-1)
  return event !== undefined && 'response' in event ? event : null
}
