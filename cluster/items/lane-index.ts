/**
 * lane-index - which lanes of a shard have something due, and when.
 *
 * Held whole in memory: lane -> a lower bound of its earliest due time. The sorted sets in the store are the truth; a
 * bound that is too low costs one read, one that is too high would lose an item, so it is only ever raised by a read
 * made while no commit touched the lane.
 */

export interface LaneTime {
  readonly lane: string
  readonly atMs: number
}

/** Where an item was put by a commit, and whether the store's lower bound of its lane was written too. */
export interface Placed extends LaneTime {
  readonly bound: boolean
}

interface LaneBound {
  earliestMs: number
  /** Lower bound as written in the store; Infinity when it is not there. */
  writtenMs: number
  /** Rises with every commit that touches the lane. */
  touched: number
  scanning: boolean
}

export class LaneIndex {
  private readonly lanes = new Map<string, LaneBound>()

  /** A lane as the store has it at the start. */
  load(lane: string, earliestMs: number): void {
    this.lanes.set(lane, { earliestMs, writtenMs: earliestMs, touched: 0, scanning: false })
  }

  /** Whether an item at `atMs` needs a new lower bound in the store. */
  lowers(lane: string, atMs: number): boolean {
    const bound = this.lanes.get(lane)
    return bound === undefined || atMs < bound.writtenMs
  }

  /** A confirmed commit put an item at `atMs`. */
  touch(lane: string, atMs: number): void {
    const bound = this.lanes.get(lane)
    if (bound === undefined) {
      this.lanes.set(lane, { earliestMs: atMs, writtenMs: Number.POSITIVE_INFINITY, touched: 1, scanning: false })
      return
    }
    bound.touched += 1
    if (atMs < bound.earliestMs) bound.earliestMs = atMs
  }

  /** The store's lower bound of a lane is now `atMs`; Infinity: it is gone. */
  written(lane: string, atMs: number): void {
    const bound = this.lanes.get(lane)
    if (bound === undefined) return
    bound.writtenMs = atMs
    if (atMs === Number.POSITIVE_INFINITY && bound.earliestMs === Number.POSITIVE_INFINITY) this.lanes.delete(lane)
  }

  /** A commit was confirmed. Takes the items that it placed, and the lower bounds that it wrote into the store. */
  confirmed({ placed, indexed }: { placed: readonly Placed[]; indexed: readonly LaneTime[] }): void {
    for (const { lane, atMs, bound } of placed) {
      this.touch(lane, atMs)
      if (bound) this.written(lane, atMs)
    }
    for (const { lane, atMs } of indexed) this.written(lane, atMs)
  }

  earliestMs(lane: string): number {
    return this.lanes.get(lane)?.earliestMs ?? Number.POSITIVE_INFINITY
  }

  /** Lanes with something due that are not being read now. */
  *due(nowMs: number): IterableIterator<string> {
    for (const [lane, bound] of this.lanes) if (bound.earliestMs <= nowMs && !bound.scanning) yield lane
  }

  /** Whether something may be due in the lane, and it is not being read now. */
  isDue(lane: string, nowMs: number): boolean {
    const bound = this.lanes.get(lane)
    return bound !== undefined && bound.earliestMs <= nowMs && !bound.scanning
  }

  /** A read of the lane begins; answers what `scanned` wants back. */
  scan(lane: string): number {
    const bound = this.lanes.get(lane)
    if (bound === undefined) return -1
    bound.scanning = true
    return bound.touched
  }

  /**
   * The read ended: nothing is due before `earliestMs` (null: it failed, or more is due than it read).
   * Answers whether the store's lower bound should be corrected.
   */
  scanned(lane: string, mark: number, earliestMs: number | null): boolean {
    const bound = this.lanes.get(lane)
    if (bound === undefined) return false
    bound.scanning = false
    if (earliestMs === null || bound.touched !== mark) return false
    bound.earliestMs = earliestMs
    return bound.writtenMs !== earliestMs
  }

  get size(): number {
    return this.lanes.size
  }
}
