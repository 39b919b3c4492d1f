/**
 * fence - whether a claimed attempt may still be finished, in memory that all threads of a process share.
 *
 * An attempt checks the fence before it begins to transmit, and again right before the step that cannot be undone (the
 * final dot of a message, a post). States: open; held (the store is silent, so the outcome might not be recorded,
 * which may end soon); shut (the process may have been considered dead since the claim, or the shard was lost, so the
 * attempt belongs to another process for good).
 *
 * Guarantees that a pass that was given before heartbeats lapsed, or before its shard was lost, never opens again, also
 * when the first heartbeat after a stop of the whole process is answered; reading it waits for no other thread.
 *
 * Cells (64-bit integers, times in milliseconds of the owner's clock): 0 when the last answered heartbeat was sent; 1
 * whether its connection is open; 2 since when a heartbeat waits for its answer; 3 whether the store is not durable;
 * then for each shard its generation, then for each shard since when a commit waits for its answer. 0 means none.
 */
import { SHARDS } from './id.ts'

/**
 * Heartbeats are sent every three seconds. If none was answered for this long, the store is silent or this process is
 * slow.
 */
const BEAT_AGE_MS_MAX = 5_000
/** Others take a worker for dead after ten silent seconds. */
const LAPSED_MS = 8_000
/** Without its connection a worker is taken for dead after three and a half silent seconds. */
const CUT_OFF_MS_MAX = 3_000
/** If a heartbeat or commit waits this long for its answer, outcomes could not be recorded now. */
const OVERDUE_MS = 1_500

const SENT = 0
const CONNECTED = 1
const BEAT_WAITS = 2
const UNSOUND = 3
const GENERATIONS = 4
const COMMIT_WAITS = GENERATIONS + SHARDS
const CELLS = COMMIT_WAITS + SHARDS

export type FenceCells = BigInt64Array

export type FenceState = 'open' | 'held' | 'shut'

/** Handed to an attempt when its claim is confirmed. Plain data: it goes to threads. */
export interface Pass {
  readonly shard: number
  readonly generation: number
}

/** Cells of a process that has no heartbeat yet: everything is held. */
export function makeFenceCells(): FenceCells {
  return new BigInt64Array(new SharedArrayBuffer(CELLS * BigInt64Array.BYTES_PER_ELEMENT))
}

export class Fence {
  readonly cells: FenceCells
  private readonly nowMs: () => number

  /** `nowMs` is a monotonic clock with whole milliseconds above 0, the same in every thread. */
  constructor(cells: FenceCells, nowMs: () => number) {
    this.cells = cells
    this.nowMs = nowMs
  }

  /** A heartbeat is sent. Returns the time, for `beatAnswered`. */
  beatSent(): number {
    const atMs = this.nowMs()
    if (this.get(BEAT_WAITS) === 0) this.set(BEAT_WAITS, atMs)
    return atMs
  }

  /**
   * A heartbeat that was sent at `sentAtMs` is answered. Returns whether heartbeats had lapsed, so that all passes
   * are shut.
   */
  beatAnswered(sentAtMs: number): boolean {
    const hasLapsed = this.hasLapsed()
    // The generations come first, because no thread may see the new heartbeat with the old generation.
    if (hasLapsed) this.lostAll()
    this.set(SENT, Math.max(sentAtMs, this.get(SENT)))
    this.set(CONNECTED, 1)
    this.set(BEAT_WAITS, 0)
    return hasLapsed
  }

  /**
   * Whether others may consider this process dead by now, and may have removed its record. The next answered heartbeat
   * shuts every pass that is given until then.
   */
  hasLapsed(): boolean {
    const before = this.get(SENT)
    const silentMs = before === 0 ? 0 : this.nowMs() - before
    return silentMs > (this.get(CONNECTED) === 1 ? LAPSED_MS : CUT_OFF_MS_MAX)
  }

  /** The connection of heartbeats and commits has closed: everything is held until the next answered heartbeat. */
  disconnected(): void {
    this.set(CONNECTED, 0)
  }

  /** Everything is held while the store is not durable, because outcomes could not be recorded. */
  hold(isUnsound: boolean): void {
    this.set(UNSOUND, isUnsound ? 1 : 0)
  }

  /** A commit of a shard is on its way; sent again, it is overdue as before. */
  commitSent(shard: number): void {
    if (this.get(COMMIT_WAITS + shard) === 0) this.set(COMMIT_WAITS + shard, this.nowMs())
  }

  /** No commit of a shard is waiting. */
  commitAnswered(shard: number): void {
    this.set(COMMIT_WAITS + shard, 0)
  }

  /** A shard is lost, and its passes are shut. */
  lost(shard: number): void {
    Atomics.add(this.cells, GENERATIONS + shard, 1n)
  }

  /** Every shard is lost. */
  lostAll(): void {
    for (let shard = 0; shard < SHARDS; shard += 1) this.lost(shard)
  }

  /** The pass of a claim confirmed now. */
  passOf(shard: number): Pass {
    return { shard, generation: this.get(GENERATIONS + shard) }
  }

  /** Whether an attempt may be finished now. */
  look({ shard, generation }: Pass): FenceState {
    if (this.get(GENERATIONS + shard) !== generation) return 'shut'
    const isOld = this.nowMs() - this.get(SENT) > BEAT_AGE_MS_MAX
    const isOverdue = this.isOverdue(BEAT_WAITS) || this.isOverdue(COMMIT_WAITS + shard)
    const isUnsound = this.get(UNSOUND) === 1
    return isOld || isOverdue || isUnsound || this.get(CONNECTED) === 0 ? 'held' : 'open'
  }

  private isOverdue(cell: number): boolean {
    const sinceMs = this.get(cell)
    return sinceMs !== 0 && this.nowMs() - sinceMs > OVERDUE_MS
  }

  private get(cell: number): number {
    return Number(Atomics.load(this.cells, cell))
  }

  private set(cell: number, value: number): void {
    Atomics.store(this.cells, cell, BigInt(Math.trunc(value)))
  }
}
