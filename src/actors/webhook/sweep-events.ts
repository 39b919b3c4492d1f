/**
 * sweep-events - removes old events from the log of a server: whole slices, and the oldest events of the next one
 *
 * A step of the server's daily sweep, repeated until nothing is past its age.
 *
 * Spec event.search, retention.message
 */

import type { FactOf, Facts, Need, Op } from '../../../cluster/behaviour.ts'
import { eventSlicesKey, eventsKey } from '../../state/keys.ts'
import { eventSlicesFact } from '../../state/webhook/event-log.ts'
import { sliceEndMs } from '../../state/webhook/slice.ts'

/** Slices of one step. */
const STEP_SLICES = 20

/** The writes of one step, and whether the log has later slices. */
interface EventSweep {
  readonly ops: readonly Op[]
  readonly isLeft: boolean
}

interface SweepOf {
  readonly shard: number
  readonly serverId: string
  readonly cutoff: number
  /** A removed server's last slice goes when it is empty, and not with its month. */
  readonly isRemoved: boolean
}

/** The oldest slices, which a step of the sweep begins with. */
export function oldestSlicesFact(shard: number, serverId: string): FactOf<'sorted'> {
  return eventSlicesFact(shard, serverId, { count: STEP_SLICES + 1 })
}

/** A step of the sweep, which removes events before `cutoff`. The facts contain the oldest slices. */
export function sweepEvents(facts: Facts, { shard, serverId, cutoff, isRemoved }: SweepOf): EventSweep | Need {
  const rows = facts.sorted(oldestSlicesFact(shard, serverId))
  const past = rows
    .filter(([name], place) => Math.min(rows[place + 1]?.[1] ?? Number.POSITIVE_INFINITY, sliceEndMs(name)) <= cutoff)
    .map(([name]) => name)
  if (past.length > 0)
    return { ops: removalOf(past, { shard, serverId }), isLeft: past.length < rows.length || rows.length > STEP_SLICES }
  const [oldest] = rows
  if (oldest === undefined) return { ops: [], isLeft: false }
  const key = eventsKey(shard, serverId, oldest[0])
  const first = { read: 'range', key, from: '-', to: String(cutoff - 1), count: 1 } as const
  if (!facts.has(first)) return { kind: 'need', facts: [first] }
  if (facts.range(first).length === 0) {
    if (!isRemoved || rows.length > 1) return { ops: [], isLeft: true }
    const any = { read: 'range', key, from: '-', to: '+', count: 1 } as const
    if (!facts.has(any)) return { kind: 'need', facts: [any] }
    if (facts.range(any).length > 0) return { ops: [], isLeft: true }
    return { ops: removalOf([oldest[0]], { shard, serverId }), isLeft: false }
  }
  return { ops: [{ key, write: 'XTRIM', args: ['MINID', `${cutoff}-0`] }], isLeft: true }
}

function removalOf(names: readonly string[], { shard, serverId }: Pick<SweepOf, 'shard' | 'serverId'>): Op[] {
  const ops: Op[] = names.map((name) => ({ key: eventsKey(shard, serverId, name), write: 'UNLINK', args: [] }))
  ops.push({ key: eventSlicesKey(shard, serverId), write: 'ZREM', args: names })
  return ops
}
