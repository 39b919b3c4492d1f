/**
 * remove - removes a webhook, for which nothing more is queued or posted, and drops its deliveries in small steps.
 *
 * Spec webhook.remove
 */

import type { CommandType, Staged, TimerBody } from '../../../cluster/behaviour.ts'
import { countersKey, entityKey, laneKey, TIMERS_LANE } from '../../../cluster/keyspace.ts'
import { accountRef } from '../../state/account.ts'
import { DAY_MS } from '../../state/calendar.ts'
import { blocksKey, deadKey, deliveryKey, namesKey, queueKey, slicesKey } from '../../state/keys.ts'
import { serverRef } from '../../state/server.ts'
import { postLane } from '../../state/webhook/item.ts'
import { slicesFact } from '../../state/webhook/slice.ts'
import {
  listenersRef,
  type Subscriber,
  type WebhookState,
  webhookOwner,
  webhookRef,
} from '../../state/webhook/webhook.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import { holderOfOrder, listenerOrderEntities, type WebhookOrder, webhookOfOrder } from '../authorization/webhook.ts'
import { webhookName } from './create.ts'

export const DROP_TIMER = 'drop'

/** Items and slices of one step. */
const STEP_ITEMS = 500
const STEP_SLICES = 20

export const removeWebhook: CommandType<WebhookOrder, { readonly kind: 'removed' } | Refused> = {
  name: 'remove-webhook',
  entities: listenerOrderEntities,
  counters: () => [],
  facts: () => [],
  decide(body, states, facts, context) {
    const { shard, nowMs } = context
    const webhook = webhookOfOrder(body, states, { facts, context })
    if ('kind' in webhook) return webhook
    const holder = holderOfOrder(body, states, { facts, context })
    if ('kind' in holder) return refuse('unauthorized')
    const { accountId, serverId, webhookId } = body
    const listeners = states.get<readonly Subscriber[] | null>(listenersRef(serverId)) ?? []
    const isLast = listeners.every((one) => one.webhookId === webhookId)
    const removal = webhookRemoval(webhook, { shard, nowMs })
    const webhookServers = (holder.account.webhookServers ?? []).filter((one) => one.serverId !== serverId)
    return {
      kind: 'done',
      reply: { kind: 'removed' },
      ...removal,
      events: [
        ...removal.events,
        ...(isLast
          ? [
              { ref: serverRef(serverId), event: { type: 'webhooks', hasWebhooks: false } },
              { ref: accountRef(accountId), event: { type: 'webhook servers', webhookServers } },
            ]
          : []),
      ],
    }
  },
}

/**
 * The writes that remove a webhook, alone or with its server. The caller records whether it was the last one of the
 * server, or of the account.
 */
export function webhookRemoval(webhook: WebhookState, { shard, nowMs }: { shard: number; nowMs: number }) {
  const { accountId, serverId, webhookId } = webhook
  return {
    events: [
      { ref: webhookRef(webhookId), event: { type: 'changed', changes: { removedAtMs: nowMs, secrets: [] } } },
      { ref: listenersRef(serverId), event: { type: 'removed', webhookId } },
    ],
    ops: [
      { key: namesKey(shard, accountId), write: 'HDEL', args: [webhookName(webhook)] },
      { key: entityKey(shard, 'webhook', webhookId), write: 'PEXPIREAT', args: [String(nowMs + DAY_MS)] },
    ],
    due: [{ lane: TIMERS_LANE, item: `${DROP_TIMER}:${webhookId}`, atMs: nowMs }],
  } satisfies Staged
}

/** Drops the data of a removed webhook, first its lane, then its slices. */
export const drop: CommandType<TimerBody, null> = {
  name: 'drop',
  frees: true,
  entities: () => [],
  counters: () => [],
  facts: ({ item }, _states, { shard }) => [
    laneFact(shard, idOf(item)),
    slicesFact(shard, idOf(item), { count: STEP_SLICES }),
  ],
  decide({ item }, _states, facts, { shard, nowMs }) {
    const webhookId = idOf(item)
    const lane = postLane(webhookId)
    const again = [{ lane: TIMERS_LANE, item, atMs: nowMs }]
    const items = facts.sorted(laneFact(shard, webhookId))
    if (items.length > 0)
      return { kind: 'done', reply: null, done: items.map(([name]) => ({ lane, item: name })), due: again }
    const slices = facts.sorted(slicesFact(shard, webhookId, { count: STEP_SLICES })).map(([name]) => name)
    if (slices.length === 0) {
      const forgotten = { key: countersKey(shard), write: 'HDEL', args: [webhookOwner(webhookId)] } as const
      return { kind: 'done', reply: null, ops: [forgotten] }
    }
    const keys = slices.flatMap((slice) => [
      queueKey(shard, webhookId, slice),
      blocksKey(shard, webhookId, slice),
      deliveryKey(shard, webhookId, slice),
      deadKey(shard, webhookId, slice),
    ])
    const ops = keys.map((key) => ({ key, write: 'UNLINK', args: [] }) as const)
    const gone = { key: slicesKey(shard, webhookId), write: 'ZREM', args: slices } as const
    return { kind: 'done', reply: null, ops: [...ops, gone], due: again }
  },
}

function idOf(item: string): string {
  return item.slice(DROP_TIMER.length + 1)
}

function laneFact(shard: number, webhookId: string) {
  const key = laneKey(shard, postLane(webhookId))
  return { read: 'sorted', key, min: 0, max: Number.MAX_SAFE_INTEGER, count: STEP_ITEMS } as const
}
