/**
 * webhook-deliveries - the deliveries of a webhook: list, read with its current payload, replay of one or all dead
 * ones, and an example event
 *
 * Spec webhook.deliveries, webhook.delivery, webhook.replay, webhook.example
 */

import { msOf } from '../../cluster/id.ts'
import { DELIVERIES_PAGE_DEFAULT } from '../../schemas/limits.ts'
import { EVENTS_OF_FORMAT } from '../../schemas/webhook.ts'
import type { QueuedReply, ReplayCursor, ReplayDeadReply } from '../actors/webhook/replay.ts'
import type { EdgeRequest, HandlerOf } from '../http/request.ts'
import { type Answer, refusalReply } from '../http/respond.ts'
import { parseDeliveryItem } from '../state/webhook/item.ts'
import { formatEvent } from '../views/format/event.ts'
import { readEventSource } from '../views/format/source.ts'
import type { EventReader } from '../views/message/event.ts'
import { type DeliveriesPage, formatDelivery, listDeliveries, readDelivery, readWebhook } from '../views/webhook.ts'
import type { Replied } from './answer.ts'
import { askOnWebhook, idBeside, onWebhook, orderOnWebhook, type WebhookDeps } from './webhooks.ts'

/** Steps of one replay, enough for a whole backlog and for slices without dead deliveries. */
const STEPS_MAX = 1_000

export type DeliveryDeps = WebhookDeps & { readonly readEvent: EventReader }

/** GET /v1/webhooks/{webhookId}/deliveries. Spec webhook.deliveries */
export function makeListDeliveries(deps: DeliveryDeps): HandlerOf<'listDeliveries'> {
  return (request) =>
    onWebhook(deps, request, async (webhook) => {
      const seen = await listDeliveries(deps.read, { webhook, nowMs: deps.nowMs() }, parsePage(request))
      return seen === null ? refusalReply('unavailable') : { status: 200, json: seen }
    })
}

/** GET /v1/webhooks/{webhookId}/deliveries/{deliveryId}. Spec webhook.delivery */
export function makeReadDelivery(deps: DeliveryDeps): HandlerOf<'readDelivery'> {
  return (request) =>
    onWebhook(deps, request, async (webhook) => {
      const nowMs = deps.nowMs()
      const seen = await readDelivery(deps.read, { webhook, nowMs }, request.params.deliveryId ?? '')
      if (typeof seen === 'string') return refusalReply(seen)
      const { item, record } = seen
      const { deliveryId, reference } = parseDeliveryItem(item)
      const event = await deps.readEvent(webhook, reference, msOf(deliveryId))
      if (event === undefined) return refusalReply('unavailable')
      const source = event === null ? null : await readEventSource(deps.read, webhook, { reference, event })
      if (source === undefined) return refusalReply('unavailable')
      const of = { id: deliveryId, attempt: record.attempts + 1, source }
      const body = event === null ? null : formatEvent(webhook.format ?? 'sendwright', event, of)
      return { status: 200, json: { ...formatDelivery(item, record), body } }
    })
}

/** POST /v1/webhooks/{webhookId}/deliveries/{deliveryId}/replay. Spec webhook.replay */
export function makeReplayDelivery(deps: DeliveryDeps): HandlerOf<'replayDelivery'> {
  return (request) => {
    const deliveryId = idBeside(request.key, request.params.deliveryId)
    return orderOnWebhook(deps, request, { name: 'replay-delivery', body: { deliveryId }, answer: answerQueued })
  }
}

/** POST /v1/webhooks/{webhookId}/replay: step after step, until nothing is left. Spec webhook.replay */
export function makeReplayDead(deps: DeliveryDeps): HandlerOf<'replayDead'> {
  return async (request) => {
    const { createdFrom, createdTo } = request.body
    const fromMs = Date.parse(createdFrom)
    // Deliveries that die during the replay are not included.
    const toMs = createdTo === null || createdTo === undefined ? deps.nowMs() : Date.parse(createdTo)
    let queued = 0
    let after: ReplayCursor | null = null
    for (let steps = 0; steps < STEPS_MAX && !request.aborted; steps += 1) {
      const asked: { name: string; body: object } = { name: 'replay-dead', body: { fromMs, toMs, after } }
      const { reply, answer }: Replied<ReplayDeadReply> = await askOnWebhook(deps, request, asked)
      if (reply === undefined) return answer
      queued += reply.queued
      after = reply.next
      if (after === null) break
    }
    return { status: 202, json: { queued } }
  }
}

/** POST /v1/webhooks/{webhookId}/test. Spec webhook.example */
export function makeTestWebhook(deps: DeliveryDeps): HandlerOf<'testWebhook'> {
  return async (request) => {
    const { event } = request.body
    const seen = await readWebhook(deps.read, request.key, request.params.webhookId ?? '')
    // The turn refuses what cannot be read, in the contract's order.
    const format = typeof seen === 'string' ? 'sendwright' : (seen.format ?? 'sendwright')
    const known: readonly string[] = EVENTS_OF_FORMAT[format]
    if (known.includes(event))
      return orderOnWebhook(deps, request, { name: 'example-event', body: { event }, answer: answerQueued })
    const issues = [{ path: 'event', message: `Has no counterpart in the format ${format} of the webhook` }]
    return refusalReply('invalid_request', { issues })
  }
}

function answerQueued({ item, record }: QueuedReply): Answer {
  return { status: 202, json: formatDelivery(item, record) }
}

function parsePage({ query }: EdgeRequest): DeliveriesPage {
  const { limit, after, status, event } = query
  return {
    limit: limit === undefined ? DELIVERIES_PAGE_DEFAULT : Number(limit),
    after: after?.toLowerCase() ?? null,
    status: (status as DeliveriesPage['status'] | undefined) ?? null,
    event: (event as DeliveriesPage['event'] | undefined) ?? null,
  }
}
