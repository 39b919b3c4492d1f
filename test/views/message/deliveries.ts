/** deliveries - those of one message among very many, in old slices, page by page. */
import t from 'tap'
import { reportOutcome } from '../../../src/actors/message/attempt-outcome.ts'
import { attemptOutcome } from '../../../src/actors/message/delivery-outcome.ts'
import { makeRefused } from '../../../src/mail/classify.ts'
import { makeDelivered } from '../../../src/mail/outcome.ts'
import { apiKeyKey } from '../../../src/state/keys.ts'
import type { ServerKey } from '../../../src/views/key.ts'
import { listMessageDeliveries } from '../../../src/views/message/deliveries.ts'
import { acceptedIds, hmacOf, LIVE_KEY, makeItem, makeRecipient, makeTenant, send } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'
import { seedWebhook } from '../../support/world/webhook-world.ts'
import { readerOf } from '../../support/world/world-reader.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 23, 59, 59, 900)
const MINUTE_MS = 60_000

t.test('deliveries: 50 recipients, deferred again and again, over midnight, among others of that time', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const { serverId, streamId } = tenant.live
  const hooks = [seedWebhook(world, tenant), seedWebhook(world, tenant, { events: ['delivered'] })]
  seedWebhook(world, tenant, { streamId: tenant.test.streamId })
  const recipients = Array.from({ length: 50 }, (_, n) => makeRecipient(`p${n}@example.net`))
  const [messageId = ''] = acceptedIds(send(world, tenant, { messages: [makeItem({ recipients })] }))
  const [other = ''] = acceptedIds(send(world, tenant))
  const told = { streamId, sizeBytes: 9, retryAfterMs: null }
  const report = (address: string, isLast: boolean) => {
    const later = makeRefused({ phase: 'rcpt', response: '451 4.3.0 Try later' })
    const outcome = isLast ? makeDelivered(250, '250 Ok') : later
    return reportOutcome(outcome, { ...told, address, hmac: () => hmacOf(address) })
  }
  let made = 0
  for (let round = 0; round < 4; round += 1) {
    const due = world.deliveries().filter(({ lane }) => lane.startsWith('deliver/'))
    for (const item of due) {
      world.end(attemptOutcome, { ...item, attempt: item.claims }, report('p@example.net', round === 3))
      made += 1
    }
    // Some events share their millisecond with many others, some have their own.
    world.nowMs += round === 0 ? 1 : 30 * MINUTE_MS
  }
  t.equal(made, 4 * 51)
  const { accountId } = tenant
  const key: ServerKey = {
    kind: 'server',
    accountId,
    serverId,
    tokenId: serverId,
    hash: LIVE_KEY,
    mode: 'live',
    defaultStreamId: streamId,
  }
  t.ok(world.hash(apiKeyKey(world.shard, LIVE_KEY)).size > 0)
  const { read } = readerOf(world)
  const deps = { read, nowMs: () => world.nowMs }
  const pagesOf = async (id: string, limit: number) => {
    const found: { deliveryId: string; webhookId: string; event: string }[] = []
    let after: string | null = null
    for (let pages = 0; pages < 1_000; pages += 1) {
      const seen = await listMessageDeliveries(deps, key, { messageId: id, page: { limit, after } })
      if (typeof seen === 'string') throw new Error(seen)
      found.push(...seen.deliveries)
      if (seen.next === null) return found
      after = seen.next
    }
    throw new Error('Pages without end')
  }
  for (const limit of [1, 7, 100]) {
    const found = await pagesOf(messageId, limit)
    t.equal(new Set(found.map(({ deliveryId }) => deliveryId)).size, found.length, 'each once')
    t.equal(found.filter(({ webhookId }) => webhookId === hooks[0]?.webhookId).length, 4 * 50)
    t.equal(found.filter(({ webhookId }) => webhookId === hooks[1]?.webhookId).length, 50)
    t.equal(found.length, 5 * 50, 'none of a webhook of another stream')
    const ids = found.map(({ deliveryId }) => deliveryId)
    t.same(ids, [...ids].sort().reverse())
  }
  t.equal((await pagesOf(other, 100)).length, 5)
})
