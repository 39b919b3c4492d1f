/**
 * webhook-health - the state of a server's webhooks: pending and dead deliveries, the share that arrived, the last
 * result
 *
 * Spec webhook.health
 */

import type { FromSchema } from 'json-schema-to-ts'
import { PAGE_MAX, WEBHOOK_DEAD_COUNTED_MAX, WEBHOOK_RECENT } from '../limits.ts'
import { strictObject, UUID, UUID_OR_NULL } from '../shape.ts'
import { DELIVERY } from '../webhook.ts'

const COUNT = { type: 'integer', minimum: 0 } as const

/** Answer of GET /v1/webhooks/health: the webhooks of a page of GET /v1/webhooks, in its order. */
export const WEBHOOK_HEALTH = strictObject({
  webhooks: {
    type: 'array',
    maxItems: PAGE_MAX,
    items: strictObject({
      webhookId: UUID,
      pending: { ...COUNT, description: 'Deliveries that wait for their next attempt' },
      dead: {
        ...COUNT,
        maximum: WEBHOOK_DEAD_COUNTED_MAX,
        description: `Dead deliveries that can be replayed; ${WEBHOOK_DEAD_COUNTED_MAX} means that many or more`,
      },
      attempted: { ...COUNT, description: `Of the newest ${WEBHOOK_RECENT} deliveries, those that were attempted` },
      delivered: { ...COUNT, description: 'Of these, those that were delivered' },
      last: {
        ...DELIVERY,
        type: ['object', 'null'],
        description: `The newest delivery that was attempted; null: none among the newest ${WEBHOOK_RECENT}`,
      },
    }),
  },
  next: UUID_OR_NULL,
})

export type WebhookHealth = FromSchema<typeof WEBHOOK_HEALTH>['webhooks'][number]
