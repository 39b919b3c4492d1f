/**
 * primaries - with several stores, the state of the one that holds a shard
 *
 * An unreachable one does not stop the others, because each has its own clock, silence, and start of gapless answers.
 */
import type { Clock } from './clock.ts'

/** Answers with a longer gap between them are two times. */
export const GAP_MS_MAX = 4_000

/** One of the stores that hold shards. */
export interface Primary {
  readonly name: string
  readonly clock: Clock
  /** Monotonic time of its last answer. */
  readonly answeredAtMs: number
  /** Start of its gapless answers, monotonic. */
  readonly steadySinceMs: number
}

/** The store that holds a shard; null while unknown. */
export interface Primaries {
  of(shard: number): Primary | null
}

/** Times of answers, and since when they have come without a gap. */
export class AnswerTimes {
  lastMs: number
  sinceMs: number

  constructor(atMs: number) {
    this.lastMs = atMs
    this.sinceMs = Number.POSITIVE_INFINITY
  }

  /** There was an answer. */
  note(atMs: number): void {
    if (this.sinceMs === Number.POSITIVE_INFINITY || atMs - this.lastMs > GAP_MS_MAX) this.sinceMs = atMs
    this.lastMs = atMs
  }
}
