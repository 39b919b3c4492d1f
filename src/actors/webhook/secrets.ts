/**
 * secrets - a second signing secret, and the end of one. Values are made before and come sealed.
 *
 * Spec webhook.secrets
 */

import type { CommandType } from '../../../cluster/behaviour.ts'
import { WEBHOOK_SECRETS_MAX } from '../../../schemas/limits.ts'
import { type WebhookSecret, webhookRef } from '../../state/webhook/webhook.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import { type WebhookOrder, webhookOfOrder, webhookOrderEntities } from '../authorization/webhook.ts'

export interface AddSecretBody extends WebhookOrder {
  readonly sealedSecret: string
}

export interface AddSecretReply {
  readonly kind: 'added'
  readonly secret: Omit<WebhookSecret, 'sealed'>
}

export interface RemoveSecretBody extends WebhookOrder {
  readonly secretId: string
}

export const addSecret: CommandType<AddSecretBody, AddSecretReply | Refused> = {
  name: 'add-secret',
  entities: webhookOrderEntities,
  counters: () => [],
  facts: () => [],
  decide(body, states, facts, context) {
    const { nowMs, newId } = context
    const webhook = webhookOfOrder(body, states, { facts, context })
    if ('kind' in webhook) return webhook
    if (webhook.secrets.length >= WEBHOOK_SECRETS_MAX) return refuse('secret_limit', { max: WEBHOOK_SECRETS_MAX })
    const secret = { secretId: newId(), createdAtMs: nowMs }
    const secrets = [...webhook.secrets, { ...secret, sealed: body.sealedSecret }]
    return {
      kind: 'done',
      reply: { kind: 'added', secret },
      events: [{ ref: webhookRef(body.webhookId), event: { type: 'changed', changes: { secrets } } }],
    }
  },
}

export const removeSecret: CommandType<RemoveSecretBody, { readonly kind: 'removed' } | Refused> = {
  name: 'remove-secret',
  entities: webhookOrderEntities,
  counters: () => [],
  facts: () => [],
  decide(body, states, facts, context) {
    const webhook = webhookOfOrder(body, states, { facts, context })
    if ('kind' in webhook) return webhook
    const secrets = webhook.secrets.filter(({ secretId }) => secretId !== body.secretId)
    if (secrets.length === webhook.secrets.length) return refuse('not_found')
    if (secrets.length === 0) return refuse('last_secret')
    return {
      kind: 'done',
      reply: { kind: 'removed' },
      events: [{ ref: webhookRef(body.webhookId), event: { type: 'changed', changes: { secrets } } }],
    }
  },
}
