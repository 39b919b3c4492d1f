/**
 * reseal - values that the walk of a rotation has sealed again take the place of those that it has read.
 *
 * A value that has changed in the meantime is left, and the next walk finds it again if it needs to. The stream of a
 * webhook has the secrets of earlier states too, which leave it once the last state has new ones.
 *
 * Keys: `head`, `received-head`, `dkim`, `user`, `egress`, `webhook`
 *
 * Spec secret.rotate
 */

import type { CommandType, Fact, Op } from '../../../cluster/behaviour.ts'
import { entityKey } from '../../../cluster/keyspace.ts'
import { MessageRows } from '../../state/message/row.ts'
import { type WebhookState, webhookRef } from '../../state/webhook/webhook.ts'
import { thaw } from '../message/thaw.ts'

/** A field as it was read, and what takes its place. */
export type ResealedField = readonly [field: string, before: string, after: string]

/** Some fields of a hash. Heads name their segment, because it may be on its way out of Redis. */
export interface ResealBody {
  readonly key: string
  readonly of: { readonly serverId: string; readonly segment: string } | null
  readonly fields: readonly ResealedField[]
}

/** How many fields were changed. */
export interface ResealReply {
  readonly kind: 'resealed'
  readonly changed: number
}

export const reseal: CommandType<ResealBody, ResealReply> = {
  name: 'reseal',
  frees: true,
  entities: () => [],
  counters: () => [],
  facts: ({ key, of, fields }, _states, { shard }): Fact[] => [
    { read: 'fields', key, fields: fields.map(([field]) => field) },
    ...(of === null ? [] : [new MessageRows(shard, of).sealedFact()]),
  ],
  decide({ key, of, fields }, _states, facts, context) {
    const same = fields.filter(([field, before]) => facts.field(key, field) === before)
    const reply: ResealReply = { kind: 'resealed', changed: same.length }
    if (same.length === 0) return { kind: 'done', reply }
    const thawed = of === null ? { ops: [], due: [] } : thaw(new MessageRows(context.shard, of), facts, context)
    const op: Op = { key, write: 'HSET', args: same.flatMap(([field, , after]) => [field, after]) }
    return { kind: 'done', reply, ops: [...thawed.ops, op], due: thawed.due }
  },
}

/** The sealed values of a webhook, and the same sealed again. */
export interface ResealWebhookBody {
  readonly webhookId: string
  readonly secrets: Readonly<Record<string, string>>
}

/** Maximum number of entries of an entity that are read. */
const ENTRIES_MAX = 100

export const resealWebhook: CommandType<ResealWebhookBody, ResealReply> = {
  name: 'reseal-webhook',
  entities: ({ webhookId }) => [webhookRef(webhookId)],
  counters: () => [],
  facts: ({ webhookId }, _states, { shard }) => [entriesFact(shard, webhookId)],
  decide({ webhookId, secrets }, states, facts, { shard }) {
    const webhook = states.get<WebhookState | null>(webhookRef(webhookId))
    if (webhook === null) return { kind: 'done', reply: { kind: 'resealed', changed: 0 } }
    const changed = webhook.secrets.filter(({ sealed }) => secrets[sealed] !== undefined).length
    const user = webhook.sealedUser === undefined ? undefined : secrets[webhook.sealedUser]
    if (changed > 0 || user !== undefined) {
      const changes = {
        secrets: webhook.secrets.map((one) => ({ ...one, sealed: secrets[one.sealed] ?? one.sealed })),
        ...(user !== undefined && { sealedUser: user }),
      }
      const events = [{ ref: webhookRef(webhookId), event: { type: 'changed', changes } }]
      return { kind: 'done', reply: { kind: 'resealed', changed: changed + Number(user !== undefined) }, events }
    }
    const { key } = entriesFact(shard, webhookId)
    const last = facts.range(entriesFact(shard, webhookId)).at(-1)
    const ops: Op[] = last === undefined ? [] : [{ key, write: 'XTRIM', args: ['MINID', last.id] }]
    return { kind: 'done', reply: { kind: 'resealed', changed: 0 }, ops }
  },
}

function entriesFact(shard: number, webhookId: string): Fact & { readonly read: 'range' } {
  return { read: 'range', key: entityKey(shard, 'webhook', webhookId), from: '-', to: '+', count: ENTRIES_MAX }
}
