/**
 * event-feed - the events of a server with a live feed, kept for a while so that an interrupted feed can resume
 *
 * Keys: `heard:<server>` is a stream with entry id = the id of the feed's entry and field `r` = the reference of the
 * event. Counters `heard:<server>` -> {count, marks}, the number of entries since the last mark, and the first id of
 * each thousand. It holds at least the last 10,000 events and at most 11,000, without a gap: after a time without a
 * feed it starts again.
 *
 * Spec event.feed
 */

import type { Entry, Op } from '../../../cluster/behaviour.ts'
import { entryIdOf } from '../../../cluster/id.ts'
import { FEED_EVENTS_KEPT, FEED_KEPT_MINUTES } from '../../../schemas/limits.ts'
import { heardKey } from '../keys.ts'
import type { ServerCounters } from '../server.ts'
import { type EventReference, formatReference, parseReference } from './item.ts'

/** Entries between two marks, by which the stream may exceed the promised length. */
const MARK_ENTRIES = 1_000
const MARKS_MAX = FEED_EVENTS_KEPT / MARK_ENTRIES
const FIELD = 'r'

export interface FeedCounters {
  readonly count: number
  /** First entry ids, the oldest first. */
  readonly marks: readonly string[]
}

/** A stream that begins. */
export const EMPTY_FEED: FeedCounters = { count: 0, marks: [] }

/** Owner of the counters. */
export function feedOwner(serverId: string): string {
  return `heard:${serverId}`
}

/** Time until which events of a server are recorded, at the longest until its last feed ended. */
export function keptUntilMs(counters: ServerCounters | null): number {
  const { listenedUntilMs } = counters ?? {}
  return listenedUntilMs === undefined ? 0 : listenedUntilMs + FEED_KEPT_MINUTES * 60_000
}

/** An event as it is written down. */
export interface FeedEvent {
  /** Assigned by the shard, ascending. */
  readonly id: string
  readonly reference: EventReference
}

/** Records events. Returns the writes, and the counters after them. */
export function writeToFeed(
  { shard, serverId }: { readonly shard: number; readonly serverId: string },
  before: FeedCounters | null,
  events: readonly FeedEvent[],
): { readonly ops: readonly Op[]; readonly counters: FeedCounters } {
  const key = heardKey(shard, serverId)
  const ops: Op[] = []
  let { count, marks } = before ?? EMPTY_FEED
  for (const { id, reference } of events) {
    const entryId = entryIdOf(id)
    ops.push({ key, write: 'XADD', args: [entryId, FIELD, formatReference(reference)] })
    if (count % MARK_ENTRIES === 0) marks = [...marks, entryId]
    count = (count % MARK_ENTRIES) + 1
    const [, second] = marks
    // The thousand that ends a mark is whole only when the next one begins.
    if (marks.length <= MARKS_MAX + 1 || second === undefined) continue
    ops.push({ key, write: 'XTRIM', args: ['MINID', second] })
    marks = marks.slice(1)
  }
  return { ops, counters: { count, marks } }
}

/** The event of an entry. */
export function parseFeedEvent({ fields }: Entry): EventReference {
  return parseReference(fields[fields.indexOf(FIELD) + 1] ?? '')
}
