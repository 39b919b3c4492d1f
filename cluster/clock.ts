/**
 * clock - the store's time between two readings of it, and sleeps.
 *
 * `nowMs` is the store's clock at the last heartbeat plus this process's monotonic time since. The product reads no
 * other clock, so all processes of an installation agree on periods, deadlines and due times.
 *
 * An answer bounds the store's clock: it is between the reported time and that time plus the round trip. A clock within
 * these bounds is not changed, so a slow answer moves nothing; otherwise it moves to the nearer bound.
 */

/** No sleep is longer: setTimeout fires at once beyond 24.8 days, and a machine may sleep. */
const SLEEP_MAX_MS = 60_000

export interface Clock {
  /** Milliseconds since the epoch, by the store's clock. */
  nowMs(): number
  /** Milliseconds that only rise. */
  monotonicMs(): number
  /** The store reported the time `storeMs`; the request was sent at `sentAtMs` (monotonic). */
  set(storeMs: number, sentAtMs: number): void
  /**
   * Calls back once after `ms` (at most a minute; 0: when this turn of the loop ends); answers a function that cancels.
   */
  after(ms: number, call: () => void): () => void
}

/** Durations and timers use this clock. */
export type Waits = Pick<Clock, 'monotonicMs' | 'after'>

/** Resolves after `ms`, at most a minute. */
export function pauseBy(clock: Pick<Clock, 'after'>, ms: number): Promise<void> {
  return new Promise((resolve) => clock.after(ms, resolve))
}

/**
 * The value of a clock that shows `shownMs` after an answer in which the store reported `nowMs` and the round trip
 * took `wayMs`.
 */
export function timeAfter(shownMs: number, { nowMs, wayMs }: { nowMs: number; wayMs: number }): number {
  return Math.min(Math.max(shownMs, nowMs), nowMs + 1 + wayMs)
}

/** The clock of a real process. Before the first `set` it shows the machine's time. */
export function makeClock(): Clock {
  let storeMs = Date.now()
  let readAtMs = performance.now()
  let isSet = false
  return {
    nowMs: () => Math.floor(storeMs + (performance.now() - readAtMs)),
    monotonicMs: () => performance.now(),
    set(nowMs, sentAtMs) {
      const arrivedAtMs = performance.now()
      const wayMs = arrivedAtMs - sentAtMs
      const shownMs = storeMs + (arrivedAtMs - readAtMs)
      storeMs = isSet ? timeAfter(shownMs, { nowMs, wayMs }) : nowMs + wayMs / 2
      readAtMs = arrivedAtMs
      isSet = true
    },
    after(ms, call) {
      if (ms === 0) {
        const immediate = setImmediate(call)
        return () => clearImmediate(immediate)
      }
      const timer = setTimeout(call, Math.min(Math.max(ms, 0), SLEEP_MAX_MS))
      return () => clearTimeout(timer)
    },
  }
}
