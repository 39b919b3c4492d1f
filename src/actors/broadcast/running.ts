/**
 * running - which broadcasts of a stream wait to be released, and the timers that do it.
 *
 * `running:<stream>` has the open broadcasts by their turn, which grows by one with each message. The lowest is next,
 * so two broadcasts share a stream's pace message by message; a paused one has a turn behind all others. A timer
 * `broadcast:<stream>` takes one step; it is placed by orders that create work, and by each step for the next.
 * `broadcasting:<account>` names the streams to wake when a hold of the account ends.
 *
 * Spec broadcast.release, broadcast.fair
 */

import type { CommandType, Due, Fact, Op, TimerBody } from '../../../cluster/behaviour.ts'
import { TIMERS_LANE } from '../../../cluster/keyspace.ts'
import {
  type BroadcastState,
  broadcastEndsAtMs,
  broadcastOwner,
  broadcastRef,
  forgetLookDue,
  type Progress,
} from '../../state/broadcast/broadcast.ts'
import { bucketPart, endFilesOps } from '../../state/broadcast/content.ts'
import { type BroadcastNote, endNote } from '../../state/broadcast/note.ts'
import { DAY_MS } from '../../state/calendar.ts'
import { type StreamCounters, streamOwner } from '../../state/complaint-threshold.ts'
import { broadcastingKey, contentKey, runningKey } from '../../state/keys.ts'
import { type ServerCounters, serverOwner } from '../../state/server.ts'

export const BROADCAST_TIMER = 'broadcast'
export const BROADCAST_END_TIMER = 'broadcast-end'
export const BROADCAST_WAKE_TIMER = 'broadcast-wake'

/** Days before the first look at an ended one's age: less than any 13 months, and 30 days. */
const LIVE_KEPT_DAYS = 394
const TEST_KEPT_DAYS = 30
/** Streams that one step wakes. */
const STEP_STREAMS = 500

type SortedFact = Fact & { read: 'sorted' }

/** The next step of a stream's broadcasts. */
export function stepDue(streamId: string, atMs: number): Due {
  return { lane: TIMERS_LANE, item: `${BROADCAST_TIMER}:${streamId}`, atMs: Math.ceil(atMs) }
}

/** When the remaining messages of a broadcast fail. */
export function endDue(broadcast: BroadcastState): Due {
  return {
    lane: TIMERS_LANE,
    item: `${BROADCAST_END_TIMER}:${broadcast.broadcastId}`,
    atMs: broadcastEndsAtMs(broadcast),
  }
}

/** Wakes all streams of an account that have open broadcasts, step by step. */
export function wakeDue(accountId: string, nowMs: number, fromMs = 0): Due {
  return { lane: TIMERS_LANE, item: `${BROADCAST_WAKE_TIMER}:${accountId}.${fromMs}`, atMs: nowMs }
}

/** Turn of a paused one, behind all running ones, so that it is found when its account is closed. */
export const PAUSED_TURN = 2 ** 52

/** The turn of a starting or resumed one: that of the next one. `running` is the result of `leastTurnFact`. */
export function turnBeside(running: readonly (readonly [string, number])[]): number {
  const least = running[0]?.[1] ?? 0
  return least < PAUSED_TURN ? least : 0
}

/** The next broadcast of a stream to release, with its turn. */
export function leastTurnFact(shard: number, streamId: string): SortedFact {
  return { read: 'sorted', key: runningKey(shard, streamId), min: 0, max: Number.MAX_SAFE_INTEGER, count: 1 }
}

/** The two that are next: whether there is another one beside the first. */
export function runningFact(shard: number, streamId: string): SortedFact {
  return { ...leastTurnFact(shard, streamId), count: 2 }
}

