/**
 * replay - queues a delivery again, and an example of an event for the first time.
 *
 * The same delivery and event; the schedule of retries starts again, the count of attempts goes on. One that waits is due
 * now; one that is being attempted is left to that attempt, with the schedule before it again.
 *
 * Spec webhook.replay, webhook.example
 */

import type { CommandType } from '../../../cluster/behaviour.ts'
import { msOf, shortId } from '../../../cluster/id.ts'
import { claimsKey } from '../../../cluster/keyspace.ts'
import { WEBHOOK_BACKLOG_MAX } from '../../../schemas/limits.ts'
import type { EventName } from '../../../schemas/webhook.ts'
import { deadKey, deliveryKey } from '../../state/keys.ts'
import { TIMERS_LANE } from '../../state/message/item.ts'
import {
  attemptsMade,
  attemptsOfRow,
  type DeliveryRecord,
  deliveryFacts,
  isGone,
  isThinned,
  morePending,
  recordOp,
  shownRecord,
  unpackRecord,
} from '../../state/webhook/delivery.ts'
import { formatItem, parseItem, postLane } from '../../state/webhook/item.ts'
import { type WebhookCounters, webhookOwner } from '../../state/webhook/webhook.ts'
import { type Refused, refuse } from '../order/refusal.ts'
import { type WebhookOrder, webhookOfOrder, webhookOrderCounters, webhookOrderEntities } from '../order/webhook.ts'
import { daySlicesFact, foundItem, placeFacts } from '../webhook-find.ts'
import { announced, BACKLOG_TIMER, Queue } from './announce.ts'

export interface ReplayBody extends WebhookOrder {
  readonly deliveryId: string
}

export interface ExampleBody extends WebhookOrder {
  readonly event: EventName
}

/** A delivery that was queued. */
export interface QueuedReply {
  readonly kind: 'queued'
  readonly item: string
  readonly record: DeliveryRecord
}

export const replay: CommandType<ReplayBody, QueuedReply | Refused> = {
  name: 'replay-delivery',
  entities: webhookOrderEntities,
  counters: webhookOrderCounters,
  facts: ({ webhookId, deliveryId }, _states, { shard }) => [daySlicesFact(shard, webhookId, deliveryId)],
  decide(body, states, facts, { shard, nowMs }) {
    const webhook = webhookOfOrder(body, states)
    if ('kind' in webhook) return webhook
    const { webhookId, deliveryId } = body
    const places = placeFacts(facts.sorted(daySlicesFact(shard, webhookId, deliveryId)), { shard, ...body })
    if (places.some((fact) => !facts.has(fact))) return { kind: 'need', facts: places }
    const item = foundItem(
      places.map((fact) => (fact.read === 'range' ? facts.range(fact) : facts.sorted(fact))),
      deliveryId,
    )
    if (item === null) return refuse('not_found')
    const delivery = parseItem(item)
    if (isGone(delivery, { nowMs, test: webhook.test })) return refuse('not_found')
    const { slice } = delivery
    const wished = deliveryFacts(shard, webhookId, item)
    if (wished.some((fact) => !facts.has(fact))) return { kind: 'need', facts: wished }
    const key = deliveryKey(shard, webhookId, slice)
    const stored = unpackRecord(facts.field(key, shortId(deliveryId)), msOf(deliveryId))
    const before = shownRecord(webhook, { deliveryId, record: stored })
    if (!webhook.enabled) return refuse('webhook_disabled')
    const row = facts.field(claimsKey(shard), item)
    const record = requeued(before, { row, nowMs })
    const counters = states.counter<WebhookCounters>(webhookOwner(webhookId))
    const wasCounted = stored.status === 'pending'
    const pending = (counters?.pending ?? 0) + (wasCounted ? 0 : 1)
    const due = isBeingAttempted(row, nowMs) ? [] : [{ lane: postLane(webhookId), item, atMs: nowMs }]
    const backlog = { lane: TIMERS_LANE, item: `${BACKLOG_TIMER}:${webhookId}`, atMs: nowMs }
    return {
      kind: 'done',
      reply: { kind: 'queued', item, record },
      ops: [
        recordOp({ shard, webhookId, deliveryId, slice }, record),
        ...(isThinned(slice, nowMs)
          ? []
          : [{ key: deadKey(shard, webhookId, slice), write: 'ZREM', args: [item] } as const]),
      ],
      counters: wasCounted ? [] : [morePending(webhookId, counters, [delivery])],
      due: pending > WEBHOOK_BACKLOG_MAX ? [...due, backlog] : due,
    }
  },
}

export const example: CommandType<ExampleBody, QueuedReply | Refused> = {
  name: 'example-event',
  entities: webhookOrderEntities,
  counters: webhookOrderCounters,
  facts: () => [],
  decide(body, states, facts, context) {
    const webhook = webhookOfOrder(body, states)
    if ('kind' in webhook) return webhook
    if (!webhook.enabled) return refuse('webhook_disabled')
    const queue = new Queue({ states, facts, context })
    const reference = { kind: 'example', event: body.event, madeUpId: context.newId() } as const
    const { deliveryId, slice } = queue.add(body.webhookId, reference)
    const item = formatItem({ deliveryId, slice, reference })
    const record = unpackRecord(null, msOf(deliveryId))
    return announced({ kind: 'done', reply: { kind: 'queued', item, record } }, queue.staged())
  },
}

/**
 * The record of a delivery that is queued again: its next attempt is counted as one more than were ever begun. In: its
 * row of `claims`, which one that has not left its lane keeps, whatever became of it; null for none.
 */
export function requeued(
  before: DeliveryRecord,
  { row, nowMs }: { row: string | null; nowMs: number },
): DeliveryRecord {
  const base = attemptsMade(before, row) - attemptsOfRow(row)
  return {
    ...before,
    status: 'pending',
    base,
    failures: 0,
    nextAttemptAtMs: nowMs,
    deliveredAtMs: null,
    queuedAtMs: nowMs,
  }
}

function isBeingAttempted(row: string | null, nowMs: number): boolean {
  if (row === null) return false
  const [worker, , , untilMs] = JSON.parse(row) as [string, string, number, number]
  return worker !== '' && untilMs > nowMs
}
