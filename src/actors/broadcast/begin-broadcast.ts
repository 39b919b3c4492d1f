/**
 * begin-broadcast - lets a scheduled broadcast be released once its time has come.
 *
 * Until then it has the turn of a paused one, behind all others of its stream, so it is cancelled, erased and closed
 * like any other. One that is paused begins when it is resumed.
 *
 * Keys: running
 *
 * Spec broadcast.at
 */

import type { CommandType, Due, TimerBody } from '../../../cluster/behaviour.ts'
import { TIMERS_LANE } from '../../../cluster/keyspace.ts'
import { type BroadcastState, broadcastRef, isOpenBroadcast, isScheduled } from '../../state/broadcast/broadcast.ts'
import { type StreamCounters, streamOwner } from '../../state/complaint-threshold.ts'
import { runningKey } from '../../state/keys.ts'
import { leastTurnFact, stepDue, turnBeside } from './running.ts'

export const BROADCAST_BEGIN_TIMER = 'broadcast-begin'

/** When a scheduled broadcast begins. */
export function beginDue({ broadcastId, sendAtMs = 0 }: BroadcastState): Due {
  return { lane: TIMERS_LANE, item: `${BROADCAST_BEGIN_TIMER}:${broadcastId}`, atMs: sendAtMs }
}

export const beginBroadcast: CommandType<TimerBody, null> = {
  name: 'begin-broadcast',
  entities: (body) => [broadcastRef(broadcastOf(body))],
  counters: () => [],
  facts: () => [],
  decide(body, states, facts, { shard, nowMs }) {
    const broadcast = states.get<BroadcastState | null>(broadcastRef(broadcastOf(body)))
    if (broadcast === null || !isOpenBroadcast(broadcast) || broadcast.pausedAtMs !== null)
      return { kind: 'done', reply: null }
    // The clock went back.
    if (isScheduled(broadcast, nowMs)) return { kind: 'done', reply: null, due: [beginDue(broadcast)] }
    const { broadcastId, streamId } = broadcast
    const [least, owner] = [leastTurnFact(shard, streamId), streamOwner(streamId)]
    if (!facts.has(least) || !states.hasCounter(owner)) return { kind: 'need', facts: [least], counters: [owner] }
    const nextMs = states.counter<StreamCounters>(owner)?.nextMs ?? 0
    const turn = turnBeside(facts.sorted(least))
    return {
      kind: 'done',
      reply: null,
      ops: [{ key: runningKey(shard, streamId), write: 'ZADD', args: [String(turn), broadcastId] }],
      due: [stepDue(streamId, Math.max(nowMs, nextMs))],
    }
  },
}

function broadcastOf({ item }: TimerBody): string {
  return item.slice(BROADCAST_BEGIN_TIMER.length + 1)
}
