/**
 * deliveries - the webhook deliveries of one message, newest first, found by the times of its events
 *
 * Deliveries of removed webhooks do not exist any longer. One request reads a bounded number of events, so a page may
 * have fewer entries than requested, even zero, while `next` is not null.
 *
 * Keys: `webhooks:<server>`, `webhook:<id>`, `slices queue blocks dead delivery:<webhook>:<slice>`
 *
 * Spec webhook.of-message, list.page
 */

import { homeShard, idOfEntry, msOf } from '../../../cluster/id.ts'
import type { MessageDelivery, MessageDeliveryList } from '../../../schemas/webhook.ts'
import { spelledAddress } from '../../state/message/head.ts'
import type { StatusEvent } from '../../state/message/status.ts'
import type { StoredBlocks } from '../../state/webhook/block.ts'
import { mergedRecord, recordFacts, shownRecord } from '../../state/webhook/delivery.ts'
import {
  type EventPlace,
  entriesAtFacts,
  itemsOfMessage,
  type MessageItem,
  slicesAtFact,
} from '../../state/webhook/of-message.ts'
import { listenersRef, type Subscriber, type WebhookState, webhookRef } from '../../state/webhook/webhook.ts'
import { entityFact, parseState, type Unseen } from '../entity.ts'
import { formatInstant } from '../instant.ts'
import type { Reader, ServerKey } from '../key.ts'
import type { Page } from '../newest.ts'
import { readPersons } from '../person.ts'
import { formatDelivery } from '../webhook.ts'
import { type MessageDeps, readStoredMessage } from './message.ts'
import type { StoredMessage } from './summary.ts'

/** Times of events, each of one webhook, that one request looks at, and that one round of reading does. */
const PLACES_MAX = 400
const PLACES_AT_ONCE = 40

type ListDeps = Pick<MessageDeps, 'read' | 'nowMs'>

/** A page of the deliveries of a message of the key's server. */
export async function listMessageDeliveries(
  deps: ListDeps,
  owner: ServerKey,
  { messageId, page }: { readonly messageId: string; readonly page: Page },
): Promise<MessageDeliveryList | Unseen | 'not_found'> {
  const { read } = deps
  const stored = await readStoredMessage(deps, owner, messageId)
  if (typeof stored === 'string') return stored
  const shard = homeShard(owner.serverId)
  const webhooks = await readHearers(read, owner.serverId, stored)
  if (webhooks === null) return 'unavailable'
  const places = findPlaces(shard, webhooks, { stored, after: page.after })
  const found: MessageItem[] = []
  let looked = 0
  while (looked < Math.min(places.length, PLACES_MAX) && found.length <= page.limit) {
    const some = places.slice(looked, looked + PLACES_AT_ONCE)
    const items = await itemsAt(read, some, stored.messageId)
    if (items === null) return 'unavailable'
    looked += some.length
    const { after } = page
    found.push(...items.filter(({ deliveryId }) => after === null || deliveryId < after))
  }
  const newest = newestFirst(found)
  const shown = newest.slice(0, page.limit)
  const deliveries = await formatAll(read, shown, { owner, stored, webhooks })
  if (deliveries === null) return 'unavailable'
  const next = places[looked]
  if (newest.length > shown.length) return { deliveries, next: shown.at(-1)?.deliveryId ?? null }
  // All deliveries of the remaining times are below the first id of the millisecond after them.
  return { deliveries, next: next === undefined ? null : idOfEntry(`${next.occurredAtMs + 1}-0`, shard) }
}

/** Each once, newest first. */
function newestFirst(items: readonly MessageItem[]): MessageItem[] {
  const each = new Map(items.map((item) => [item.deliveryId, item]))
  return [...each.values()].sort((one, other) => (one.deliveryId < other.deliveryId ? 1 : -1))
}

