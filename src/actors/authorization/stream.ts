/**
 * stream - the refusals common to all orders of a server key about its streams, in order.
 *
 * Spec refusal.order
 */

import type { Need, Ref, Refusal, States } from '../../../cluster/behaviour.ts'
import { type AccountState, accountRef } from '../../state/account.ts'
import { type ServerState, serverRef, shownServer } from '../../state/server.ts'
import { type StreamState, streamRef } from '../../state/stream.ts'
import { proves, type Turn } from './proof.ts'
import { type Refused, refuse } from './refusal.ts'

/** The author of an order. */
export interface ServerKeyOrder {
  readonly accountId: string
  readonly serverId: string
  /** SHA-256 of the server key, hex, or the proof of a session. */
  readonly keyHash: string
}

export interface StreamOrder extends ServerKeyOrder {
  readonly streamId: string
}

/** The account and the server of a live key. */
export interface Tenant {
  readonly account: AccountState
  readonly server: ServerState
}

/** The reply to orders about a stream. */
export interface StreamReply {
  readonly kind: 'stream'
  readonly stream: StreamState
}

/** Entities of an order. */
export function serverKeyOrderEntities({ accountId, serverId }: ServerKeyOrder): Ref[] {
  return [accountRef(accountId), serverRef(serverId)]
}

/** Entities of an order about one stream. */
export function streamOrderEntities(order: StreamOrder): Ref[] {
  return [...serverKeyOrderEntities(order), streamRef(order.streamId)]
}

/** Whose order it is; or the refusal of a key that is not live. */
export function authorizeTenant(order: ServerKeyOrder, states: States, turn: Turn): Tenant | Refusal<Refused> | Need {
  const { accountId, serverId } = order
  const account = states.get<AccountState | null>(accountRef(accountId))
  const server = states.get<ServerState | null>(serverRef(serverId))
  if (account === null || shownServer(server, accountId) === null || server === null) return refuse('unauthorized')
  const held = proves(order, server.keys, turn)
  if (typeof held !== 'boolean') return held
  return held ? { account, server } : refuse('unauthorized')
}

/** Refuses writes of a closed account; null for the others. Spec account.closed */
export function refuseClosed({ account }: Tenant): Refusal<Refused> | null {
  return account.status === 'closed' ? refuse('account_not_active') : null
}

/** The stream of an order; null if the server has none with that id. */
export function streamOfOrder({ serverId, streamId }: StreamOrder, states: States): StreamState | null {
  const stream = states.get<StreamState | null>(streamRef(streamId))
  return stream?.serverId === serverId ? stream : null
}
