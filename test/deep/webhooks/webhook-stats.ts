/**
 * webhook-stats - what waits for webhooks and since when, by class: newer deliveries and a restart change nothing.
 */

import { Redis } from 'ioredis'
import t from 'tap'
import { makeIds, shortId } from '../../../cluster/id.ts'
import { dueKey, laneKey } from '../../../cluster/keyspace.ts'
import { deliveryKey } from '../../../src/state/keys.ts'
import { formatItem, postLane, webhookOfLane } from '../../../src/state/webhook/item.ts'
import { oneNode } from '../../../src/store/nodes.ts'
import { makeReadKeys } from '../../../src/store/read-keys.ts'
import { makeWebhookStats, type Standing } from '../../../src/webhooks/webhook-stats.ts'
import { until } from '../../support/machine/until.ts'
import { startReceiver } from '../../support/peers/receiver.ts'
import { startTestService } from '../../support/service/service.ts'
import { startRedis } from '../../support/store/redis.ts'

const WAIT_MS = 30_000
const SHARD = 7
const NOW_MS = Date.UTC(2026, 4, 4)
/** Items of one command. */
const SEED_ITEMS = 5_000
const SLICE = '20260503-0'
const NOTHING = {
  webhookBacklogHealthy: 0,
  webhookBacklogFailing: 0,
  webhookOldestSecondsHealthy: 0,
  webhookOldestSecondsFailing: 0,
}

t.test('webhook figures: the oldest is found wherever it is in its lane [webhook.backlog]', async (t) => {
  const store = await startRedis()
  const redis = new Redis(store.socketPath)
  t.teardown(async () => {
    redis.disconnect()
    await store.stop()
  })
  const newId = (atMs: number) => makeIds({ shard: SHARD, last: '', random: Math.random }).next(Math.floor(atMs))
  const standings = new Map<string, Standing>()
  let nowMs = NOW_MS
  const figures = makeWebhookStats({
    readKeys: makeReadKeys(oneNode(() => redis)),
    nowMs: () => nowMs,
    shards: () => [SHARD],
    standingOf: (lane) => standings.get(lane) ?? 'unknown',
  })
  t.same(await figures(), NOTHING)
  /** A webhook with `count` deliveries of the last minute, and one of `oldSeconds` that is due amid them. */
  const seed = async (count: number, oldSeconds: number, failures: number): Promise<string> => {
    const webhookId = newId(NOW_MS - 90_000_000)
    const lane = postLane(webhookId)
    const reference = { kind: 'example', event: 'bounced', madeUpId: webhookId } as const
    const item = (ageSeconds: number) => {
      const deliveryId = newId(NOW_MS - ageSeconds * 1000)
      return { deliveryId, name: formatItem({ deliveryId, slice: SLICE, reference }) }
    }
    const old = item(oldSeconds)
    const key = laneKey(SHARD, lane)
    for (let first = 0; first < count; first += SEED_ITEMS) {
      const places = Array.from({ length: Math.min(SEED_ITEMS, count - first) }, (_, at) => first + at)
      await redis.zadd(key, ...places.flatMap((at) => [String(at), item((60 * (at + 1)) / count).name]))
    }
    await redis.zadd(key, String(count / 2), old.name)
    await redis.zadd(dueKey(SHARD), '0', lane)
    const row = JSON.stringify(['p', failures, 503, 0, 'http_503', 1, 0, failures])
    if (failures > 0) await redis.hset(deliveryKey(SHARD, webhookId, SLICE), shortId(old.deliveryId), row)
    return lane
  }
  const failing = await seed(3_000, 40_000, 7)
  await seed(10, 500, 0)
  await redis.zadd(dueKey(SHARD), '0', 'timers')
  t.same(await figures(), NOTHING, 'a look serves for some seconds')
  nowMs += 3_000
  const both = { webhookBacklogFailing: 3_001, webhookBacklogHealthy: 11 }
  t.same(await figures(), { ...both, webhookOldestSecondsFailing: 40_003, webhookOldestSecondsHealthy: 503 })
  standings.set(failing, 'answering')
  nowMs += 3_000
  t.match(await figures(), { webhookBacklogFailing: 0, webhookOldestSecondsHealthy: 40_006 }, 'the last answer counts')
  standings.set(failing, 'failing')
  await seed(98_000, 70_000, 0)
  nowMs += 3_000
  const full = await figures()
  t.match(full, { webhookBacklogHealthy: 98_012, webhookOldestSecondsFailing: 40_009 })
  t.equal(Math.round(full.webhookOldestSecondsHealthy ?? 0), 509, 'of a lane beyond the bound both ends are read')
  standings.delete(failing)
  const key = deliveryKey(SHARD, webhookOfLane(failing), SLICE)
  const [field = ''] = await redis.hkeys(key)
  await redis.hset(key, field, '["p",7]~~AAAAAA')
  nowMs += 3_000
  const last = await figures()
  t.match(last, { webhookBacklogFailing: 0, webhookBacklogHealthy: 101_013 }, 'a damaged row has not failed')
  redis.disconnect()
  nowMs += 3_000
  t.same(await figures(), last, 'the last look stands while the store is away')
})

