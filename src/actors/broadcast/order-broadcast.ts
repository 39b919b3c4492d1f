/**
 * order-broadcast - cancel, pause, resume: orders of a client about an open broadcast.
 *
 * Cancel: unreleased messages are never sent and count as failed; released ones are delivered. Pause moves it behind
 * all running ones, resume to the front. A repeated order is answered with the current state, but an ended broadcast
 * takes no order.
 *
 * Spec broadcast.cancel, broadcast.pause
 */

import type { CommandType, Need, Refusal, States } from '../../../cluster/behaviour.ts'
import { msOf } from '../../../cluster/id.ts'
import { type AccountState, accountRef } from '../../state/account.ts'
import {
  type BroadcastState,
  broadcastEntity,
  broadcastOwner,
  broadcastRef,
  isOpenBroadcast,
  isScheduled,
  NO_PROGRESS,
  type Progress,
} from '../../state/broadcast/broadcast.ts'
import { type StreamCounters, streamOwner } from '../../state/complaint-threshold.ts'
import { broadcastingKey, runningKey } from '../../state/keys.ts'
import { type ServerCounters, type ServerState, serverOwner, serverRef, shownServer } from '../../state/server.ts'
import { proves, type Turn } from '../authorization/proof.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import { beginDue } from './begin-broadcast.ts'
import { endWrites, leastTurnFact, PAUSED_TURN, runningFact, stepDue, turnBeside } from './running.ts'

export interface OrderBroadcastBody {
  readonly accountId: string
  readonly serverId: string
  /** SHA-256 of the server key, hex, or the proof of a session. */
  readonly keyHash: string
  readonly broadcastId: string
  readonly order: 'cancel' | 'pause' | 'resume'
}

/** The broadcast as it is now. */
export interface BroadcastOrdered {
  readonly kind: 'broadcast'
  readonly broadcast: BroadcastState
  /** Null for one that has ended. */
  readonly progress: Progress | null
}

export const orderBroadcast: CommandType<OrderBroadcastBody, BroadcastOrdered | Refused> = {
  name: 'order-broadcast',
  entities: ({ accountId, serverId, broadcastId }) => [
    accountRef(accountId),
    serverRef(serverId),
    broadcastRef(broadcastId),
  ],
  counters: ({ serverId, broadcastId }) => [serverOwner(serverId), broadcastOwner(broadcastId)],
  facts: () => [],
  decide(body, states, facts, context) {
    const { shard, nowMs } = context
    const found = findOpenBroadcast(body, states, { facts, context })
    if ('kind' in found) return found
    const { streamId, broadcastId, accountId } = found
    const progress = states.counter<Progress>(broadcastOwner(broadcastId)) ?? NO_PROGRESS
    const ref = broadcastRef(broadcastId)
    if (body.order === 'cancel') {
      const fact = runningFact(shard, streamId)
      if (!facts.has(fact)) return { kind: 'need', facts: [fact] }
      const serverCounters = states.counter<ServerCounters>(serverOwner(found.serverId))
      const running = facts.sorted(fact)
      const { ended, ...writes } = endWrites(found, {
        status: 'cancelled',
        progress,
        running,
        serverCounters,
        shard,
        nowMs,
      })
      return { kind: 'done', reply: { kind: 'broadcast', broadcast: ended, progress: null }, ...writes }
    }
    const isPaused = found.pausedAtMs !== null
    if (isPaused === (body.order === 'pause'))
      return { kind: 'done', reply: { kind: 'broadcast', broadcast: found, progress } }
    if (body.order === 'pause') {
      const event = { type: 'paused', pausedAtMs: nowMs } as const
      const broadcast = broadcastEntity.apply(found, event) as BroadcastState
      return {
        kind: 'done',
        reply: { kind: 'broadcast', broadcast, progress },
        events: [{ ref, event }],
        ops: [{ key: runningKey(shard, streamId), write: 'ZADD', args: [String(PAUSED_TURN), broadcastId] }],
      }
    }
    const least = leastTurnFact(shard, streamId)
    const owner = streamOwner(streamId)
    if (!facts.has(least) || !states.hasCounter(owner)) return { kind: 'need', facts: [least], counters: [owner] }
    const broadcast = broadcastEntity.apply(found, { type: 'resumed' }) as BroadcastState
    const nextMs = states.counter<StreamCounters>(owner)?.nextMs ?? 0
    // One whose time is still to come stays behind all others until then.
    const waits = isScheduled(broadcast, nowMs)
    const turn = waits ? PAUSED_TURN : turnBeside(facts.sorted(least))
    return {
      kind: 'done',
      reply: { kind: 'broadcast', broadcast, progress },
      events: [{ ref, event: { type: 'resumed' } }],
      ops: [
        { key: runningKey(shard, streamId), write: 'ZADD', args: [String(turn), broadcastId] },
        { key: broadcastingKey(shard, accountId), write: 'ZADD', args: [String(msOf(streamId)), streamId] },
      ],
      due: [waits ? beginDue(broadcast) : stepDue(streamId, Math.max(nowMs, nextMs))],
    }
  },
}

function findOpenBroadcast(
  body: OrderBroadcastBody,
  states: States,
  turn: Turn,
): BroadcastState | Refusal<Refused> | Need {
  const server = states.get<ServerState | null>(serverRef(body.serverId))
  const isOwn = shownServer(server, body.accountId) !== null
  const held = isOwn && server !== null && proves(body, server.keys, turn)
  if (typeof held !== 'boolean') return held
  if (!held) return refuse('unauthorized')
  // Spec account.closed
  const account = states.get<AccountState | null>(accountRef(body.accountId))
  if (account === null || account.status === 'closed') return refuse('account_not_active')
  const broadcast = states.get<BroadcastState | null>(broadcastRef(body.broadcastId))
  if (broadcast === null || broadcast.serverId !== body.serverId) return refuse('not_found')
  return isOpenBroadcast(broadcast) ? broadcast : refuse('broadcast_not_open')
}
