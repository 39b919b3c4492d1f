/** webhook - pages of deliveries: each once, however many died in one millisecond. */

import t from 'tap'
import { makeTrimBacklog } from '../../src/actors/webhook/backlog.ts'
import { webhookSweep } from '../../src/actors/webhook/sweep.ts'
import { slicesKey } from '../../src/state/keys.ts'
import { listDeliveries } from '../../src/views/webhook.ts'
import { makeTenant } from '../support/world/tenant.ts'
import { World } from '../support/world/turn.ts'
import { fire, queue, seedWebhook } from '../support/world/webhook-world.ts'
import { readerOf } from '../support/world/world-reader.ts'

const NOW_MS = Date.UTC(2026, 10, 21, 12)
const DAY_MS = 86_400_000

t.test('webhook: the dead of one millisecond fill pages without a gap [webhook.deliveries]', async (t) => {
  const world = new World(NOW_MS)
  const webhook = seedWebhook(world, makeTenant(world))
  const ids = queue(world, webhook.webhookId, 1_500)
  fire(world, makeTrimBacklog(0), `backlog:${webhook.webhookId}`)
  world.nowMs += 33 * DAY_MS
  fire(world, webhookSweep, `webhook-sweep:${webhook.webhookId}`)
  const { read } = readerOf(world)
  const listed: string[] = []
  let after: string | null = null
  do {
    const place = { webhook, nowMs: world.nowMs }
    const page: Awaited<ReturnType<typeof listDeliveries>> = await listDeliveries(read, place, {
      limit: 100,
      after,
      status: 'dead',
      event: null,
    })
    listed.push(...(page?.deliveries ?? []).map(({ deliveryId }) => deliveryId))
    after = page?.next ?? null
  } while (after !== null && listed.length <= ids.length)
  t.same(listed.reverse(), ids)
})

t.test('webhook: a list continues below slices that are empty [webhook.deliveries]', async (t) => {
  const world = new World(NOW_MS)
  const webhook = seedWebhook(world, makeTenant(world))
  const [id] = queue(world, webhook.webhookId, 1)
  fire(world, makeTrimBacklog(0), `backlog:${webhook.webhookId}`)
  // Their deliveries were removed after thirty days. The slices stay as long as the log.
  const emptied = Array.from({ length: 100 }, (_, n) => NOW_MS + (n + 1) * DAY_MS)
  const key = slicesKey(world.shard, webhook.webhookId)
  const nameOf = (ms: number) => `${new Date(ms).toISOString().slice(0, 10).replaceAll('-', '')}-0`
  for (const ms of emptied) world.apply({ key, write: 'ZADD', args: [String(ms), nameOf(ms)] })
  world.nowMs += 140 * DAY_MS
  const { read } = readerOf(world)
  const listed: string[] = []
  let pages = 0
  for (let after: string | null = null; pages < 10; ) {
    const place = { webhook, nowMs: world.nowMs }
    const page = await listDeliveries(read, place, { limit: 100, after, status: null, event: null })
    pages += 1
    listed.push(...(page?.deliveries ?? []).map(({ deliveryId }) => deliveryId))
    after = page?.next ?? null
    if (after === null) break
  }
  t.same([listed, pages], [[id], 3])
})
