/**
 * of-message - the deliveries of a message's events, found without an index.
 *
 * An event and its deliveries are made in one commit, and a delivery's id carries its millisecond. So only a few
 * entries of each webhook are checked, from the time of the event on: in the queue or its blocks, and among the dead
 * once they have left the queue. Takes the time of an event. There are two rounds of reading: the slices that may have
 * it, then their entries.
 *
 * Spec webhook.of-message
 */

import type { Entry, FactOf } from '../../../cluster/behaviour.ts'
import { DAY_MS } from '../calendar.ts'
import { deadKey, queueKey, slicesKey } from '../keys.ts'
import { blocksAtFact, rowsOfBlocks, type StoredBlocks } from './block.ts'
import { itemOf, type MessageReference, parseDeliveryItem, type WebhookItem } from './item.ts'

/** Ids run ahead of the clock if many are made at once, or if it went back. */
const AHEAD_MS = 2_000
/** Entries of one slice that are read for one time. */
const ENTRIES_MAX = 500
/** Slices of one day: 50 million deliveries. */
const DAY_SLICES_MAX = 1_000
/** Maximum slices: those that end within the searched time, and one that was full just before. */
const CANDIDATES = 3
const SLICE_READS = 3

/** The places to search for the deliveries of an event. */
export interface EventPlace {
  readonly shard: number
  readonly webhookId: string
  readonly occurredAtMs: number
}

/** A delivery of a message's event. */
export interface MessageItem extends WebhookItem {
  readonly webhookId: string
  readonly reference: MessageReference
  /** Name of its item. */
  readonly name: string
}

/** The first round: slices that may have deliveries made at that time. */
export function slicesAtFact({ shard, webhookId, occurredAtMs }: EventPlace): FactOf<'sorted'> {
  const min = Math.floor(occurredAtMs / DAY_MS) * DAY_MS
  return { read: 'sorted', key: slicesKey(shard, webhookId), min, max: occurredAtMs + AHEAD_MS, count: DAY_SLICES_MAX }
}

/** The second round, with three reads for each slice of the first. */
export function entriesAtFacts(
  slices: readonly (readonly [string, number])[],
  { shard, webhookId, occurredAtMs }: EventPlace,
): (FactOf<'range'> | FactOf<'sorted'>)[] {
  const to = occurredAtMs + AHEAD_MS
  return slices.slice(-CANDIDATES).flatMap(([slice]): (FactOf<'range'> | FactOf<'sorted'>)[] => [
    {
      read: 'range',
      key: queueKey(shard, webhookId, slice),
      from: String(occurredAtMs),
      to: String(to),
      count: ENTRIES_MAX,
    },
    { read: 'sorted', key: deadKey(shard, webhookId, slice), min: occurredAtMs, max: to, count: ENTRIES_MAX },
    blocksAtFact({ shard, webhookId, slice }, { fromMs: occurredAtMs, count: ENTRIES_MAX }),
  ])
}

/** The deliveries of a message that the second round has found, each once. Takes slices and answers, in order. */
export function itemsOfMessage(
  answers: readonly unknown[],
  { webhookId, slices }: Pick<EventPlace, 'webhookId'> & { slices: readonly (readonly [string, number])[] },
  messageId: string,
): MessageItem[] {
  const found = new Map<string, MessageItem>()
  const add = (item: WebhookItem & { name: string }): void => {
    const { reference } = item
    if (reference.kind === 'message' && reference.messageId === messageId)
      found.set(item.deliveryId, { ...item, reference, webhookId })
  }
  for (const [at, [slice]] of slices.slice(-CANDIDATES).entries()) {
    const [queued, dead, blocks] = answers.slice(at * SLICE_READS) as [readonly Entry[], StoredBlocks, StoredBlocks]
    for (const entry of queued) add(itemOf(entry))
    for (const [name] of dead) add({ name, ...parseDeliveryItem(name) })
    for (const { name } of rowsOfBlocks(slice, blocks)) add({ name, ...parseDeliveryItem(name) })
  }
  return [...found.values()]
}
