/**
 * prepare-post - the URL, the secrets and the event of an attempt at a webhook.
 *
 * Guarantees: deliveries queued before a switch-off end dead here, if the timer of the switch-off has not reached them
 * yet; for a removed webhook, or an expired message, nothing is posted.
 *
 * Spec webhook.attempt, webhook.states, retention.delivery
 */

import type { CommandType, Decision, PrepareBody } from '../../../cluster/behaviour.ts'
import { msOf, shortId } from '../../../cluster/id.ts'
import { claimsKey } from '../../../cluster/keyspace.ts'
import { deliveryKey } from '../../state/keys.ts'
import {
  attemptsMade,
  deadOps,
  deadRecord,
  deliveryFacts,
  isSwitchedOff,
  lessPending,
  unpackRecord,
} from '../../state/webhook/delivery.ts'
import { parseDeliveryItem, type WebhookItem, webhookOfLane } from '../../state/webhook/item.ts'
import { type WebhookCounters, type WebhookState, webhookOwner, webhookRef } from '../../state/webhook/webhook.ts'
import { isPastDelivery } from '../authorization/log-age.ts'

/** One attempt. Its number is that of the claim, beyond those made before the delivery was last queued. */
export interface PostJob {
  readonly webhook: Pick<
    WebhookState,
    'webhookId' | 'accountId' | 'serverId' | 'url' | 'secrets' | 'inboundContent' | 'format' | 'sealedUser'
  >
  readonly delivery: WebhookItem
  readonly attemptsBefore: number
  /** Deliveries of the webhook that wait, this one included. */
  readonly waiting: number
}

export const preparePost: CommandType<PrepareBody, PostJob | null> = {
  name: 'prepare post',
  entities: ({ lane }) => [webhookRef(webhookOfLane(lane))],
  counters: ({ lane }) => [webhookOwner(webhookOfLane(lane))],
  facts: ({ lane, item }, _states, { shard }) => deliveryFacts(shard, webhookOfLane(lane), item),
  decide({ lane, item }, states, facts, context): Decision<PostJob | null> {
    const { shard } = context
    const webhookId = webhookOfLane(lane)
    const webhook = states.get<WebhookState | null>(webhookRef(webhookId))
    if (webhook === null || webhook.removedAtMs !== null) return NOTHING
    const delivery = parseDeliveryItem(item)
    const { deliveryId, slice } = delivery
    const key = deliveryKey(shard, webhookId, slice)
    const record = unpackRecord(facts.field(key, shortId(deliveryId)), msOf(deliveryId))
    if (record.status !== 'pending') return NOTHING
    const counted = states.counter<WebhookCounters>(webhookOwner(webhookId))
    const counters = [lessPending(webhookId, counted, 1)]
    if (isSwitchedOff(webhook, { deliveryId, record })) {
      const attempts = attemptsMade(record, facts.field(claimsKey(shard), item))
      const dead = deadRecord({ ...record, attempts }, 'webhook_disabled')
      return { ...NOTHING, ops: deadOps({ shard, webhookId, deliveryId, slice }, { item, record: dead }), counters }
    }
    const isPast = isPastDelivery(delivery, webhook, { states, facts, context })
    if (typeof isPast !== 'boolean') return isPast
    if (isPast) return { ...NOTHING, counters }
    const job = { webhook, delivery, attemptsBefore: record.base, waiting: counted?.pending ?? 1 }
    return { kind: 'done', reply: job }
  },
}

const NOTHING = { kind: 'done', reply: null } as const
