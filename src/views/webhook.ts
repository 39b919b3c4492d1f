/**
 * webhook - webhooks of a server and their deliveries, as a server key reads them
 *
 * Every view reads the key in the same step as its data, so a revocation takes effect at once.
 *
 * Keys: `webhook:<id>`, `webhooks:<server>`, `slices:<webhook>`, `queue blocks delivery dead:<webhook>:<slice>`,
 * `key:<sha256>`
 *
 * Spec webhook.read, webhook.list, webhook.delivery, webhook.deliveries
 */

import type { Entry } from '../../cluster/behaviour.ts'
import { homeShard, idOfEntry, msOf, shardOf, shortId } from '../../cluster/id.ts'
import type { Delivery, EventName, Webhook } from '../../schemas/webhook.ts'
import { idScore } from '../state/id-score.ts'
import { deadKey, deliveryKey, queueKey } from '../state/keys.ts'
import { blocksBelowFacts, rowsOfBlocks, type SlicePlace, type StoredBlocks } from '../state/webhook/block.ts'
import {
  type DeliveryRecord,
  daySlicesFact,
  foundItem,
  isGone,
  isThinned,
  mergedRecord,
  placeFacts,
  recordFacts,
  shownRecord,
  unpackRecord,
} from '../state/webhook/delivery.ts'
import { itemOf, parseDeliveryItem } from '../state/webhook/item.ts'
import { slicesFact } from '../state/webhook/slice.ts'
import { listenersRef, type Subscriber, type WebhookState, webhookRef } from '../state/webhook/webhook.ts'
import { upperBound } from './bound.ts'
import { entityFact, parseState, type Unseen } from './entity.ts'
import { formatInstant, formatInstantOrNull } from './instant.ts'
import { keyFact, ownerOfRow, type Reader, type ServerKey } from './key.ts'
import type { Page } from './newest.ts'
import { readLogMonths } from './retention.ts'

/** Deliveries that one page reads; if few of them pass the filter, the next page continues. */
const LOOKED_AT_MAX = 5_000
/** Slices that one page looks into. */
const SLICES_LOOKED_AT_MAX = 40

/** Which deliveries a list shows. */
export interface DeliveriesPage extends Page {
  readonly status: DeliveryRecord['status'] | null
  readonly event: EventName | null
}

interface Place {
  readonly shard: number
  readonly webhook: WebhookState
  readonly nowMs: number
  /** For which the log is kept. */
  readonly months: number
}

/** The resource of a webhook. */
export function formatWebhook(state: WebhookState): Webhook {
  return {
    webhookId: state.webhookId,
    url: state.url,
    events: [...state.events],
    streamId: state.streamId,
    tag: state.tag ?? null,
    metadata: state.metadata === undefined ? null : { [state.metadata.name]: state.metadata.value },
    enabled: state.enabled,
    inboundContent: state.inboundContent,
    format: state.format ?? 'sendwright',
    createdAt: formatInstant(state.createdAtMs),
    secrets: state.secrets.map(({ secretId, createdAtMs }) => ({ secretId, createdAt: formatInstant(createdAtMs) })),
  }
}

/** The record of a delivery. */
export function formatDelivery(item: string, record: DeliveryRecord): Delivery {
  const { deliveryId, reference } = parseDeliveryItem(item)
  const { event } = reference
  const made = reference.kind === 'example' ? reference.madeUpId : null
  const named = reference.kind === 'message' || reference.kind === 'inbound' ? reference.messageId : made
  const isCap = event === 'cap_warning' || event === 'cap_reached'
  return {
    deliveryId,
    event,
    messageId: isCap || event === 'inbound' ? null : named,
    inboundMessageId: event === 'inbound' ? named : null,
    status: record.status,
    attempts: record.attempts,
    nextAttemptAt: formatInstantOrNull(record.nextAttemptAtMs),
    lastStatusCode: record.lastStatusCode,
    lastError: record.lastError,
    lastResponse: record.lastResponse,
    deliveredAt: formatInstantOrNull(record.deliveredAtMs),
    createdAt: formatInstant(msOf(deliveryId)),
  }
}

/** A webhook of the key's server. */
export async function readWebhook(
  read: Reader,
  owner: ServerKey,
  webhookId: string,
): Promise<WebhookState | Unseen | 'not_found'> {
  const serverId = owner.serverId
  const shard = homeShard(serverId)
  const id = webhookId.toLowerCase()
  // An id of another shard belongs to another account, and its key name would not be valid on this shard.
  const ids = shardOf(id) === shard ? [id] : []
  const seen = await read(shard, [keyFact(shard, owner.hash), ...ids.map((one) => entityFact(shard, webhookRef(one)))])
  if (seen === null) return 'unavailable'
  if (ownerOfRow(owner.hash, seen[0]) === null) return 'unauthorized'
  const webhook = parseState<WebhookState>(seen[1])
  const isOurs = webhook !== null && webhook.serverId === serverId && webhook.removedAtMs === null
  return isOurs ? webhook : 'not_found'
}

