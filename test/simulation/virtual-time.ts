/**
 * virtual-time - time that passes only when the scheduler advances it, and the clocks of workers in it.
 *
 * Each worker's monotonic time runs at its own rate from its own origin. Its estimate of the store's time is the
 * store's last answer plus the monotonic time since. A timer is due when its worker's monotonic time has reached it,
 * and the scheduler calls it.
 */
import { type Clock, timeAfter } from '../../cluster/clock.ts'

export interface Timer {
  readonly owner: WorkerClock
  /** Virtual time from which it may be called. */
  readonly atMs: number
  readonly call: () => void
}

export class VirtualTime {
  nowMs = 0
  readonly timers = new Set<Timer>()

  /** Timers of `owners` that may be called now, in the order in which they were set. */
  dueTimers(owners: ReadonlySet<WorkerClock>): Timer[] {
    return [...this.timers].filter((timer) => timer.atMs <= this.nowMs && owners.has(timer.owner))
  }

  /** Virtual time of the next timer of `owners`; Infinity without one. */
  nextMs(owners: ReadonlySet<WorkerClock>): number {
    let least = Number.POSITIVE_INFINITY
    for (const timer of this.timers) if (owners.has(timer.owner)) least = Math.min(least, timer.atMs)
    return least
  }

  call(timer: Timer): void {
    this.timers.delete(timer)
    timer.call()
  }

  /** The timers of a process that died end with it. */
  forget(owner: WorkerClock): void {
    for (const timer of this.timers) if (timer.owner === owner) this.timers.delete(timer)
  }
}

export class WorkerClock implements Clock {
  private readonly time: VirtualTime
  private readonly rate: number
  private readonly originMs: number
  private storeMs: number
  private readAtMs: number

  constructor(time: VirtualTime, { rate, originMs, storeMs }: { rate: number; originMs: number; storeMs: number }) {
    this.time = time
    this.rate = rate
    this.originMs = originMs
    this.storeMs = storeMs
    this.readAtMs = this.monotonicMs()
  }

  /** Another clock of the same worker, for a store whose time differs by this much. */
  twin(offMs: number): WorkerClock {
    const { originMs, rate, time } = this
    return new WorkerClock(time, { originMs, rate, storeMs: this.nowMs() + offMs })
  }

  nowMs(): number {
    return Math.floor(this.storeMs + this.monotonicMs() - this.readAtMs)
  }

  monotonicMs(): number {
    return this.originMs + this.time.nowMs * this.rate
  }

  set(storeMs: number, sentAtMs: number): void {
    const arrivedAtMs = this.monotonicMs()
    const shownMs = this.storeMs + arrivedAtMs - this.readAtMs
    this.storeMs = timeAfter(shownMs, { nowMs: storeMs, wayMs: arrivedAtMs - sentAtMs })
    this.readAtMs = arrivedAtMs
  }

  after(ms: number, call: () => void): () => void {
    const timer: Timer = { owner: this, atMs: this.time.nowMs + Math.max(ms, 0) / this.rate, call }
    this.time.timers.add(timer)
    return () => this.time.timers.delete(timer)
  }
}
