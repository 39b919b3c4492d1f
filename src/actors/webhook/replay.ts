/**
 * replay - queues a delivery again, and an example of an event for the first time.
 *
 * The same delivery and event; the schedule of retries starts again, the count of attempts continues. A pending one is
 * due now; one with an attempt in progress is left to it, with its schedule restarted.
 *
 * `replayDead` queues dead deliveries again, oldest first, step by step. A step reads some slices from a cursor on and
 * takes no more than fit into the backlog. The caller repeats it until all are queued.
 *
 * Spec webhook.replay, webhook.example
 */

import type { CommandType, Fact, Op } from '../../../cluster/behaviour.ts'
import { msOf, shortId } from '../../../cluster/id.ts'
import { claimsKey, TIMERS_LANE } from '../../../cluster/keyspace.ts'
import { WEBHOOK_BACKLOG_MAX } from '../../../schemas/limits.ts'
import type { EventName } from '../../../schemas/webhook.ts'
import { ID_SCORE_STEP, idScore } from '../../state/id-score.ts'
import { deadKey, deliveryKey } from '../../state/keys.ts'
import { blockFact } from '../../state/webhook/block.ts'
import {
  attemptsMade,
  attemptsOfRow,
  type DeliveryRecord,
  daySlicesFact,
  deliveryFacts,
  foundItem,
  isGone,
  isThinned,
  mergedRecord,
  morePending,
  placeFacts,
  recordFact,
  recordOp,
  shownRecord,
  unpackRecord,
} from '../../state/webhook/delivery.ts'
import { formatItem, parseDeliveryItem, postLane } from '../../state/webhook/item.ts'
import { sliceEndMs, slicesFact } from '../../state/webhook/slice.ts'
import { type WebhookCounters, webhookOwner } from '../../state/webhook/webhook.ts'
import { isPastDelivery, logMonths } from '../authorization/log-age.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import {
  type WebhookOrder,
  webhookOfOrder,
  webhookOrderCounters,
  webhookOrderEntities,
} from '../authorization/webhook.ts'
import { announced, BACKLOG_TIMER, DeliveryQueue } from './announce.ts'

export interface ReplayDeliveryBody extends WebhookOrder {
  readonly deliveryId: string
}

export interface ExampleEventBody extends WebhookOrder {
  readonly event: EventName
}

/** A delivery that was queued. */
export interface QueuedReply {
  readonly kind: 'queued'
  readonly item: string
  readonly record: DeliveryRecord
}