/** A page of the server's webhooks, newest first. */
export async function listWebhooks(
  read: Reader,
  owner: ServerKey,
  { limit, after }: Page,
): Promise<{ webhooks: readonly WebhookState[]; next: string | null } | Unseen | 'not_found'> {
  const serverId = owner.serverId
  const shard = homeShard(serverId)
  const seen = await read(shard, [keyFact(shard, owner.hash), entityFact(shard, listenersRef(serverId))])
  if (seen === null) return 'unavailable'
  if (ownerOfRow(owner.hash, seen[0]) === null) return 'unauthorized'
  const ids = (parseState<readonly Subscriber[]>(seen[1]) ?? []).map(({ webhookId }) => webhookId).reverse()
  const below = after === null ? ids : ids.filter((id) => id < after)
  const page = below.slice(0, limit)
  const states = await read(
    shard,
    page.map((id) => entityFact(shard, webhookRef(id))),
  )
  if (states === null) return 'unavailable'
  const webhooks = states.map((value) => parseState<WebhookState>(value)).filter((state) => state !== null)
  return {
    webhooks: webhooks.filter(({ removedAtMs }) => removedAtMs === null),
    next: below.length > limit ? (page.at(-1) ?? null) : null,
  }
}

/** One delivery of a webhook, by its item. */
export async function readDelivery(
  read: Reader,
  { webhook, nowMs }: Pick<Place, 'webhook' | 'nowMs'>,
  deliveryId: string,
): Promise<{ item: string; record: DeliveryRecord } | Unseen | 'not_found'> {
  const { webhookId } = webhook
  const shard = homeShard(webhookId)
  const id = deliveryId.toLowerCase()
  if (shardOf(id) !== shard) return 'not_found'
  const slices = await read(shard, [daySlicesFact(shard, webhookId, id)])
  if (slices === null) return 'unavailable'
  const places = placeFacts(slices[0], { shard, webhookId, deliveryId: id })
  const found = await read(shard, places)
  if (found === null) return 'unavailable'
  const item = foundItem(slices[0], found, id)
  if (item === null) return 'not_found'
  const delivery = parseDeliveryItem(item)
  const months = await readLogMonths(read, webhook.accountId)
  if (months === null) return 'unavailable'
  if (isGone(delivery, { nowMs, test: webhook.test, months })) return 'not_found'
  const rows = await read(shard, recordFacts(shard, webhookId, delivery))
  if (rows === null) return 'unavailable'
  const [[field = null], blocks] = rows
  const record = mergedRecord(delivery, { field, blocks })
  return { item, record: shownRecord(webhook, { deliveryId: id, record }) }
}

/** A page of the deliveries of a webhook, newest first. Null if the store did not answer. */
export async function listDeliveries(
  read: Reader,
  { webhook, nowMs }: Pick<Place, 'webhook' | 'nowMs'>,
  page: DeliveriesPage,
): Promise<{ deliveries: Delivery[]; next: string | null } | null> {
  const shard = homeShard(webhook.webhookId)
  const months = await readLogMonths(read, webhook.accountId)
  if (months === null) return null
  const place = { shard, webhook, nowMs, months }
  const slices = await slicesBelow(read, place, page.after)
  if (slices === null) return null
  const filling: Filling = { deliveries: [], lookedAt: 0, last: page.after }
  const { deliveries } = filling
  const looked = slices.slice(0, SLICES_LOOKED_AT_MAX)
  for (const [slice] of looked) {
    for (let isMore = true; isMore; ) {
      const count = page.limit - deliveries.length + 1
      const step = await readStep(read, place, { slice, below: filling.last, count })
      if (step === null) return null
      isMore = step.length === count
      if (takeStep(filling, step, { page, place, isMore })) return { deliveries, next: filling.last }
    }
  }
  const oldest = looked.at(-1)
  const isCut = oldest !== undefined && slices.length > SLICES_LOOKED_AT_MAX
  // Below the first delivery of the oldest slice, because all slices read may have been empty.
  return { deliveries, next: isCut ? idOfEntry(`${oldest[1]}-0`, shard) : null }
}

/** A page while it is filled. */
interface Filling {
  readonly deliveries: Delivery[]
  lookedAt: number
  /** The delivery that was looked at last. */
  last: string | null
}

