/**
 * domain - the refusals common to all orders of an account key or a session about domains, in order.
 *
 * Spec refusal.order
 */

import type { Need, Ref, Refusal, States } from '../../../cluster/behaviour.ts'
import { type AccountState, accountRef } from '../../state/account.ts'
import { type DomainState, domainRef } from '../../state/domain.ts'
import { proves, type Turn } from './proof.ts'
import { type Refused, refuse } from './refusal.ts'

/** The author of an order. */
export interface AccountOrder {
  readonly accountId: string
  /** SHA-256 of the account key, hex, or the proof of a session. */
  readonly keyHash: string
}

export interface DomainOrder extends AccountOrder {
  readonly domainId: string
}

/** Entities of an order about one domain. */
export function domainOrderEntities({ accountId, domainId }: DomainOrder): Ref[] {
  return [accountRef(accountId), domainRef(domainId)]
}

/** Refuses a key that is not live, and writes of a closed account; null when the order holds. */
export function refuseOrder(order: AccountOrder, states: States, turn: Turn): Refusal<Refused> | Need | null {
  const account = states.get<AccountState | null>(accountRef(order.accountId))
  const held = account !== null && proves(order, account.keys, turn)
  if (typeof held !== 'boolean') return held
  if (account === null || !held) return refuse('unauthorized')
  return account.status === 'closed' ? refuse('account_not_active') : null
}

/** The domain of the order; null if the account has none with that id. */
export function domainOfOrder({ accountId, domainId }: DomainOrder, states: States): DomainState | null {
  const domain = states.get<DomainState | null>(domainRef(domainId))
  return domain === null || domain.accountId !== accountId || domain.removedAtMs !== null ? null : domain
}
