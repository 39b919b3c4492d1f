/** blocks - deliveries of an older slice move to blocks, and nobody sees a difference at any step. */

import t from 'tap'
import { makeTrimBacklog } from '../../../src/actors/webhook/backlog.ts'
import { posted } from '../../../src/actors/webhook/posted.ts'
import { removeWebhook } from '../../../src/actors/webhook/remove.ts'
import { replay } from '../../../src/actors/webhook/replay.ts'
import { WEBHOOK_SWEEP_TIMER, webhookSweep } from '../../../src/actors/webhook/sweep.ts'
import { DAY_MS } from '../../../src/state/calendar.ts'
import { blocksKey, deadKey, deliveryKey, queueKey } from '../../../src/state/keys.ts'
import { unpackDeliveries } from '../../../src/state/webhook/block.ts'
import { type DeliveryRecord, deadOps, deadRecord, recordOp } from '../../../src/state/webhook/delivery.ts'
import { formatItem, postLane } from '../../../src/state/webhook/item.ts'
import type { WebhookState } from '../../../src/state/webhook/webhook.ts'
import { listDeliveries, readDelivery } from '../../../src/views/webhook.ts'
import { LIVE_KEY, makeTenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'
import { fire, queue, seedWebhook, type Waiting, waiting } from '../../support/world/webhook-world.ts'
import { readerOf } from '../../support/world/world-reader.ts'

const NOW_MS = Date.UTC(2026, 10, 21, 12)
const SLICE = '20261121-0'
const COUNT = 450

const DELIVERED: DeliveryRecord = {
  status: 'delivered',
  attempts: 1,
  lastStatusCode: 200,
  lastError: null,
  lastResponse: 'accepted by the shop',
  deliveredAtMs: NOW_MS + 40,
  nextAttemptAtMs: null,
  base: 0,
  failures: 0,
  queuedAtMs: null,
}

/** Deliveries of which most are delivered, one of ten is dead, and three wait: one is fresh, two were attempted. */
function setUp() {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const webhook = seedWebhook(world, tenant)
  const { webhookId, serverId } = webhook
  queue(world, webhookId, COUNT)
  const posts = waiting(world)
  for (const [at, post] of posts.entries()) {
    const place = { shard: world.shard, ...post }
    const item = formatItem(post)
    if (at % 150 === 7) continue
    const record = { ...DELIVERED, deliveredAtMs: NOW_MS + at }
    const waits: DeliveryRecord = { ...record, status: 'pending', deliveredAtMs: null, nextAttemptAtMs: NOW_MS + 9_000 }
    const isDead = at % 10 === 3
    const ops = isDead ? deadOps(place, { item, record: deadRecord(record, 'http_500') }) : [recordOp(place, record)]
    for (const op of at % 150 === 8 ? [recordOp(place, waits)] : ops) world.apply(op)
    if (at % 150 !== 8) world.items.delete(`${postLane(webhookId)} ${item}`)
  }
  world.counters.set(`webhook:${webhookId}`, { ...(world.counters.get(`webhook:${webhookId}`) as object), pending: 6 })
  const order = { accountId: tenant.accountId, serverId, keyHash: LIVE_KEY, webhookId }
  return { world, webhook, posts, order }
}

/** All that the API shows of a webhook's deliveries, page by page and one by one, a line each. */
async function shown(world: World, webhook: WebhookState, posts: readonly Waiting[]) {
  const { read } = readerOf(world)
  const place = { webhook, nowMs: world.nowMs }
  const lists: unknown[] = []
  for (const [limit, status] of [
    [100, null],
    [7, 'pending'],
    [23, 'dead'],
    [100, 'delivered'],
  ] as const) {
    for (let after: string | null = null, pages = 0; pages < 50; pages += 1) {
      const page = await listDeliveries(read, place, { limit, after, status, event: null })
      lists.push(...(page?.deliveries ?? []))
      after = page?.next ?? null
      if (after === null) break
    }
  }
  const each: unknown[] = []
  for (const { deliveryId } of posts) each.push(await readDelivery(read, place, deliveryId))
  return [...lists, ...each].map((one) => JSON.stringify(one))
}

const SWEEP = (webhookId: string) => `${WEBHOOK_SWEEP_TIMER}:${webhookId}`
const blocksOf = (world: World, webhookId: string) => [...world.sorted(blocksKey(world.shard, webhookId, SLICE)).keys()]

t.test('blocks: a slice of four days moves, and shows the same at every step [webhook.delivery]', async (t) => {
  const { world, webhook, posts } = setUp()
  const { webhookId } = webhook
  const before = await shown(world, webhook, posts)
  t.ok(before.length > 2 * COUNT)
  const changed = async () => {
    const now = await shown(world, webhook, posts)
    return now.length === before.length ? (now.find((line, at) => line !== before[at]) ?? null) : `${now.length} lines`
  }
  world.nowMs = Date.UTC(2026, 10, 25, 23, 59)
  fire(world, webhookSweep, SWEEP(webhookId))
  t.same(blocksOf(world, webhookId), [], 'not before')
  world.nowMs = Date.UTC(2026, 10, 26, 0, 1)
  let steps = 0
  do {
    world.items.delete(`timers ${SWEEP(webhookId)}`)
    world.run(webhookSweep, { item: SWEEP(webhookId) })
    steps += 1
    t.equal(await changed(), null, `after step ${steps}`)
  } while ((world.items.get(`timers ${SWEEP(webhookId)}`)?.atMs ?? 0) <= world.nowMs && steps < 20)
  t.equal(steps, 3 + 1 + 1, 'three blocks, the end of the slice, the end of the walk')
  t.equal(blocksOf(world, webhookId).length, 3)
  t.same(world.stream(queueKey(world.shard, webhookId, SLICE)), [])
  const rest = world.hash(deliveryKey(world.shard, webhookId, SLICE))
  t.equal(rest.size, 45 + 3, 'the dead and those that were attempted')
  const bytes = blocksOf(world, webhookId).join('').length
  t.ok(bytes / COUNT < 45, `${Math.round(bytes / COUNT)} bytes a delivery`)
  world.nowMs -= 3 * DAY_MS
  t.equal(await changed(), null, 'with the clock back')
})

t.test(
  'blocks: a packed delivery is replayed, delivered again and leaves after 30 days [webhook.replay]',
  async (t) => {
    const { world, webhook, posts, order } = setUp()
    const { webhookId } = webhook
    world.nowMs += 6 * DAY_MS
    fire(world, webhookSweep, SWEEP(webhookId))
    const post = posts[200] as Waiting
    const { deliveryId } = post
    t.match(world.run(replay, { ...order, deliveryId }), { kind: 'queued', record: { status: 'pending', attempts: 1 } })
    t.match(world.counters.get(`webhook:${webhookId}`), { pending: 7 })
    const { read } = readerOf(world)
    const one = () => readDelivery(read, { webhook, nowMs: world.nowMs }, deliveryId)
    t.match(await one(), { record: { status: 'pending' } }, 'the hash wins over the block')
    const item = formatItem(post)
    const outcome = { result: 'delivered', statusCode: 204, error: null, final: false } as const
    world.run(posted, { lane: postLane(webhookId), item, attempt: 1, current: true, outcome })
    t.match(await one(), { record: { status: 'delivered', lastStatusCode: 204 } })
    t.match(world.counters.get(`webhook:${webhookId}`), { pending: 6 })
    const dead = posts[13] as Waiting
    t.match(world.run(replay, { ...order, deliveryId: dead.deliveryId }), { kind: 'queued' })
    t.notOk(world.sorted(deadKey(world.shard, webhookId, SLICE)).has(formatItem(dead)))
    t.match(await readDelivery(read, { webhook, nowMs: world.nowMs }, dead.deliveryId), {
      record: { status: 'pending' },
    })
    world.nowMs += 26 * DAY_MS
    fire(world, webhookSweep, SWEEP(webhookId))
    t.same(blocksOf(world, webhookId), [])
    t.equal(await one(), 'not_found')
    t.equal(world.hash(deliveryKey(world.shard, webhookId, SLICE)).size, 45 + 3)
    t.equal(world.sorted(deadKey(world.shard, webhookId, SLICE)).size, 45 + 6, 'the pending ones are listed too')
  },
)

t.test('blocks: one that is delivered on the day of thinning leaves with its slice [retention.delivery]', (t) => {
  for (const isPacked of [true, false]) {
    const { world, webhook, posts, order } = setUp()
    const { webhookId } = webhook
    if (isPacked) {
      world.nowMs += 6 * DAY_MS
      fire(world, webhookSweep, SWEEP(webhookId))
    }
    world.nowMs = Date.UTC(2026, 11, 22, 3)
    const post = posts[13] as Waiting
    t.match(world.run(replay, { ...order, deliveryId: post.deliveryId }), { kind: 'queued' })
    const [item, lane] = [formatItem(post), postLane(webhookId)]
    const outcome = { result: 'delivered', statusCode: 204, error: null, response: 'Ada', final: false } as const
    world.run(posted, { lane, item, attempt: 1, current: true, outcome })
    const key = deliveryKey(world.shard, webhookId, SLICE)
    t.equal([...world.hash(key).values()].join().includes('Ada'), false)
    const listed = () => world.sorted(deadKey(world.shard, webhookId, SLICE))
    t.notOk(listed().has(item))
    fire(world, webhookSweep, SWEEP(webhookId))
    t.notOk(listed().has(item), 'not listed as one that waits')
    t.equal(listed().size, 45 - 1 + 6)
    t.equal(world.hash(key).size, 45 + 3 - 1)
    t.match(world.counters.get(`webhook:${webhookId}`), { pending: 6, thinned: SLICE })
  }
  t.end()
})

t.test('blocks: an outcome that comes after its delivery was packed changes nothing', async (t) => {
  const { world, webhook, posts } = setUp()
  const { webhookId } = webhook
  world.nowMs += 6 * DAY_MS
  fire(world, webhookSweep, SWEEP(webhookId))
  const outcome = { result: 'delivered', statusCode: 204, error: null, final: false } as const
  const item = formatItem(posts[200] as Waiting)
  world.run(posted, { lane: postLane(webhookId), item, attempt: 1, current: false, outcome })
  t.match(world.counters.get(`webhook:${webhookId}`), { pending: 6 })
  t.equal(world.hash(deliveryKey(world.shard, webhookId, SLICE)).size, 45 + 3)
})

t.test('blocks: pending deliveries in blocks are the oldest of a backlog [webhook.backlog]', async (t) => {
  const { world, webhook } = setUp()
  const { webhookId } = webhook
  world.nowMs += 6 * DAY_MS
  fire(world, webhookSweep, SWEEP(webhookId))
  queue(world, webhookId, 10)
  fire(world, makeTrimBacklog(12), `backlog:${webhookId}`)
  t.match(world.counters.get(`webhook:${webhookId}`), { pending: 12 })
  t.equal(world.hash(deliveryKey(world.shard, webhookId, SLICE)).size, 45 + 3 + 2, 'two fresh ones have a record')
  t.equal(world.sorted(deadKey(world.shard, webhookId, SLICE)).size, 45 + 4)
})

t.test('blocks: a damaged block is refused when read, and leaves with its slice', async (t) => {
  const { world, webhook, posts } = setUp()
  const { webhookId } = webhook
  world.nowMs += 6 * DAY_MS
  fire(world, webhookSweep, SWEEP(webhookId))
  const key = blocksKey(world.shard, webhookId, SLICE)
  const [[block = '', score = 0] = []] = [...world.sorted(key)]
  for (const text of [`x${block.slice(1)}`, 'AAAA', block.slice(0, 40), ''])
    t.throws(() => unpackDeliveries(SLICE, text))
  world.apply({ key, write: 'ZREM', args: [block] })
  const damaged = `\ufffd${block.slice(1)}`
  world.apply({ key, write: 'ZADD', args: [String(score), damaged] })
  // Redis holds other bytes than those of U+FFFD, so this text names no member.
  const apply = world.apply.bind(world)
  world.apply = (op) => {
    if (op.write !== 'ZREM' || op.args[0] !== damaged) apply(op)
  }
  const { read } = readerOf(world)
  await t.rejects(readDelivery(read, { webhook, nowMs: world.nowMs }, posts[1]?.deliveryId ?? ''), /damaged/)
  fire(world, makeTrimBacklog(5), `backlog:${webhookId}`)
  t.match(world.counters.get(`webhook:${webhookId}`), { pending: 5 }, 'the bound holds with the others')
  world.nowMs += 26 * DAY_MS
  fire(world, webhookSweep, SWEEP(webhookId))
  t.same(blocksOf(world, webhookId), [])
})

t.test('blocks: nothing is left of a removed webhook, or of a slice past its age [webhook.remove]', async (t) => {
  for (const ends of ['removed', 'past'] as const) {
    const { world, webhook, order } = setUp()
    const { webhookId } = webhook
    world.nowMs += 6 * DAY_MS
    fire(world, webhookSweep, SWEEP(webhookId))
    t.equal(blocksOf(world, webhookId).length, 3)
    if (ends === 'removed') {
      t.match(world.run(removeWebhook, order), { kind: 'removed' })
      world.fireTimers()
    } else {
      world.nowMs = Date.UTC(2028, 0, 1)
      fire(world, webhookSweep, SWEEP(webhookId))
    }
    t.same(
      world.keyNames().filter((key) => key.includes(webhookId) && /:(queue|blocks|delivery|dead|slices):/.test(key)),
      [],
      ends,
    )
  }
})
