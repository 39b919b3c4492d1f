/**
 * listen - somebody listens to a server's events for the next minute: until then each event is told by a signal, and
 * written down for ten minutes more, so that a feed that was cut off can go on.
 *
 * Who listens asks again before the minute is over. A server that nobody listens to pays nothing: where nobody has
 * listened for the ten minutes, what was written goes, and the next who listens begins anew.
 *
 * Keys: heard
 *
 * Spec operator.events, event.feed
 */

import type { CommandType, Due, TimerBody } from '../../../cluster/behaviour.ts'
import { TIMERS_LANE } from '../../../cluster/keyspace.ts'
import { heardKey } from '../../state/keys.ts'
import { type ServerCounters, type ServerState, serverOwner, serverRef } from '../../state/server.ts'
import { type HeardCounters, heardOwner, keptUntilMs, NOTHING_HEARD } from '../../state/webhook/heard.ts'
import { proves } from '../order/proof.ts'
import { type Refused, refuse } from '../order/refusal.ts'

/** Who listens asks again within this. */
export const LISTEN_MS = 60_000

/** Timer that lets go what was written down for who listens. */
export const HEARD_TIMER = 'heard'

export interface ListenBody {
  readonly serverId: string
  /** Of a server's key, which must be live, or the proof of a session; an operator's was looked at before. */
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
    const begun = { owner: heardOwner(serverId), value: NOTHING_HEARD satisfies HeardCounters }
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

/** What was written down goes once nobody has listened for as long as it is kept; else it is looked at again then. */
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
      counters: [{ owner: heardOwner(serverId), value: NOTHING_HEARD }],
    }
  },
}

function heardDue(serverId: string, atMs: number): Due {
  return { lane: TIMERS_LANE, item: `${HEARD_TIMER}:${serverId}`, atMs }
}

function serverOf({ item }: TimerBody): string {
  return item.slice(HEARD_TIMER.length + 1)
}
