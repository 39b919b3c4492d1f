/**
 * touches - the attribution of refusals to faults
 *
 * An ask waits for its answer while owners change, and is refused when its deadline has passed. The fault that caused
 * it may be long over by then. So a refusal belongs to every fault during the life of its request.
 */

/** The number of faults that are kept. No request lives through more. */
const KEPT_MAX = 64

interface Touch {
  readonly fromMs: number
  /** Shards that lost their owner; null: all shards. */
  readonly shards: ReadonlySet<number> | null
}

/** The faults of a run, each until the next begins. Instants by one clock that never goes back. */
export class Touches {
  private readonly touches: Touch[] = []

  /**
   * A fault begins that takes these shards from their owner (null: all; none: a time in which nothing may be refused).
   */
  begin(fromMs: number, shards: ReadonlySet<number> | null): void {
    this.touches.push({ fromMs, shards })
    if (this.touches.length > KEPT_MAX) this.touches.shift()
  }

  /** Whether a fault explains the refusal of a request of this shard, sent and answered at these times. */
  explain(shard: number, sentAtMs: number, heardAtMs: number): boolean {
    return this.touches.some(({ fromMs, shards }, place) => {
      const toMs = this.touches[place + 1]?.fromMs ?? Number.POSITIVE_INFINITY
      return fromMs <= heardAtMs && sentAtMs <= toMs && (shards === null || shards.has(shard))
    })
  }
}
