/** webhook - pages of deliveries: each once, however many died in one millisecond. */

import t from 'tap'
import { makeTrimBacklog } from '../../src/actors/webhook-backlog.ts'
import { webhookSweep } from '../../src/actors/webhook-sweep.ts'
import { listDeliveries } from '../../src/views/webhook.ts'
import { makeTenant } from '../support/tenant.ts'
import { World } from '../support/turn.ts'
import { fire, queue, seedWebhook } from '../support/webhook-world.ts'
import { readerOf } from '../support/world-reader.ts'

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
