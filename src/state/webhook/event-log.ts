/**
 * event-log - the events of a server in the order in which they occurred, for 30 days
 *
 * A reference is written in the commit of the event itself, so the log has each event once, also after a kill. A
 * slice is called `<yyyymm>-<n>`; the next n begins at 50,000 events, so that no key grows without bound and a server
 * with little mail has two keys.
 *
 * Keys: `events:<server>:<slice>` is a stream with entry id = id of the event and field `r` = its reference.
 * `event-slices: <server>`: slice -> first ms. Counters `events:<server>` -> the open slice.
 *
 * Spec event.search
 */

import type { Entry, FactOf, Op } from '../../../cluster/behaviour.ts'
import { entryIdOf, msOf } from '../../../cluster/id.ts'
import { EVENT_LOG_DAYS } from '../../../schemas/limits.ts'
import { DAY_MS, monthName } from '../calendar.ts'
import { eventSlicesKey, eventsKey } from '../keys.ts'
import { type EventReference, formatReference, parseReference } from './item.ts'
import { enterSlice, type Slice } from './slice.ts'

/** Events of one slice: some 3 MB. */
const EVENTS_MAX = 50_000
const FIELD = 'r'

/** An event as it is written down. */
export interface LoggedEvent {
  /** Assigned by the shard, ascending. */
  readonly id: string
  readonly reference: EventReference
}

/** Owner of the counters. */
export function eventLogOwner(serverId: string): string {
  return `events:${serverId}`
}

/** Events before this instant are gone. */
export function eventCutoffMs(nowMs: number): number {
  return nowMs - EVENT_LOG_DAYS * DAY_MS
}

/** The slices with the time of their first event, oldest first, or newest first; those opened until `max` alone. */
export function eventSlicesFact(
  shard: number,
  serverId: string,
  { max = Number.MAX_SAFE_INTEGER, count, newest = false }: { max?: number; count: number; newest?: boolean },
): FactOf<'sorted'> {
  return { read: 'sorted', key: eventSlicesKey(shard, serverId), min: 0, max, count, ...(newest && { newest }) }
}

/** Records events. Returns the writes, and the open slice after them. */
export function logEvents(
  { shard, serverId }: { readonly shard: number; readonly serverId: string },
  before: Slice | null,
  events: readonly LoggedEvent[],
): { readonly ops: readonly Op[]; readonly slice: Slice | null } {
  const ops: Op[] = []
  let open = before
  for (const { id, reference } of events) {
    const { slice, opened } = enterSlice(open, msOf(id), { itemsMax: EVENTS_MAX, period: monthName })
    open = slice
    if (opened) {
      const args = [String(msOf(id)), slice.name]
      ops.push({ key: eventSlicesKey(shard, serverId), write: 'ZADD', args })
    }
    const args = [entryIdOf(id), FIELD, formatReference(reference)]
    ops.push({ key: eventsKey(shard, serverId, slice.name), write: 'XADD', args })
  }
  return { ops, slice: open }
}

/** The event of an entry. */
export function eventOfEntry({ fields }: Entry): EventReference {
  return parseReference(fields[fields.indexOf(FIELD) + 1] ?? '')
}
