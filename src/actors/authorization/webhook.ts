/**
 * webhook - the refusals common to all orders of a server key about its webhooks, in order.
 *
 * Spec refusal.order
 */

import type { Need, Ref, Refusal, States } from '../../../cluster/behaviour.ts'
import { accountRef } from '../../state/account.ts'
import { serverRef } from '../../state/server.ts'
import { listenersRef, type WebhookState, webhookOwner, webhookRef } from '../../state/webhook/webhook.ts'
import type { Turn } from './proof.ts'
import { type Refused, refuse } from './refusal.ts'
import { authorizeTenant, refuseClosed, type ServerKeyOrder, type Tenant } from './stream.ts'

export interface WebhookOrder extends ServerKeyOrder {
  readonly webhookId: string
}

/** Entities of an order about one webhook. */
export function webhookOrderEntities({ accountId, serverId, webhookId }: WebhookOrder): Ref[] {
  return [accountRef(accountId), serverRef(serverId), webhookRef(webhookId)]
}

/** The same if the order changes data that announcements read. */
export function listenerOrderEntities(body: WebhookOrder): Ref[] {
  return [...webhookOrderEntities(body), listenersRef(body.serverId)]
}

/** Owner of the counters of an order that queues. */
export function webhookOrderCounters({ webhookId }: WebhookOrder): string[] {
  return [webhookOwner(webhookId)]
}

/** Account and server of an order, or its refusal: key not live, account closed. */
export function holderOfOrder(order: ServerKeyOrder, states: States, turn: Turn): Tenant | Refusal<Refused> | Need {
  const tenant = authorizeTenant(order, states, turn)
  return 'kind' in tenant ? tenant : (refuseClosed(tenant) ?? tenant)
}

/** The webhook that an order names, or the order's refusal. */
export function webhookOfOrder(
  order: WebhookOrder,
  states: States,
  turn: Turn,
): WebhookState | Refusal<Refused> | Need {
  const holder = holderOfOrder(order, states, turn)
  if ('kind' in holder) return holder
  const webhook = states.get<WebhookState | null>(webhookRef(order.webhookId))
  return webhook === null || webhook.serverId !== order.serverId || webhook.removedAtMs !== null
    ? refuse('not_found')
    : webhook
}
