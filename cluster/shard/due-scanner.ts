/**
 * due-scanner - finds the items of a shard whose time has come.
 *
 * A scan only finds candidates. The turn of each item checks its score again, so an old read does no harm. An item
 * that is already queued is not pushed twice; an item that the queue refused is pushed again by the next scan.
 */

import type { Fact } from '../behaviour.ts'
import type { LaneIndex } from '../items/lane-index.ts'
import { laneKey, TIMERS_LANE } from '../keyspace.ts'
import type { Work, WorkSource } from '../work.ts'
import type { Plan } from './batch.ts'
import type { ShardWorld } from './world.ts'

const SCAN_MAX = 50

/** Queues the work of an item. Returns whether the queue took it. */
type Push = (source: WorkSource, lane: string, item: string) => boolean

export class DueScanner {
  private readonly shard: number
  private readonly world: ShardWorld
  private readonly lanes: LaneIndex
  private readonly push: Push
  private readonly pending = new Set<string>()

  constructor(world: ShardWorld, { shard, lanes, push }: { shard: number; lanes: LaneIndex; push: Push }) {
    this.world = world
    this.shard = shard
    this.lanes = lanes
    this.push = push
  }

  /** Starts a read of every lane that has something due and room. */
  scanDue(): void {
    for (const lane of this.lanes.due(this.world.clock.nowMs())) {
      const room = lane === TIMERS_LANE ? SCAN_MAX : Math.min(this.world.runner.room(lane), SCAN_MAX)
      if (room > 0) void this.scan(lane, room)
    }
  }

  /**
   * A commit was confirmed: timers that it made due fire at once, and the serial and prompt lanes that it touched
   * continue.
   */
  scanAfter({ works, placed }: Pick<Plan, 'works' | 'placed'>): void {
    const nowMs = this.world.clock.nowMs()
    const touched = new Set<string>()
    for (const { lane, atMs } of placed) if (atMs <= nowMs) touched.add(lane)
    for (const { source, lane } of works) if (source === 'outcome' || source === 'claim') touched.add(lane)
    for (const lane of touched) {
      if (!this.lanes.isDue(lane, nowMs)) continue
      const count = this.goesOnWith(lane)
      if (count > 0) void this.scan(lane, count)
    }
  }

  /** The number of items to read at once from a lane that a commit has changed. */
  private goesOnWith(lane: string): number {
    const { runner } = this.world
    if (lane === TIMERS_LANE) return SCAN_MAX
    const type = runner.typeOf(lane)
    if (type?.serial === true) return Math.min(runner.room(lane), 1)
    return type?.prompt === true ? Math.min(runner.room(lane), SCAN_MAX) : 0
  }

  /** A work has ended, and its item may be found again. */
  forget({ source, lane, item }: Work): void {
    this.pending.delete(nameOf(source, lane, item))
  }

  private async scan(lane: string, count: number): Promise<void> {
    const nowMs = this.world.clock.nowMs()
    const mark = this.lanes.scan(lane)
    const key = laneKey(this.shard, lane)
    const fact: Fact = { read: 'sorted', key, min: 0, max: Number.MAX_SAFE_INTEGER, count: count + 1 }
    const values = await this.world.store.read(this.shard, [fact])
    const items = values === null ? [] : (values[0] as readonly (readonly [string, number])[])
    const due = items.filter(([, score]) => score <= nowMs)
    for (const [item] of due.slice(0, count)) this.pushOnce(lane === TIMERS_LANE ? 'timer' : 'claim', lane, item)
    const later = items.find(([, score]) => score > nowMs)?.[1] ?? Number.POSITIVE_INFINITY
    const nothingDue = values !== null && due.length === 0
    if (this.lanes.scanned(lane, mark, nothingDue ? later : null)) this.pushOnce('index', lane, '')
  }

  private pushOnce(source: WorkSource, lane: string, item: string): void {
    const name = nameOf(source, lane, item)
    if (!this.pending.has(name) && this.push(source, lane, item)) this.pending.add(name)
  }
}

function nameOf(source: WorkSource, lane: string, item: string): string {
  return `${source} ${lane} ${item}`
}
