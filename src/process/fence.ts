/**
 * fence - whether this process may still believe that the work it performs is its own, shared with its threads.
 *
 * A process whose heartbeat is not answered may already have been declared dead and its attempts given to another one. The
 * receiving server takes the mail at the final dot, so the fence is read right before it. The store's side writes two
 * numbers into shared memory; every thread reads them without a message. Each answered heartbeat marks the fence with the
 * moment it was sent; a closed connection unmarks it.
 *
 * Layout (two 64-bit integers): [0] when the last answered heartbeat was sent, in monotonic milliseconds; [1] 1 while the
 * connection that carried it is open, else 0.
 */

import { changeStore, type Store } from '../../cluster/store.ts'

/** Age of the last answered heartbeat, counted from its sending, up to which work may be finished. */
export const HEARTBEAT_AGE_MAX_MS = 8000

const SENT_AT = 0
const CONNECTED = 1

export type Fence = BigInt64Array

/** A fence that holds everything back until the first heartbeat is marked. */
export function createFence(): Fence {
  return new BigInt64Array(new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT))
}

/** A clock that is the same in every thread of a process and never goes back, in milliseconds. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n)
}

/** Marks an answered heartbeat that was sent at `sentAtMs` (monotonic), over a connection that is open. */
export function markHeartbeat(fence: Fence, sentAtMs: number): void {
  Atomics.store(fence, SENT_AT, BigInt(Math.trunc(sentAtMs)))
  Atomics.store(fence, CONNECTED, 1n)
}

/** Marks that the heartbeat's connection has closed: nothing may be finished until the next answered heartbeat. */
export function markDisconnected(fence: Fence): void {
  Atomics.store(fence, CONNECTED, 0n)
}

/** True while work may be finished. */
export function mayFinish(fence: Fence, nowMs: number = monotonicMs()): boolean {
  return Atomics.load(fence, CONNECTED) === 1n && nowMs - Number(Atomics.load(fence, SENT_AT)) <= HEARTBEAT_AGE_MAX_MS
}

/** The same store, whose answered heartbeats mark the fence. */
export function fenceStore(store: Store, fence: Fence): Store {
  return changeStore(store, {
    async heartbeat(request) {
      const sentAtMs = monotonicMs()
      const beat = await store.heartbeat(request)
      if (beat.kind === 'ok') markHeartbeat(fence, sentAtMs)
      return beat
    },
  })
}
