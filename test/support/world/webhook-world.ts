/** webhook-world - webhooks of a tenant in a `World`, and their pending deliveries. */

import type { CommandType, TimerBody } from '../../../cluster/behaviour.ts'
import { msOf, shortId } from '../../../cluster/id.ts'
import { EVENTS } from '../../../schemas/webhook.ts'
import { DeliveryQueue } from '../../../src/actors/webhook/announce.ts'
import { accountRef } from '../../../src/state/account.ts'
import { serverRef } from '../../../src/state/server.ts'
import { unpackRecord } from '../../../src/state/webhook/delivery.ts'
import { parseDeliveryItem, type WebhookItem, webhookOfLane } from '../../../src/state/webhook/item.ts'
import { listenersRef, makeSubscriber, type WebhookState, webhookRef } from '../../../src/state/webhook/webhook.ts'
import type { Tenant } from './tenant.ts'
import type { World } from './turn.ts'

/** A delivery that waits. */
export interface Waiting extends WebhookItem {
  readonly webhookId: string
  readonly atMs: number
}

/** Puts a webhook in place as its creation would have. */
export function seedWebhook(
  world: World,
  tenant: Tenant,
  changes: Partial<WebhookState> & { test?: boolean } = {},
): WebhookState {
  const { test = false, ...rest } = changes
  const { serverId } = test ? tenant.test : tenant.live
  const webhookId = idOf(world)
  const webhook: WebhookState = {
    webhookId,
    accountId: tenant.accountId,
    serverId,
    url: `https://hooks.example/${webhookId}`,
    urlHash: webhookId.slice(-22),
    events: EVENTS,
    streamId: null,
    enabled: true,
    inboundContent: 'full',
    createdAtMs: world.nowMs,
    secrets: [{ secretId: idOf(world), createdAtMs: world.nowMs, sealed: 'c2VhbGVk' }],
    test,
    off: null,
    removedAtMs: null,
    ...rest,
  }
  const before = (world.states.get(`webhooks:${serverId}`) ?? []) as object[]
  world.seedState(webhookRef(webhookId), webhook)
  world.seedState(listenersRef(serverId), [...before, makeSubscriber(webhook)])
  world.seedState(serverRef(serverId), { ...(world.states.get(`server:${serverId}`) as object), hasWebhooks: true })
  const account = world.states.get(`account:${tenant.accountId}`) as { webhookServers?: { serverId: string }[] }
  const others = (account.webhookServers ?? []).filter((one) => one.serverId !== serverId)
  const webhookServers = [...others, { serverId, mode: test ? 'test' : 'live' }]
  world.seedState(accountRef(tenant.accountId), { ...account, webhookServers })
  return webhook
}

/** The pending items in the lanes of webhooks, in due order. */
export function waiting(world: World): Waiting[] {
  return world
    .deliveries()
    .filter(({ lane }) => lane.startsWith('post/'))
    .sort((one, other) => one.atMs - other.atMs || (one.item < other.item ? -1 : 1))
    .map(({ lane, item, atMs }) => ({ ...parseDeliveryItem(item), webhookId: webhookOfLane(lane), atMs }))
}

/** A new id of the world's shard. */
export function idOf(world: World): string {
  return world.run(MAKE_ID, null)
}

const MAKE_ID: CommandType<null, string> = {
  name: 'make id',
  entities: () => [],
  counters: () => [],
  facts: () => [],
  decide: (_body, _states, _facts, context) => ({ kind: 'done', reply: context.newId() }),
}

/** How a delivery of a webhook fares. */
export function recordOf(world: World, { webhookId }: Pick<WebhookState, 'webhookId'>, deliveryId: string) {
  const short = shortId(deliveryId)
  const prefix = `{s${String(world.shard).padStart(3, '0')}}:delivery:${webhookId}:`
  const key = world.keyNames().find((name) => name.startsWith(prefix) && world.hash(name).has(short))
  return unpackRecord(key === undefined ? null : (world.hash(key).get(short) ?? null), msOf(deliveryId))
}

/** Queues examples in one turn. Returns their ids, oldest first. */
export function queue(world: World, webhookId: string, count: number): string[] {
  return world.run(
    {
      name: 'queue',
      entities: () => [],
      counters: () => [`webhook:${webhookId}`],
      facts: () => [],
      decide: (_body, states, facts, context) => {
        const deliveries = new DeliveryQueue({ states, facts, context })
        const ids = Array.from({ length: count }, () => {
          const reference = { kind: 'example', event: 'bounced', madeUpId: webhookId } as const
          return deliveries.add(webhookId, reference).deliveryId
        })
        return { kind: 'done', reply: ids, ...deliveries.staged() }
      },
    },
    null,
  )
}

/** Fires a timer until it is no longer due. */
export function fire(world: World, type: CommandType<TimerBody, null>, item: string): void {
  for (let steps = 0; steps < 100; steps += 1) {
    world.items.delete(`timers ${item}`)
    world.run(type, { item })
    const again = world.items.get(`timers ${item}`)
    if (again === undefined || again.atMs > world.nowMs) return
  }
  throw new Error('The timer is due without end')
}