/** Takes deliveries of a slice onto the page; true if the page ends with something left below it. */
function takeStep(
  filling: Filling,
  step: readonly { item: string; record: DeliveryRecord }[],
  { page, place, isMore }: { page: DeliveriesPage; place: Place; isMore: boolean },
): boolean {
  for (const [index, one] of step.entries()) {
    if (filling.deliveries.length === page.limit) return true
    filling.last = parseDeliveryItem(one.item).deliveryId
    filling.lookedAt += 1
    if (fits(page, place, one)) filling.deliveries.push(formatDelivery(one.item, one.record))
    const isLast = index === step.length - 1 && !isMore
    if (filling.lookedAt >= LOOKED_AT_MAX && !isLast) return true
  }
  return false
}

function fits(
  { status, event }: DeliveriesPage,
  { webhook, nowMs, months }: Place,
  { item, record }: { item: string; record: DeliveryRecord },
): boolean {
  const delivery = parseDeliveryItem(item)
  if (event !== null && delivery.reference.event !== event) return false
  if (status !== null && record.status !== status) return false
  return !isGone(delivery, { nowMs, test: webhook.test, months })
}

/** Slices that may have deliveries older than a given one, with the time of their first delivery, newest first. */
async function slicesBelow(
  read: Reader,
  { shard, webhook }: Place,
  after: string | null,
): Promise<readonly (readonly [slice: string, openedAtMs: number])[] | null> {
  const max = after === null ? Number.MAX_SAFE_INTEGER : msOf(after)
  const seen = await read(shard, [slicesFact(shard, webhook.webhookId, { max })])
  return seen === null ? null : seen[0].toReversed()
}

/** The newest deliveries of a slice below one, with their records. An old slice has only the dead ones. */
async function readStep(
  read: Reader,
  { shard, webhook, nowMs }: Place,
  { slice, below, count }: { slice: string; below: string | null; count: number },
): Promise<{ item: string; record: DeliveryRecord }[] | null> {
  const { webhookId } = webhook
  const isListedDead = isThinned(slice, nowMs)
  const items = isListedDead
    ? await deadBelow(read, { shard, key: deadKey(shard, webhookId, slice) }, { below, count })
    : await queuedBelow(read, { shard, webhookId, slice }, { below, count })
  if (items === null || items.length === 0) return items === null ? null : []
  const deliveries = items.map(parseDeliveryItem)
  const key = deliveryKey(shard, webhookId, slice)
  const fields = deliveries.map(({ deliveryId }) => shortId(deliveryId))
  const facts = blocksBelowFacts({ shard, webhookId, slice }, below, count)
  // In one step, because a record moves from its hash to a block.
  const rows: readonly unknown[] | null = await read(shard, [{ read: 'fields', key, fields }, ...facts])
  if (rows === null) return null
  const [packed, ...blocks] = rows as [readonly (string | null)[], ...StoredBlocks[]]
  const inBlocks = new Map(rowsOfBlocks(slice, blocks.flat()).map(({ name, record }) => [name, record]))
  return deliveries.map(({ deliveryId }, index) => {
    const item = items[index] as string
    const record = unpackRecord(packed[index] ?? (inBlocks.get(item) || null), msOf(deliveryId))
    return { item, record: shownRecord(webhook, { deliveryId, record }) }
  })
}

interface Listed {
  readonly shard: number
  readonly key: string
}

/** From the queue and, as all deliveries in blocks are older, then from these. */
async function queuedBelow(
  read: Reader,
  place: SlicePlace,
  { below, count }: { below: string | null; count: number },
): Promise<string[] | null> {
  const { shard, webhookId, slice } = place
  const to = upperBound({ after: below, toMs: null })
  const queue = { read: 'newest', key: queueKey(shard, webhookId, slice), from: '-', to, count } as const
  const seen: readonly unknown[] | null = await read(shard, [queue, ...blocksBelowFacts(place, below, count)])
  if (seen === null) return null
  const [entries, ...blocks] = seen as [readonly Entry[], ...StoredBlocks[]]
  const packed = new Set(rowsOfBlocks(slice, blocks.flat()).map(({ name }) => name))
  const older = [...packed].filter((name) => below === null || name.slice(0, below.length) < below)
  return [...entries.map((entry) => itemOf(entry).name), ...older.sort().reverse()].slice(0, count)
}

async function deadBelow(
  read: Reader,
  { shard, key }: Listed,
  { below, count }: { below: string | null; count: number },
): Promise<string[] | null> {
  const max = below === null ? Number.MAX_SAFE_INTEGER : idScore(below)
  // All of one score belong to one page at least, or a page might end within it.
  const seen = await read(shard, [{ read: 'sorted', key, min: 0, max, count: count + SAME_SCORE_MAX, newest: true }])
  if (seen === null) return null
  const names = seen[0].map(([name]) => name)
  return names.filter((name) => below === null || name.slice(0, below.length) < below).slice(0, count)
}

/** Maximum number of dead deliveries with the same score; a score distinguishes some 4,000 within a millisecond. */
const SAME_SCORE_MAX = 1_000
