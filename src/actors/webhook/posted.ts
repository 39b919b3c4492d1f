/**
 * posted - the effect of an attempt's outcome on its delivery at a webhook.
 *
 * States (webhook.delivery): pending ends delivered by a 2xx, waits for the next attempt after a failure, and is dead
 * after the last one, or at once if the failure is final.
 *
 * Guarantees: a 2xx counts for any attempt, a failure only for the current one; a final record has counted every
 * started attempt. For mail erased in the meantime, the receiver's answer is not stored.
 *
 * Spec webhook.delivery, webhook.retry, erasure.messages, erasure.received
 */

import type { CommandType, Done, Facts, HashFields, Op, OutcomeBody } from '../../../cluster/behaviour.ts'
import { msOf, shortId } from '../../../cluster/id.ts'
import { claimsKey } from '../../../cluster/keyspace.ts'
import { WEBHOOK_RETRIES_SECONDS } from '../../../schemas/limits.ts'
import { deadKey, deliveryKey } from '../../state/keys.ts'
import { isBlockAge } from '../../state/webhook/block.ts'
import {
  attemptsMade,
  type DeliveryPlace,
  type DeliveryRecord,
  deadOps,
  deadRecord,
  deliveryFacts,
  isSwitchedOff,
  isThinned,
  lessPending,
  type PostError,
  recordOp,
  unpackRecord,
} from '../../state/webhook/delivery.ts'
import { parseDeliveryItem, webhookOfLane } from '../../state/webhook/item.ts'
import { isLaterSlice } from '../../state/webhook/slice.ts'
import { type WebhookCounters, type WebhookState, webhookOwner, webhookRef } from '../../state/webhook/webhook.ts'
import { headPlace, isErasedMail, isOfMail } from './event-message.ts'

/** How an attempt ended. */
export interface PostOutcome {
  readonly result: 'delivered' | 'failed'
  readonly statusCode: number | null
  readonly error: PostError | null
  /** The receiver's answer, without addresses; absent if empty. */
  readonly response?: string
  /** Whether no other attempt can help. */
  readonly final: boolean
}

/** Five attempts ended without an outcome. */
const ABANDONED: PostOutcome = { result: 'failed', statusCode: null, error: 'timeout', final: true }

interface EndedAttempt {
  readonly body: OutcomeBody<PostOutcome>
  readonly place: DeliveryPlace
  /** The record before, except for the attempt that has just ended. */
  readonly record: DeliveryRecord
  readonly counters: WebhookCounters | null
  readonly nowMs: number
}

export const posted: CommandType<OutcomeBody<PostOutcome>, null> = {
  name: 'posted',
  frees: true,
  entities: ({ lane }) => [webhookRef(webhookOfLane(lane))],
  counters: ({ lane }) => [webhookOwner(webhookOfLane(lane))],
  facts({ lane, item, outcome }, states, { shard }) {
    const webhookId = webhookOfLane(lane)
    const webhook = states.get<WebhookState | null>(webhookRef(webhookId))
    const { reference } = parseDeliveryItem(item)
    const reads = deliveryFacts(shard, webhookId, item)
    if (webhook === null || outcome?.response === undefined || !isOfMail(reference)) return reads
    const { key, field } = headPlace(shard, webhook.serverId, reference)
    return [...reads, { read: 'fields', key, fields: [field] }]
  },
  decide(body, states, facts, { shard, nowMs }) {
    const webhookId = webhookOfLane(body.lane)
    const webhook = states.get<WebhookState | null>(webhookRef(webhookId))
    if (webhook === null || webhook.removedAtMs !== null) return NOTHING
    const { deliveryId, slice } = parseDeliveryItem(body.item)
    const place = { shard, webhookId, deliveryId, slice }
    const field = facts.field(deliveryKey(shard, webhookId, slice), shortId(deliveryId))
    const before = unpackRecord(field, msOf(deliveryId))
    const outcome = body.outcome ?? ABANDONED
    const attempts = attemptsMade(before, facts.field(claimsKey(shard), body.item))
    const record = {
      ...before,
      attempts,
      lastStatusCode: outcome.statusCode,
      lastError: outcome.error,
      lastResponse: redactResponse(body, webhook, { facts, shard }),
    }
    const counters = states.counter<WebhookCounters>(webhookOwner(webhookId))
    const ended: EndedAttempt = { body, place, record, counters, nowMs }
    if (before.status === 'delivered') return NOTHING
    // Its record may be in a block. A fresh one of that age is in its lane, and is attempted again.
    if (field === null && !body.current && isBlockAge(slice, nowMs)) return NOTHING
    if (outcome.result === 'delivered') return delivered(ended)
    if (!body.current || before.status !== 'pending') return NOTHING
    if (isSwitchedOff(webhook, { deliveryId, record })) return dead(ended, 'webhook_disabled')
    return failed(ended, outcome)
  },
}

