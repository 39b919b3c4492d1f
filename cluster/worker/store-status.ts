/**
 * store-status - the store of a shard from a worker's view, with its clock, its silence, and whether a shard without
 * progress is itself at fault
 *
 * With one store the heartbeats decide; with several each shard is judged by its own.
 */
import type { Clock } from '../clock.ts'
import { GAP_MS_MAX, type Primaries, type Primary } from '../primaries.ts'
import type { ShardWorld } from '../shard/world.ts'
import { STUCK_MS, StuckCount } from './stuck-count.ts'

/**
 * A bell is lost when a connection ends, and its shard is woken once the subscription is back; this interval is for
 * other losses.
 */
const SEVERAL_SWEEP_MS = 1_000

/** For the single store, the state reported by heartbeats and commits. */
export interface Whole {
  readonly clock: Clock
  /** Monotonic time of the last answered heartbeat or commit. */
  answeredAtMs(): number
}

export class StoreStatus {
  private readonly whole: Whole
  private readonly primaries: Primaries | null
  private readonly counts = new Map<string, StuckCount>()
  private readonly beats = new StuckCount()

  constructor(whole: Whole, primaries: Primaries | null) {
    this.whole = whole
    this.primaries = primaries
  }

  /** Between two polls of the mailboxes of all shards, ms; with several stores each shard is polled separately. */
  get sweepMs(): number {
    return this.primaries === null ? 0 : SEVERAL_SWEEP_MS
  }

  /** A heartbeat was answered. */
  beat(atMs: number): void {
    this.beats.beat(atMs)
  }

  /** Whichever it is when it is asked. */
  private clockOf(shard: number): Clock {
    const { clock } = this.whole
    if (this.primaries === null) return clock
    const now = (): Clock => this.primaryOf(shard)?.clock ?? clock
    return {
      nowMs: () => now().nowMs(),
      monotonicMs: () => clock.monotonicMs(),
      set: (storeMs, sentAtMs) => now().set(storeMs, sentAtMs),
      after: (ms, call) => clock.after(ms, call),
    }
  }

  /** Each shard uses the clock of its own store. */
  worldOf(shard: number, world: ShardWorld): ShardWorld {
    if (this.primaries === null) return world
    const clock = this.clockOf(shard)
    return { ...world, clock, resync: (nowMs, sentAtMs) => clock.set(nowMs, sentAtMs) }
  }

  /** The time of a shard's store. */
  nowMs(shard: number): number {
    return (this.primaryOf(shard)?.clock ?? this.whole.clock).nowMs()
  }

  /** Name of a shard's store; '' for a single store. */
  nameOf(shard: number): string {
    return this.primaryOf(shard)?.name ?? ''
  }

  /** How long the store of a shard has not answered. */
  silentMs(shard: number, atMs: number): number {
    return atMs - (this.primaryOf(shard)?.answeredAtMs ?? this.whole.answeredAtMs())
  }

  /** Whether a shard without progress is itself at fault, because its store has answered all the time. */
  mayJudge(shard: number, atMs: number): boolean {
    if (this.primaries === null) return this.beats.mayJudge(atMs)
    const primary = this.primaryOf(shard)
    if (primary === null) return false
    return atMs - primary.answeredAtMs <= GAP_MS_MAX && atMs - primary.steadySinceMs >= STUCK_MS
  }

  /** A shard was stuck. True: shards of its store were, too often. */
  stuck(shard: number, atMs: number): boolean {
    if (this.primaries === null) return this.beats.add(atMs)
    const name = this.nameOf(shard)
    const count = this.counts.get(name) ?? new StuckCount()
    this.counts.set(name, count)
    return count.add(atMs)
  }

  private primaryOf(shard: number): Primary | null {
    return this.primaries?.of(shard) ?? null
  }
}
