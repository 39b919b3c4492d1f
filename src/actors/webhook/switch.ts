/**
 * switch - enables or disables a webhook. Deliveries queued before a switch-off become dead.
 *
 * The switch itself is one small commit: ids distinguish deliveries queued before from later ones
 * (`state/webhook/delivery.ts`). A timer then writes their records, some hundred deliveries a step.
 *
 * Spec webhook.switch, webhook.states
 */

import type { CommandType, Fact, TimerBody } from '../../../cluster/behaviour.ts'
import { msOf, shortId } from '../../../cluster/id.ts'
import { claimsKey, laneKey, TIMERS_LANE } from '../../../cluster/keyspace.ts'
import { unlessDamaged } from '../../../cluster/sum.ts'
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
import { parseDeliveryItem, postLane } from '../../state/webhook/item.ts'
import {
  listenersRef,
  makeSubscriber,
  type WebhookCounters,
  type WebhookState,
  webhookOwner,
  webhookRef,
} from '../../state/webhook/webhook.ts'
import type { Refused } from '../authorization/refusal.ts'
import { listenerOrderEntities, type WebhookOrder, webhookOfOrder } from '../authorization/webhook.ts'

export const OFF_TIMER = 'off'

const STEP_ITEMS = 200

export interface SwitchWebhookBody extends WebhookOrder {
  readonly enabled: boolean
}

export interface WebhookReply {
  readonly kind: 'webhook'
  readonly webhook: WebhookState
}

export const switchWebhook: CommandType<SwitchWebhookBody, WebhookReply | Refused> = {
  name: 'switch-webhook',
  entities: listenerOrderEntities,
  counters: () => [],
  facts: () => [],
  decide(body, states, facts, context) {
    const webhook = webhookOfOrder(body, states, { facts, context })
    if ('kind' in webhook) return webhook
    const { enabled, serverId, webhookId } = body
    if (webhook.enabled === enabled) return { kind: 'done', reply: { kind: 'webhook', webhook } }
    const off = enabled ? webhook.off : { id: context.newId(), atMs: context.nowMs }
    const switched = { ...webhook, enabled, off }
    return {
      kind: 'done',
      reply: { kind: 'webhook', webhook: switched },
      events: [
        { ref: webhookRef(webhookId), event: { type: 'changed', changes: { enabled, off } } },
        { ref: listenersRef(serverId), event: { type: 'set', listener: makeSubscriber(switched) } },
      ],
      due: enabled ? [] : [{ lane: TIMERS_LANE, item: `${OFF_TIMER}:${webhookId}:0`, atMs: context.nowMs }],
    }
  },
}

/** Records that deliveries queued before the switch-off are dead. Item: `off:<webhookId>:<score to continue at>`. */
export const settleOff: CommandType<TimerBody, null> = {
  name: 'settle off',
  frees: true,
  entities: ({ item }) => [webhookRef(cursorOf(item).webhookId)],
  counters: ({ item }) => [webhookOwner(cursorOf(item).webhookId)],
  facts: ({ item }, _states, { shard }) => [laneFact(shard, cursorOf(item))],
  decide({ item }, states, facts, { shard, nowMs }) {
    const cursor = cursorOf(item)
    const { webhookId } = cursor
    const webhook = states.get<WebhookState | null>(webhookRef(webhookId))
    const waiting = facts.sorted(laneFact(shard, cursor))
    if (webhook === null || webhook.removedAtMs !== null || waiting.length === 0) return { kind: 'done', reply: null }
    const items = waiting.map(([name]) => ({ name, ...parseDeliveryItem(name) }))
    const missing = items
      .flatMap(({ name }) => deliveryFacts(shard, webhookId, name))
      .filter((fact) => !facts.has(fact))
    if (missing.length > 0) return { kind: 'need', facts: missing }
    const dead = items.flatMap((one) => {
      const key = deliveryKey(shard, webhookId, one.slice)
      const record = unlessDamaged(() => unpackRecord(facts.field(key, shortId(one.deliveryId)), msOf(one.deliveryId)))
      if (record === null || !isSwitchedOff(webhook, { deliveryId: one.deliveryId, record })) return []
      const attempts = attemptsMade(record, facts.field(claimsKey(shard), one.name))
      return [{ ...one, record: { ...record, attempts } }]
    })
    const lane = postLane(webhookId)
    const counters = states.counter<WebhookCounters>(webhookOwner(webhookId))
    return {
      kind: 'done',
      reply: null,
      ops: dead.flatMap(({ name, deliveryId, slice, record }) =>
        deadOps(
          { shard, webhookId, deliveryId, slice },
          { item: name, record: deadRecord(record, 'webhook_disabled') },
        ),
      ),
      done: dead.map(({ name }) => ({ lane, item: name })),
      counters: [lessPending(webhookId, counters, dead.length)],
      due: nextStep(cursor, { waiting, ended: dead.length, nowMs }),
    }
  },
}

/** The next step begins at the end of this one, or at its start if it has moved everything there. */
function nextStep(
  { webhookId }: { webhookId: string },
  { waiting, ended, nowMs }: { waiting: readonly (readonly [string, number])[]; ended: number; nowMs: number },
) {
  if (waiting.length < STEP_ITEMS) return []
  const lastScore = waiting.at(-1)?.[1] ?? 0
  const from = ended > 0 ? lastScore : lastScore + 1
  return [{ lane: TIMERS_LANE, item: `${OFF_TIMER}:${webhookId}:${from}`, atMs: nowMs }]
}

function cursorOf(item: string): { readonly webhookId: string; readonly from: number } {
  const [, webhookId = '', from = ''] = item.split(':')
  return { webhookId, from: Number(from) }
}

function laneFact(shard: number, { webhookId, from }: { webhookId: string; from: number }): Fact & { read: 'sorted' } {
  const key = laneKey(shard, postLane(webhookId))
  return { read: 'sorted', key, min: from, max: Number.MAX_SAFE_INTEGER, count: STEP_ITEMS }
}