const NOTHING: Done<null> = { kind: 'done', reply: null }

/** The stored part of the receiver's answer, which may name a person erased during the attempt. */
function redactResponse(
  { item, outcome }: OutcomeBody<PostOutcome>,
  { serverId }: WebhookState,
  { facts, shard }: { readonly facts: Facts; readonly shard: number },
): string | null {
  const { reference } = parseDeliveryItem(item)
  if (outcome?.response === undefined) return null
  if (!isOfMail(reference)) return outcome.response
  const { key, field } = headPlace(shard, serverId, reference)
  return isErasedMail(reference, facts.field(key, field)) ? null : outcome.response
}

function delivered({ body, place, record, counters, nowMs }: EndedAttempt): Done<null> {
  const { shard, webhookId, deliveryId, slice } = place
  const ops: Op[] = []
  const wasDead = record.status === 'dead'
  const isThin = isThinned(slice, nowMs)
  const wasListed = wasDead || isThin
  if (isThin && isSwept(slice, counters))
    ops.push({ key: deliveryKey(shard, webhookId, slice), write: 'HDEL', args: [shortId(deliveryId)] })
  else {
    const ended = {
      ...record,
      status: 'delivered',
      deliveredAtMs: nowMs,
      nextAttemptAtMs: null,
      lastError: null,
    } as const
    // The sweep of this day needs the record, because a delivery without one is fresh; no one sees it any more.
    ops.push(recordOp(place, isThin ? { ...ended, lastResponse: null } : ended))
  }
  if (wasListed) ops.push({ key: deadKey(shard, webhookId, slice), write: 'ZREM', args: [body.item] })
  const counted = wasDead ? [] : [lessPending(webhookId, counters, 1)]
  return { ...NOTHING, ops, done: leaving(body), forgets: [fieldsOf(place)], counters: counted }
}

/** Whether the sweep has thinned a slice. */
function isSwept(slice: string, counters: WebhookCounters | null): boolean {
  return counters?.thinned !== undefined && !isLaterSlice(slice, counters.thinned)
}

function failed(ended: EndedAttempt, { error, final }: PostOutcome): Done<null> {
  const { body, place, record, nowMs } = ended
  const waitSeconds = WEBHOOK_RETRIES_SECONDS[record.failures]
  if (final || waitSeconds === undefined) return dead(ended, error ?? 'timeout')
  const nextAttemptAtMs = nowMs + waitSeconds * 1000
  const { lane, item } = body
  return {
    ...NOTHING,
    ops: [recordOp(place, { ...record, failures: record.failures + 1, nextAttemptAtMs })],
    due: [{ lane, item, atMs: nextAttemptAtMs }],
  }
}

function dead({ body, place, record, counters }: EndedAttempt, error: PostError): Done<null> {
  return {
    ...NOTHING,
    ops: deadOps(place, { item: body.item, record: deadRecord(record, error) }),
    done: leaving(body),
    forgets: [fieldsOf(place)],
    counters: [lessPending(place.webhookId, counters, 1)],
  }
}

/** The record of a delivery: it is final, and rarely read again. */
function fieldsOf({ shard, webhookId, deliveryId, slice }: DeliveryPlace): HashFields {
  return { key: deliveryKey(shard, webhookId, slice), fields: [shortId(deliveryId)] }
}

/** With its current attempt an item leaves by itself. */
function leaving({ lane, item, current }: OutcomeBody): { lane: string; item: string }[] {
  return current ? [] : [{ lane, item }]
}
