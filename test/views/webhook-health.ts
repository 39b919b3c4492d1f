/** webhook-health - pending and dead deliveries, the share that arrived and the last result, as deliveries end. */

import t from 'tap'
import { WEBHOOK_DEAD_COUNTED_MAX } from '../../schemas/limits.ts'
import { makeTrimBacklog } from '../../src/actors/webhook/backlog.ts'
import { type PostOutcome, posted } from '../../src/actors/webhook/posted.ts'
import { preparePost } from '../../src/actors/webhook/prepare-post.ts'
import type { ServerKey } from '../../src/views/key.ts'
import { readWebhookHealth } from '../../src/views/webhook-health.ts'
import { LIVE_KEY, makeTenant, type Tenant } from '../support/world/tenant.ts'
import { World } from '../support/world/turn.ts'
import { fire, queue, seedWebhook } from '../support/world/webhook-world.ts'
import { readerOf } from '../support/world/world-reader.ts'

const NOW_MS = Date.UTC(2026, 10, 21, 12)
const OK: PostOutcome = { result: 'delivered', statusCode: 204, error: null, final: false }
const GONE: PostOutcome = { result: 'failed', statusCode: 410, error: 'http_410', final: true }
const BUSY: PostOutcome = { result: 'failed', statusCode: 503, error: 'http_503', final: false }

function ownerOf({ accountId, live }: Tenant): ServerKey {
  const { serverId, streamId } = live
  const key = { kind: 'server', mode: 'live', tokenId: 't', hash: LIVE_KEY } as const
  return { ...key, accountId, serverId, defaultStreamId: streamId }
}

/** Claims what is due and ends it, oldest first. */
function attempt(world: World, outcome: PostOutcome): void {
  const due = world.deliveries().find(({ lane, atMs }) => lane.startsWith('post/') && atMs <= world.nowMs)
  const claim = due === undefined ? null : world.claim(preparePost, due)
  if (claim === null) throw new Error('Nothing is due')
  world.end(posted, claim, outcome)
}

async function healthOf(world: World, owner: ServerKey, limit = 50) {
  const { read } = readerOf(world)
  return readWebhookHealth({ read, nowMs: () => world.nowMs }, owner, { limit, after: null })
}

t.test('webhook-health: what is pending, dead and delivered, and the last result [webhook.health]', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const { webhookId } = seedWebhook(world, tenant)
  const owner = ownerOf(tenant)
  const fresh = { webhookId, pending: 0, dead: 0, attempted: 0, delivered: 0, last: null }
  t.same(await healthOf(world, owner), { webhooks: [fresh], next: null })
  const ids = queue(world, webhookId, 5)
  for (const outcome of [OK, OK, GONE, BUSY]) attempt(world, outcome)
  t.match(await healthOf(world, owner), {
    webhooks: [
      {
        ...{ webhookId, pending: 2, dead: 1, attempted: 4, delivered: 2 },
        last: { deliveryId: ids[3], status: 'pending', attempts: 1, lastStatusCode: 503, lastError: 'http_503' },
      },
    ],
  })
})

t.test('webhook-health: a page at a time, dead ones to a bound, and none of a disabled one pending', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const first = seedWebhook(world, tenant)
  queue(world, first.webhookId, WEBHOOK_DEAD_COUNTED_MAX + 200)
  fire(world, makeTrimBacklog(0), `backlog:${first.webhookId}`)
  const second = seedWebhook(world, tenant, { enabled: false })
  queue(world, second.webhookId, 1)
  const owner = ownerOf(tenant)
  const seen = await healthOf(world, owner, 1)
  t.match(seen, { webhooks: [{ webhookId: second.webhookId, pending: 0 }], next: second.webhookId })
  t.match(await healthOf(world, owner), {
    webhooks: [{ pending: 0 }, { webhookId: first.webhookId, pending: 0, dead: WEBHOOK_DEAD_COUNTED_MAX }],
  })
  t.equal(await healthOf(world, { ...owner, hash: 'unknown' }), 'unauthorized')
  const lost = { read: async () => null, nowMs: () => 0 }
  t.equal(await readWebhookHealth(lost, owner, { limit: 1, after: null }), 'unavailable')
})
