/**
 * token - the authors of orders about the keys of a server or an account, and the refusals of every such order.
 *
 * A server's keys are managed by its own keys, by its account's and by operators; an account's by its own and by
 * operators. An operator's key is checked before the order, because it is on another shard.
 *
 * Spec refusal.order, key.live.max
 */

import type { Need, Ref, Refusal, States } from '../../../cluster/behaviour.ts'
import { type AccountState, accountRef } from '../../state/account.ts'
import type { ApiKey, LiveKey } from '../../state/api-key.ts'
import type { OperatorAct } from '../../state/audit.ts'
import { type ServerState, serverRef, shownServer } from '../../state/server.ts'
import { proves, type Turn } from './proof.ts'
import { type Refused, refuse } from './refusal.ts'

/** The owner of the keys, and the author of the order. */
export interface TokenOrder {
  readonly accountId: string
  /** Null for the account's own keys. */
  readonly serverId: string | null
  /** Kind of the key that orders; a session orders as its account or as one of its servers. */
  readonly orderedBy: ApiKey['kind']
  /** SHA-256 of that key, hex, or the proof of a session. */
  readonly keyHash: string
  /** The operator, if one gives the order. */
  readonly by?: OperatorAct
}

/** The state of the owner of keys. */
export interface KeyHolder {
  readonly ref: Ref
  readonly ownerId: string
  readonly keys: readonly LiveKey[]
  /** The permissions of a new key of this owner. */
  readonly grant: Pick<ApiKey, 'kind' | 'accountId' | 'serverId' | 'mode' | 'streamId'>
}

/** Entities of an order. */
export function tokenOrderEntities({ accountId, serverId }: TokenOrder): Ref[] {
  return serverId === null ? [accountRef(accountId)] : [accountRef(accountId), serverRef(serverId)]
}

/** The owner that the order names; or its refusal: key not live, account closed, no such server of the account. */
export function authorizeKeyHolder(order: TokenOrder, states: States, turn: Turn): KeyHolder | Refusal<Refused> | Need {
  const account = states.get<AccountState | null>(accountRef(order.accountId))
  const found = order.serverId === null ? null : states.get<ServerState | null>(serverRef(order.serverId))
  const server = shownServer(found, order.accountId)
  const keys = order.orderedBy === 'server' ? server?.keys : account?.keys
  const held = order.orderedBy === 'operator' || (keys !== undefined && proves(order, keys, turn))
  if (typeof held !== 'boolean') return held
  if (!held) return refuse('unauthorized')
  // Spec account.closed
  if (account?.status === 'closed')
    return refuse(order.orderedBy === 'operator' ? 'account_closed' : 'account_not_active')
  if (account === null || (order.serverId !== null && server === null)) return refuse('not_found')
  return server === null ? holderOfAccount(account) : holderOfServer(server)
}

/** The ids that an order about one key names, for the audit log. */
export function targetsOf({ accountId, serverId }: TokenOrder, tokenId: string): Record<string, string> {
  return serverId === null ? { accountId, tokenId } : { accountId, serverId, tokenId }
}

function holderOfAccount({ accountId, keys }: AccountState): KeyHolder {
  const grant = { kind: 'account', accountId, serverId: null, mode: null, streamId: null } as const
  return { ref: accountRef(accountId), ownerId: accountId, keys, grant }
}

function holderOfServer({ serverId, accountId, mode, defaultStreamId, keys }: ServerState): KeyHolder {
  const grant = { kind: 'server', accountId, serverId, mode, streamId: defaultStreamId } as const
  return { ref: serverRef(serverId), ownerId: serverId, keys, grant }
}
