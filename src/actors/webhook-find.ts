/**
 * webhook-find - where a delivery lies: its slice and its item, from its id alone.
 *
 * Two rounds of reading: the slices that begin on the day of the id, up to it; then its entry in the queue of the last of
 * them, or of the one before (two slices may share a millisecond), or its place among the dead.
 */

import type { Entry, Fact } from '../../cluster/behaviour.ts'
import { entryIdOf, msOf } from '../../cluster/id.ts'
import { DAY_MS } from '../state/calendar.ts'
import { deadKey, queueKey, slicesKey } from '../state/keys.ts'
import { deadScore } from '../state/webhook/delivery.ts'
import { QUEUE_FIELD } from '../state/webhook/item.ts'

/** Slices of one day: 50 million deliveries. */
const SLICES_MAX = 1_000
/** Deliveries of one score among the dead: it tells some 4,000 of one millisecond apart. */
const SAME_SCORE_MAX = 1_000
const CANDIDATES = 2

type SortedFact = Fact & { read: 'sorted' }
type RangeFact = Fact & { read: 'range' }

/** The first round. */
export function daySlicesFact(shard: number, webhookId: string, deliveryId: string): SortedFact {
  const ms = msOf(deliveryId)
  const min = Math.floor(ms / DAY_MS) * DAY_MS
  return { read: 'sorted', key: slicesKey(shard, webhookId), min, max: ms, count: SLICES_MAX }
}

/** The second round, for what the first has found: two reads for each slice. */
export function placeFacts(
  slices: readonly (readonly [string, number])[],
  { shard, webhookId, deliveryId }: { shard: number; webhookId: string; deliveryId: string },
): (RangeFact | SortedFact)[] {
  const entryId = entryIdOf(deliveryId)
  const score = deadScore(deliveryId)
  return slices.slice(-CANDIDATES).flatMap(([slice]): (RangeFact | SortedFact)[] => [
    { read: 'range', key: queueKey(shard, webhookId, slice), from: entryId, to: entryId, count: 1 },
    { read: 'sorted', key: deadKey(shard, webhookId, slice), min: score, max: score, count: SAME_SCORE_MAX },
  ])
}

/** The item that the second round has found; null: there is no such delivery. In: its answers, in order. */
export function foundItem(answers: readonly unknown[], deliveryId: string): string | null {
  for (let at = 0; at < answers.length; at += 2) {
    const [entry] = answers[at] as readonly Entry[]
    if (entry !== undefined) return entry.fields[entry.fields.indexOf(QUEUE_FIELD) + 1] ?? null
    const dead = answers[at + 1] as readonly (readonly [string, number])[]
    const found = dead.find(([item]) => item.startsWith(deliveryId))
    if (found !== undefined) return found[0]
  }
  return null
}