export const replay: CommandType<ReplayDeliveryBody, QueuedReply | Refused> = {
  name: 'replay-delivery',
  entities: webhookOrderEntities,
  counters: webhookOrderCounters,
  facts: ({ webhookId, deliveryId }, _states, { shard }) => [daySlicesFact(shard, webhookId, deliveryId)],
  decide(body, states, facts, context) {
    const { shard, nowMs } = context
    const webhook = webhookOfOrder(body, states, { facts, context })
    if ('kind' in webhook) return webhook
    const { webhookId, deliveryId } = body
    const slices = facts.sorted(daySlicesFact(shard, webhookId, deliveryId))
    const places = placeFacts(slices, { shard, ...body })
    if (places.some((fact) => !facts.has(fact))) return { kind: 'need', facts: places }
    const item = foundItem(
      slices,
      places.map((fact) => (fact.read === 'range' ? facts.range(fact) : facts.sorted(fact))),
      deliveryId,
    )
    if (item === null) return refuse('not_found')
    const delivery = parseDeliveryItem(item)
    const isPast = isPastDelivery(delivery, webhook, { states, facts, context })
    if (typeof isPast !== 'boolean') return isPast
    if (isPast) return refuse('not_found')
    const { slice } = delivery
    const block = blockFact({ shard, webhookId, slice }, deliveryId)
    const wished = [...deliveryFacts(shard, webhookId, item), block]
    if (wished.some((fact) => !facts.has(fact))) return { kind: 'need', facts: wished }
    const key = deliveryKey(shard, webhookId, slice)
    const field = facts.field(key, shortId(deliveryId))
    const stored = mergedRecord(delivery, { field, blocks: facts.sorted(block) })
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

export const example: CommandType<ExampleEventBody, QueuedReply | Refused> = {
  name: 'example-event',
  entities: webhookOrderEntities,
  counters: webhookOrderCounters,
  facts: () => [],
  decide(body, states, facts, context) {
    const webhook = webhookOfOrder(body, states, { facts, context })
    if ('kind' in webhook) return webhook
    if (!webhook.enabled) return refuse('webhook_disabled')
    const queue = new DeliveryQueue({ states, facts, context })
    const reference = { kind: 'example', event: body.event, madeUpId: context.newId() } as const
    const { deliveryId, slice } = queue.add(body.webhookId, reference)
    const item = formatItem({ deliveryId, slice, reference })
    const record = unpackRecord(null, msOf(deliveryId))
    return announced({ kind: 'done', reply: { kind: 'queued', item, record } }, queue.staged())
  },
}

/** Maximum number of deliveries of one step, and of slices that it reads. */
const STEP_ITEMS = 200
const STEP_SLICES = 20
/** Read of a slice. In an old one, the last delivery read stays listed, and comes first again in the next step. */
const READ_ITEMS = STEP_ITEMS + 1

type SortedFact = Fact & { read: 'sorted' }

export interface ReplayDeadBody extends WebhookOrder {
  readonly fromMs: number
  /** Before this; null = no bound. */
  readonly toMs: number | null
  /** The position to continue from; null for the oldest. */
  readonly after: ReplayCursor | null
}

/** A slice, and the last delivery checked in it. */
export interface ReplayCursor {
  readonly slice: string
  readonly deliveryId: string
}

export interface ReplayDeadReply {
  readonly kind: 'replayed'
  readonly queued: number
  /** Go on after this; null: that was all, or all that there is room for. */
  readonly next: ReplayCursor | null
}

export const replayDead: CommandType<ReplayDeadBody, ReplayDeadReply | Refused> = {
  name: 'replay-dead',
  entities: webhookOrderEntities,
  counters: webhookOrderCounters,
  facts: ({ webhookId }, _states, { shard }) => [slicesFact(shard, webhookId)],
  decide(body, states, facts, context) {
    const { shard, nowMs } = context
    const webhook = webhookOfOrder(body, states, { facts, context })
    if ('kind' in webhook) return webhook
    if (!webhook.enabled) return refuse('webhook_disabled')
    const months = logMonths({ states, facts, context }, webhook.accountId)
    if (typeof months !== 'number') return months
    const { webhookId, after } = body
    const seenMs = after === null || after.deliveryId === '' ? 0 : idScore(after.deliveryId)
    const fromMs = Math.max(body.fromMs, seenMs)
    const toMs = body.toMs ?? Number.MAX_SAFE_INTEGER
    const known = facts.sorted(slicesFact(shard, webhookId))
    const begun = Math.max(
      0,
      known.findIndex(([name]) => name === after?.slice),
    )
    const all = known.slice(begun).filter(([name, ms]) => sliceEndMs(name) > fromMs && ms < toMs)
    const slices = all.slice(0, STEP_SLICES).map(([name]) => name)
    const wished = slices.map((slice) => deadFact(deadKey(shard, webhookId, slice), fromMs, toMs - ID_SCORE_STEP))
    if (wished.some((fact) => !facts.has(fact))) return { kind: 'need', facts: wished }
    const counters = states.counter<WebhookCounters>(webhookOwner(webhookId))
    const room = Math.max(0, WEBHOOK_BACKLOG_MAX - (counters?.pending ?? 0))
    const found = wished
      .flatMap((fact) => facts.sorted(fact).map(([name]) => ({ name, ...parseDeliveryItem(name) })))
      .filter(({ deliveryId }) => deliveryId > (after?.deliveryId ?? ''))
      .slice(0, STEP_ITEMS)
    const missing = found.map((one) => recordFact(shard, webhookId, one)).filter((fact) => !facts.has(fact))
    if (missing.length > 0) return { kind: 'need', facts: missing }
    const dead = found
      .map((one) => {
        const key = deliveryKey(shard, webhookId, one.slice)
        return { ...one, record: unpackRecord(facts.field(key, shortId(one.deliveryId)), msOf(one.deliveryId)) }
      })
      .filter((one) => one.record.status === 'dead' && !isGone(one, { nowMs, test: webhook.test, months }))
      .slice(0, room)
    const ops = dead.flatMap(({ name, deliveryId, slice, record }): Op[] => {
      const written = recordOp({ shard, webhookId, deliveryId, slice }, requeued(record, { row: null, nowMs }))
      if (isThinned(slice, nowMs)) return [written]
      return [written, { key: deadKey(shard, webhookId, slice), write: 'ZREM', args: [name] }]
    })
    const last = found.length === STEP_ITEMS ? found.at(-1) : undefined
    const unseen = all[STEP_SLICES]?.[0]
    const next = last ?? (unseen === undefined ? null : { slice: unseen, deliveryId: after?.deliveryId ?? '' })
    return {
      kind: 'done',
      reply: { kind: 'replayed', queued: dead.length, next: dead.length >= room ? null : cursorOf(next) },
      ops,
      counters: dead.length === 0 ? [] : [morePending(webhookId, counters, dead)],
      due: dead.map(({ name }) => ({ lane: postLane(webhookId), item: name, atMs: nowMs })),
    }
  },
}

/**
 * The record of a delivery that is queued again, whose next attempt number is one above the number of started
 * attempts. Takes its row of `claims`, which is kept while it is in its lane, or null.
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

function cursorOf(place: ReplayCursor | null): ReplayCursor | null {
  return place === null ? null : { slice: place.slice, deliveryId: place.deliveryId }
}

function deadFact(key: string, min: number, max: number): SortedFact {
  return { read: 'sorted', key, min, max, count: READ_ITEMS }
}
