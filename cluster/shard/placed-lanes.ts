/**
 * placed-lanes - the lanes into which the turns of a batch put items, each with its earliest time.
 */
import type { LaneType } from '../behaviour.ts'
import type { ItemContext } from '../items/claim.ts'
import type { Placed } from '../items/lane-index.ts'
import { laneKey } from '../keyspace.ts'

/** A lane that a batch touches. */
export interface PlacedLane extends Placed {
  /** Name of its sorted set. */
  readonly key: string
  /** Its family; undefined for `timers` and unknown ones. */
  readonly type: LaneType | undefined
  /** The least time of an item that the batch puts there; Infinity if none. */
  atMs: number
  bound: boolean
}

export class PlacedLanes {
  private readonly lanes = new Map<string, PlacedLane>()
  private readonly items: Pick<ItemContext, 'shard' | 'runner' | 'lanes'>
  /** The last result, because messages of one kind follow each other. */
  private last: PlacedLane | null = null

  constructor(items: Pick<ItemContext, 'shard' | 'runner' | 'lanes'>) {
    this.items = items
  }

  /** A lane by its name. */
  at(lane: string): PlacedLane {
    if (this.last?.lane === lane) return this.last
    let placed = this.lanes.get(lane)
    if (placed === undefined) {
      const { shard, runner } = this.items
      const [key, type] = [laneKey(shard, lane), runner.typeOf(lane)]
      placed = { lane, key, type, atMs: Number.POSITIVE_INFINITY, bound: false }
      this.lanes.set(lane, placed)
    }
    this.last = placed
    return placed
  }

  /** An item is put into a lane at `atMs`. Returns whether the store's lower bound must be reduced to that. */
  put(lane: string, atMs: number): boolean {
    const placed = this.at(lane)
    if (atMs >= placed.atMs) return false
    placed.atMs = atMs
    const lowers = this.items.lanes.lowers(lane, atMs)
    placed.bound ||= lowers
    return lowers
  }

  /** The lanes that items were put into. */
  list(): readonly Placed[] {
    return Array.from(this.lanes.values()).filter(({ atMs }) => atMs < Number.POSITIVE_INFINITY)
  }
}
