/**
 * sweep-cursor - the counters of a server's received mail: the open segment, and how far content has left
 *
 * Owner `received:<server>`: `{segment, freed}`; `freed` is the entry id below which no message has content.
 */

import type { Segment } from '../segment.ts'

export interface ReceivedCounters {
  readonly segment?: Segment
  readonly freed?: string
}

/** Owner of the counters. */
export function receivedOwner(serverId: string): string {
  return `received:${serverId}`
}