/** The writes of a broadcast's end, for any reason. `all`: both results of `runningFact`. */
export function endWrites(
  broadcast: BroadcastState,
  of: {
    readonly status: 'completed' | 'cancelled'
    readonly progress: Progress
    readonly running: readonly (readonly [string, number])[]
    readonly serverCounters: ServerCounters | null
    readonly shard: number
    readonly nowMs: number
  },
): {
  readonly events: { ref: ReturnType<typeof broadcastRef>; event: unknown }[]
  readonly ops: Op[]
  readonly counters: { owner: string; value: unknown }[]
  readonly done: { lane: string; item: string }[]
  readonly due: Due[]
  readonly notes: BroadcastNote[]
  readonly ended: BroadcastState
} {
  const { broadcastId, accountId, serverId, streamId, contentId, total, buckets } = broadcast
  const { status, progress, running, serverCounters, shard, nowMs } = of
  const event = { status, released: progress.released, failed: total - progress.released, endedAtMs: nowMs } as const
  const ops: Op[] = [
    { key: runningKey(shard, streamId), write: 'ZREM', args: [broadcastId] },
    ...endFilesOps(shard, broadcast, nowMs),
  ]
  for (let bucket = progress.bucket; bucket < buckets; bucket += 1)
    ops.push({ key: contentKey(shard, contentId, bucketPart(bucket), 0), write: 'UNLINK', args: [] })
  const { lane, item } = endDue(broadcast)
  if (running.every(([id]) => id === broadcastId))
    ops.push({ key: broadcastingKey(shard, accountId), write: 'ZREM', args: [streamId] })
  const openBroadcasts = Math.max(0, (serverCounters?.openBroadcasts ?? 0) - 1)
  return {
    events: [{ ref: broadcastRef(broadcastId), event: { type: 'ended', ...event } }],
    ops,
    counters: [
      { owner: broadcastOwner(broadcastId), value: null },
      { owner: serverOwner(serverId), value: { ...serverCounters, openBroadcasts } },
    ],
    done: [{ lane, item }],
    due: [forgetDue({ ...broadcast, endedAtMs: nowMs })],
    notes: [endNote(broadcast, progress, status)],
    ended: { ...broadcast, ...event, pausedAtMs: null },
  }
}

/** The first look whether an ended broadcast is past its age. */
export function forgetDue({ broadcastId, test, endedAtMs }: BroadcastState): Due {
  const atMs = (endedAtMs ?? 0) + (test ? TEST_KEPT_DAYS : LIVE_KEPT_DAYS) * DAY_MS
  return forgetLookDue(broadcastId, atMs)
}

/** Places the timers of an account's streams that have open broadcasts. */
export const wakeBroadcasts: CommandType<TimerBody, null> = {
  name: 'wake-broadcasts',
  frees: true,
  entities: () => [],
  counters: () => [],
  facts: (body, _states, { shard }) => [wakingFact(shard, body)],
  decide(body, states, facts, { shard, nowMs }) {
    const rows = facts.sorted(wakingFact(shard, body))
    const owners = rows.map(([streamId]) => streamOwner(streamId))
    if (!owners.every((owner) => states.hasCounter(owner))) return { kind: 'need', counters: owners }
    const due = rows.map(([streamId]) => {
      const nextMs = states.counter<StreamCounters>(streamOwner(streamId))?.nextMs ?? 0
      return stepDue(streamId, Math.max(nowMs, nextMs))
    })
    const { accountId } = wakingOf(body)
    const [, lastMs = 0] = rows.at(-1) ?? []
    if (rows.length === STEP_STREAMS) due.push(wakeDue(accountId, nowMs, lastMs + 1))
    return { kind: 'done', reply: null, due }
  },
}

function wakingFact(shard: number, body: TimerBody): SortedFact {
  const { accountId, fromMs } = wakingOf(body)
  return {
    read: 'sorted',
    key: broadcastingKey(shard, accountId),
    min: fromMs,
    max: Number.MAX_SAFE_INTEGER,
    count: STEP_STREAMS,
  }
}

function wakingOf({ item }: TimerBody): { accountId: string; fromMs: number } {
  const [accountId = '', fromMs = '0'] = item.slice(BROADCAST_WAKE_TIMER.length + 1).split('.')
  return { accountId, fromMs: Number(fromMs) }
}
