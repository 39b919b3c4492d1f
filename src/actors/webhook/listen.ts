/**
 * listen - keeps a server's live feed open for the next minute: until then each event is signalled, and recorded for
 * ten minutes more, so that an interrupted feed can resume.
 *
 * A feed repeats the command before the minute is over. A server without feeds pays nothing: ten minutes after the
 * last feed the recorded events are removed, and the next feed starts from scratch.
 *
 * Keys: heard
 *
 * Spec operator.events, event.feed
 */

import type { CommandType, Due, TimerBody } from '../../../cluster/behaviour.ts'
import { TIMERS_LANE } from '../../../cluster/keyspace.ts'
import { heardKey } from '../../state/keys.ts'
import { type ServerCounters, type ServerState, serverOwner, serverRef } from '../../state/server.ts'
import { EMPTY_FEED, type FeedCounters, feedOwner, keptUntilMs } from '../../state/webhook/event-feed.ts'
import { proves } from '../authorization/proof.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'

/** A feed repeats the command within this time. */
export const LISTEN_MS = 60_000

/** Timer that removes the events recorded for feeds. */
export const HEARD_TIMER = 'heard'

export interface ListenBody {
  readonly serverId: string
  /** Hash of a server's key, which must be live, or the proof of a session; an operator's key was checked before. */
  readonly keyHash?: string
}

export interface ListenReply {
  readonly kind: 'listening'
  readonly server: ServerState
}

export const listen: CommandType<ListenBody, ListenReply | Refused> = {
  name: 'listen',
  entities: ({ serverId }) => [serverRef(serverId)],
  counters: ({ serverId }) => [serverOwner(serverId)],
  facts: () => [],
  decide({ serverId, keyHash }, states, facts, context) {
    const { shard, nowMs } = context
    const server = states.get<ServerState | null>(serverRef(serverId))
    if (server === null || server.removedAtMs !== undefined)
      return refuse(keyHash === undefined ? 'not_found' : 'unauthorized')
    const { accountId, keys } = server
    const held = keyHash === undefined || proves({ accountId, keyHash }, keys, { facts, context })
    if (typeof held !== 'boolean') return held
    if (!held) return refuse('unauthorized')
    const before = states.counter<ServerCounters>(serverOwner(serverId))
    const isNew = keptUntilMs(before) <= nowMs
    const listenedUntilMs = Math.max(before?.listenedUntilMs ?? 0, nowMs + LISTEN_MS)
    const counters = { ...before, listenedUntilMs }
    const begun = { owner: feedOwner(serverId), value: EMPTY_FEED satisfies FeedCounters }
    return {
      kind: 'done',
      reply: { kind: 'listening', server },
      counters: [{ owner: serverOwner(serverId), value: counters }, ...(isNew ? [begun] : [])],
      ...(isNew && {
        ops: [{ key: heardKey(shard, serverId), write: 'UNLINK', args: [] }],
        due: [heardDue(serverId, keptUntilMs(counters))],
      }),
    }
  },
}

/** Removes recorded events once no feed was open for their retention; otherwise sets the timer again. */
export const forgetHeard: CommandType<TimerBody, null> = {
  name: 'forget-heard',
  frees: true,
  entities: () => [],
  counters: (body) => [serverOwner(serverOf(body))],
  facts: () => [],
  decide(body, states, _facts, { shard, nowMs }) {
    const serverId = serverOf(body)
    const untilMs = keptUntilMs(states.counter<ServerCounters>(serverOwner(serverId)))
    if (untilMs > nowMs) return { kind: 'done', reply: null, due: [heardDue(serverId, untilMs)] }
    return {
      kind: 'done',
      reply: null,
      ops: [{ key: heardKey(shard, serverId), write: 'UNLINK', args: [] }],
      counters: [{ owner: feedOwner(serverId), value: EMPTY_FEED }],
    }
  },
}

function heardDue(serverId: string, atMs: number): Due {
  return { lane: TIMERS_LANE, item: `${HEARD_TIMER}:${serverId}`, atMs }
}

function serverOf({ item }: TimerBody): string {
  return item.slice(HEARD_TIMER.length + 1)
}
