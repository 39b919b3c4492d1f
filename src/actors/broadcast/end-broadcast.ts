/**
 * end-broadcast - the two timers of every broadcast: unreleased messages fail at its end, and its resource is removed
 * with the log.
 *
 * Keys: running, broadcasting, broadcasts, content
 *
 * Spec broadcast.ends, retention.message
 */

import type { CommandType, Decision, TimerBody } from '../../../cluster/behaviour.ts'
import { entityKey } from '../../../cluster/keyspace.ts'
import { isPastAge } from '../../state/age.ts'
import {
  BROADCAST_FORGET_TIMER,
  type BroadcastState,
  broadcastOwner,
  broadcastRef,
  forgetLookDue,
  isOpenBroadcast,
  NO_PROGRESS,
  type Progress,
} from '../../state/broadcast/broadcast.ts'
import { HEAD_PART } from '../../state/broadcast/content.ts'
import { DAY_MS } from '../../state/calendar.ts'
import { broadcastsKey, contentKey } from '../../state/keys.ts'
import { type ServerCounters, serverOwner } from '../../state/server.ts'
import { logMonths } from '../authorization/log-age.ts'
import { BROADCAST_END_TIMER, endWrites, runningFact } from './running.ts'

const NOTHING = { kind: 'done', reply: null } as const

/** Ends a broadcast whose time is over, even if it or its stream is paused. */
export const endBroadcast: CommandType<TimerBody, null> = {
  name: 'end-broadcast',
  frees: true,
  entities: (body) => [broadcastRef(idOf(body, BROADCAST_END_TIMER))],
  counters: (body) => [broadcastOwner(idOf(body, BROADCAST_END_TIMER))],
  facts: () => [],
  decide(body, states, facts, { shard, nowMs }) {
    const broadcast = states.get<BroadcastState | null>(broadcastRef(idOf(body, BROADCAST_END_TIMER)))
    if (broadcast === null || !isOpenBroadcast(broadcast)) return NOTHING
    const { broadcastId, serverId, streamId } = broadcast
    const fact = runningFact(shard, streamId)
    const owner = serverOwner(serverId)
    if (!facts.has(fact) || !states.hasCounter(owner)) return { kind: 'need', facts: [fact], counters: [owner] }
    const progress = states.counter<Progress>(broadcastOwner(broadcastId)) ?? NO_PROGRESS
    const serverCounters = states.counter<ServerCounters>(owner)
    const of = { status: 'completed', progress, running: facts.sorted(fact), serverCounters, shard, nowMs } as const
    const { events, ops, counters, due, notes } = endWrites(broadcast, of)
    return { ...NOTHING, events, ops, counters, due, notes }
  },
}

/** Removes an ended broadcast once none of its messages is in the log. */
export const forgetBroadcast: CommandType<TimerBody, null> = {
  name: 'forget-broadcast',
  frees: true,
  entities: (body) => [broadcastRef(idOf(body, BROADCAST_FORGET_TIMER))],
  counters: () => [],
  facts: () => [],
  decide(body, states, facts, context): Decision<null> {
    const { shard, nowMs } = context
    const broadcast = states.get<BroadcastState | null>(broadcastRef(idOf(body, BROADCAST_FORGET_TIMER)))
    if (broadcast === null) return NOTHING
    const months = logMonths({ states, facts, context }, broadcast.accountId)
    if (typeof months !== 'number') return months
    const { broadcastId, serverId, contentId, endedAtMs, test } = broadcast
    if (!isPastAge(endedAtMs ?? nowMs, { nowMs, test, months }))
      return { ...NOTHING, due: [forgetLookDue(broadcastId, nowMs + DAY_MS)] }
    return {
      ...NOTHING,
      ops: [
        { key: broadcastsKey(shard, serverId), write: 'ZREM', args: [broadcastId] },
        { key: contentKey(shard, contentId, HEAD_PART, 0), write: 'UNLINK', args: [] },
        { key: entityKey(shard, 'broadcast', broadcastId), write: 'PEXPIREAT', args: [String(nowMs + DAY_MS)] },
      ],
    }
  },
}

function idOf({ item }: TimerBody, timer: string): string {
  return item.slice(timer.length + 1)
}
