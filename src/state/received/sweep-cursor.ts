/**
 * sweep-cursor - the counters of a server's received mail: the open segment, how far content has left, and how far
 * messages are packed
 *
 * Owner `received:<server>`: `{segment, freed, packed}`; `freed` is the entry id below which no message has content,
 * `packed` the first millisecond of the last segment that is in blocks with its postings.
 */

import type { Segment } from '../segment.ts'

export interface ReceivedCounters {
  readonly segment?: Segment
  readonly freed?: string
  readonly packed?: number
}

/** Owner of the counters. */
export function receivedOwner(serverId: string): string {
  return `received:${serverId}`
}
