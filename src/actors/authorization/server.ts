/**
 * server - the authors of orders about an account's servers, and the refusals of every such order, in order.
 *
 * Servers are managed by the keys of their account and by operators. An operator's key is checked before the order,
 * because it is on another shard.
 *
 * Spec refusal.order, account.closed
 */

import type { Need, Ref, Refusal, States } from '../../../cluster/behaviour.ts'
import { type AccountState, accountRef } from '../../state/account.ts'
import type { OperatorAct } from '../../state/audit.ts'
import { type ServerState, serverRef, shownServer } from '../../state/server.ts'
import { proves, type Turn } from './proof.ts'
import { type Refused, refuse } from './refusal.ts'

/** The author of an order about an account's servers. */
export interface AccountOrderer {
  readonly accountId: string
  /** SHA-256 of the account key, hex, or the proof of a session; null for an operator. */
  readonly keyHash: string | null
  /** The operator; absent for an account key. */
  readonly by?: OperatorAct
}

export interface ServerOrder extends AccountOrderer {
  readonly serverId: string
}

/** Entities of an order about one server. */
export function serverOrderEntities({ accountId, serverId }: ServerOrder): Ref[] {
  return [accountRef(accountId), serverRef(serverId)]
}

/** The account of an order, or its refusal: key not live, no such account, account closed. */
export function accountOfOrder(
  { accountId, keyHash, by }: AccountOrderer,
  states: States,
  turn: Turn,
): AccountState | Refusal<Refused> | Need {
  const account = states.get<AccountState | null>(accountRef(accountId))
  const isKnown = account !== null && keyHash !== null
  const held = by !== undefined || (isKnown && proves({ accountId, keyHash }, account.keys, turn))
  if (typeof held !== 'boolean') return held
  if (!held) return refuse('unauthorized')
  if (account === null) return refuse('not_found')
  if (account.status !== 'closed') return account
  return refuse(by === undefined ? 'account_not_active' : 'account_closed')
}

/** The server of an order; null if the account has none with that id. */
export function serverOfOrder({ accountId, serverId }: ServerOrder, states: States): ServerState | null {
  return shownServer(states.get<ServerState | null>(serverRef(serverId)), accountId)
}