/** The webhooks of the server that may have received events of the message; null if the store did not answer. */
async function readHearers(
  read: Reader,
  serverId: string,
  { streamId }: StoredMessage,
): Promise<ReadonlyMap<string, WebhookState> | null> {
  const shard = homeShard(serverId)
  const listed = await read(shard, [entityFact(shard, listenersRef(serverId))])
  if (listed === null) return null
  const listeners = parseState<readonly Subscriber[]>(listed[0]) ?? []
  const hearers = listeners.filter((one) => one.streamId === null || one.streamId === streamId)
  const seen = await read(
    shard,
    hearers.map(({ webhookId }) => entityFact(shard, webhookRef(webhookId))),
  )
  if (seen === null) return null
  const states = seen.map((value) => parseState<WebhookState>(value)).filter((state) => state !== null)
  return new Map(states.filter(({ removedAtMs }) => removedAtMs === null).map((state) => [state.webhookId, state]))
}

/** Places where deliveries of the message may be, the latest first; each time of each webhook once. */
function findPlaces(
  shard: number,
  webhooks: ReadonlyMap<string, WebhookState>,
  { stored, after }: { readonly stored: StoredMessage; readonly after: string | null },
): EventPlace[] {
  const places = new Map<string, EventPlace>()
  const untilMs = after === null ? Number.POSITIVE_INFINITY : msOf(after)
  for (const { event, occurredAtMs } of stored.recipients.flatMap(({ events }): readonly StatusEvent[] => events)) {
    if (event === 'cancelled' || occurredAtMs > untilMs) continue
    for (const { webhookId, events, createdAtMs } of webhooks.values())
      if (events.includes(event) && createdAtMs <= occurredAtMs)
        places.set(`${occurredAtMs} ${webhookId}`, { shard, webhookId, occurredAtMs })
  }
  return [...places.values()].sort((one, other) => other.occurredAtMs - one.occurredAtMs)
}

/** The message's deliveries at these places; null if the store did not answer. */
async function itemsAt(read: Reader, places: readonly EventPlace[], messageId: string): Promise<MessageItem[] | null> {
  const [first] = places
  if (first === undefined) return []
  const { shard } = first
  const slices = await read(shard, places.map(slicesAtFact))
  if (slices === null) return null
  const facts = places.map((place, index) => entriesAtFacts(slices[index] ?? [], place))
  const answers: readonly unknown[] | null = await read(shard, facts.flat())
  if (answers === null) return null
  let at = 0
  return places.flatMap((place, index) => {
    const own = answers.slice(at, at + (facts[index]?.length ?? 0))
    at += own.length
    return itemsOfMessage(own, { ...place, slices: slices[index] ?? [] }, messageId)
  })
}

async function formatAll(
  read: Reader,
  items: readonly MessageItem[],
  of: {
    readonly owner: ServerKey
    readonly stored: StoredMessage
    readonly webhooks: ReadonlyMap<string, WebhookState>
  },
): Promise<MessageDelivery[] | null> {
  const { owner, stored, webhooks } = of
  const { accountId } = owner
  const shard = homeShard(accountId)
  const { entry, head, recipients } = stored
  const [rows, persons] = await Promise.all([
    read(
      shard,
      items.flatMap((item) => recordFacts(shard, item.webhookId, item)),
    ),
    readPersons(read, { shard, accountId, numbers: entry.recipients }),
  ])
  if (rows === null || persons === null) return null
  const answers: readonly unknown[] = rows
  return items.flatMap((item, index) => {
    const { deliveryId, reference, name, webhookId } = item
    const webhook = webhooks.get(webhookId)
    const event = recipients[reference.recipient]?.events[reference.index]
    if (webhook === undefined || event === undefined) return []
    const [fields, blocks] = answers.slice(2 * index) as [readonly (string | null)[], StoredBlocks]
    const record = mergedRecord(item, { field: fields[0] ?? null, blocks })
    return {
      ...formatDelivery(name, shownRecord(webhook, { deliveryId, record })),
      webhookId,
      recipient: spelledAddress(head, reference.recipient + 1, persons[reference.recipient] ?? ''),
      occurredAt: formatInstant(event.occurredAtMs),
    }
  })
}
