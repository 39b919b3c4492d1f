/**
 * stuck-count - counts how often shards of this process got stuck while the store answered its heartbeats.
 *
 * A shard without progress for ten seconds is dropped and acquired again; the third time in a minute shows that the
 * fault is in the process. Shards that get stuck together have one cause and count once. While the store is unreachable
 * nothing progresses anywhere, which is not a fault.
 */

/** A shard that has not moved for this long is stuck. */
export const STUCK_MS = 10_000
/** An older answered heartbeat proves nothing about the present. */
const BEAT_AGE_MAX_MS = 4_000
const TIMES_MAX = 3
const WITHIN_MS = 60_000
const TOGETHER_MS = 1_000

export class StuckCount {
  private readonly withinMs: number
  private beatsSinceMs = Number.POSITIVE_INFINITY
  private lastBeatMs = Number.NEGATIVE_INFINITY
  private times: number[] = []

  constructor({ withinMs = WITHIN_MS }: { withinMs?: number } = {}) {
    this.withinMs = withinMs
  }

  /** A heartbeat was answered. */
  beat(atMs: number): void {
    if (atMs - this.lastBeatMs > BEAT_AGE_MAX_MS) this.beatsSinceMs = atMs
    this.lastBeatMs = atMs
  }

  /** Whether heartbeats have been answered for so long that a shard without progress is itself at fault. */
  mayJudge(atMs: number): boolean {
    return atMs - this.lastBeatMs <= BEAT_AGE_MAX_MS && atMs - this.beatsSinceMs >= STUCK_MS
  }

  /** A shard was stuck. True: too often. */
  add(atMs: number): boolean {
    const last = this.times.at(-1)
    if (last !== undefined && atMs - last < TOGETHER_MS) return false
    this.times = [...this.times.filter((time) => atMs - time < this.withinMs), atMs].slice(-TIMES_MAX)
    return this.times.length === TIMES_MAX
  }
}
