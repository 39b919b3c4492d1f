/**
 * open-parsing - what takes received mail apart in a process with actors: the threads, and the lane that they work for
 *
 * Threads start with the first mail.
 */

import type { LaneType } from '../../cluster/behaviour.ts'
import { makeParseLane, type ParseLaneDeps } from './parse-lane.ts'
import { makeReceivedRoom } from './received-room.ts'

/** Received mail, taken apart. */
export interface Parsing {
  /** The lane. In: performers in place of our own bounds. */
  lane(room: ((lane: string) => number) | undefined): LaneType
  /** Ends the threads. */
  close(): Promise<void>
}

/** Makes the threads' rooms. */
export function openParsing(deps: Pick<ParseLaneDeps, 'received' | 'secrets' | 'metrics'>): Parsing {
  const rooms = { slow: makeReceivedRoom(), fast: makeReceivedRoom() }
  return {
    // Nothing is judged yet: who sent a mail stays `unchecked`.
    lane: (room) =>
      makeParseLane({ ...deps, rooms, check: null, random: Math.random, ...(room !== undefined && { room }) }),
    async close() {
      await Promise.all([rooms.slow.close(), rooms.fast.close()])
    },
  }
}