t.test(
  'webhook figures: read from /metrics, with newer deliveries and after a restart [webhook.backlog]',
  async (t) => {
    const receiver = await startReceiver()
    if (receiver === null) return t.comment('openssl is not installed: skipped')
    const service = await startTestService({ PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8' }, { smtp: { ca: receiver.ca } })
    t.teardown(async () => {
      await service.stop()
      await receiver.close()
    })
    const { testServer, operatorToken } = service.firstRun
    const call = (what: string, body?: object) =>
      service.call(what, { token: testServer.token, ...(body !== undefined && { body }) })
    const metrics = async () => {
      const { text } = await service.operateActors('GET /metrics', { token: operatorToken })
      const of = (name: string, kind: string) =>
        Number(new RegExp(`^sendwright_webhook_${name}\\{class="${kind}"\\} (.+)$`, 'm').exec(text)?.[1])
      return {
        backlog: [of('backlog', 'failing'), of('backlog', 'healthy')],
        failingSeconds: of('oldest_seconds', 'failing'),
        healthySeconds: of('oldest_seconds', 'healthy'),
      }
    }
    const showing = (...backlog: number[]) =>
      until(async () => {
        const page = await metrics()
        return String(page.backlog) === String(backlog) ? page : null
      }, WAIT_MS)
    const recovering = new Set<string>()
    receiver.react(({ path }, response) => {
      response.statusCode = recovering.has(path) ? 200 : 503
      response.end()
    })
    const [ill, well] = await Promise.all(
      ['/ill', '/well'].map(
        async (path) => (await call('POST /v1/webhooks', { url: receiver.url + path })).json.webhookId,
      ),
    )
    const post = (id: string) => call(`POST /v1/webhooks/${id}/test`, { event: 'bounced' })
    const oldMs = Date.now()
    for (const id of [ill, well]) t.equal((await post(id)).status, 202)
    await showing(2, 0)
    recovering.add('/well')
    for (const id of [ill, ill, well]) t.equal((await post(id)).status, 202)
    const ageOf = (nowMs: number) => (nowMs - oldMs) / 1000
    const before = ageOf(Date.now())
    const page = await showing(3, 1)
    for (const seconds of [page.failingSeconds, page.healthySeconds])
      t.ok(seconds > before - 5 && seconds <= ageOf(Date.now()), `${seconds} s is the age of the first`)
    t.ok(page.failingSeconds > 1)
    await service.restart()
    const restarted = ageOf(Date.now())
    const after = await showing(4, 0)
    t.ok(
      after.failingSeconds >= restarted - 5 && after.failingSeconds > page.failingSeconds,
      'nothing was attempted yet',
    )
  },
)
