/**
 * listen - somebody listens to a server's events for the next minute: until then each event is told by a signal.
 *
 * Who listens asks again before the minute is over. A server that nobody listens to pays nothing.
 *
 * Spec operator.events
 */

import type { CommandType } from '../../../cluster/behaviour.ts'
import { type ServerCounters, type ServerState, serverOwner, serverRef } from '../../state/server.ts'
import { type Refused, refuse } from '../order/refusal.ts'

/** Who listens asks again within this. */
export const LISTEN_MS = 60_000

export interface ListenReply {
  readonly kind: 'listening'
  readonly server: ServerState
}

export const listen: CommandType<{ readonly serverId: string }, ListenReply | Refused> = {
  name: 'listen',
  entities: ({ serverId }) => [serverRef(serverId)],
  counters: ({ serverId }) => [serverOwner(serverId)],
  facts: () => [],
  decide({ serverId }, states, _facts, { nowMs }) {
    const server = states.get<ServerState | null>(serverRef(serverId))
    if (server === null || server.removedAtMs !== undefined) return refuse('not_found')
    const counters = states.counter<ServerCounters>(serverOwner(serverId))
    const listenedUntilMs = Math.max(counters?.listenedUntilMs ?? 0, nowMs + LISTEN_MS)
    return {
      kind: 'done',
      reply: { kind: 'listening', server },
      counters: [{ owner: serverOwner(serverId), value: { ...counters, listenedUntilMs } }],
    }
  },
}
