/** The clock moves fourteen months, and nothing is left of a message: in the store, in the API, in memory. */
import { Redis } from 'ioredis'
import t from 'tap'
import { MOVED_CLOCK_SKIP, makeMovedClock } from './support/machine/moved-clock.ts'
import { until } from './support/machine/until.ts'
import { startMx } from './support/peers/mx.ts'
import { startZone } from './support/peers/zone.ts'
import { verifyDomain } from './support/service/crash-live.ts'
import { type CallOptions, startTestService, type TestService } from './support/service/service.ts'

const SWEPT_MS_MAX = 30_000
const ADDRESS = 'someone.to.forget@example.com'
const PATTERNS = [
  ...['log', 'head', 'status', 'by-person', 'by-tag', 'segments', 'bodies', 'content', 'idempotency'],
  ...['events', 'event-slices'],
]

t.test('retention: what is past its age is gone [retention.all]', { skip: MOVED_CLOCK_SKIP }, async (t) => {
  const clock = makeMovedClock()
  const mx = await startMx()
  const zone = await startZone()
  const service = await clock.around(() =>
    startTestService({
      RELAY_URL: `smtp://127.0.0.1:${mx.port}`,
      PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8',
      DNS_SERVERS: zone.server,
    }),
  )
  const redis = new Redis({ path: service.redis.socketPath })
  t.teardown(async () => {
    redis.disconnect()
    await service.stop()
    await zone.close()
    await mx.close()
  })
  const { liveServer, testServer } = service.firstRun
  await verifyDomain(service.config.httpPort, service.firstRun, { zone, domain: 'live.example' })
  const sent = [
    await send(service, liveServer.token, 'shop@live.example'),
    await send(service, testServer.token, 'you@simulator.test'),
  ]
  t.ok((await keysLeft(redis)).length > 10, 'there is something to forget')

  await t.test('a test server forgets content after 7 days, all after 30 [retention.test]', async (t) => {
    clock.moveTo(8)
    const aged = await until(async () => {
      const { json } = await read(service, testServer.token, sent[1]!)
      return json?.contentAvailable === false ? json : null
    }, SWEPT_MS_MAX)
    t.match(aged, { text: null, html: null, subject: 'To be forgotten' })
    t.match((await read(service, liveServer.token, sent[0]!)).json, { contentAvailable: true, text: 'Forget me.' })
    clock.moveTo(31)
    await until(async () => (await read(service, testServer.token, sent[1]!)).status === 404, SWEPT_MS_MAX)
    await until(async () => (await redis.keys(`*:log:${testServer.serverId}:*`)).length === 0, SWEPT_MS_MAX)
    t.match((await read(service, liveServer.token, sent[0]!)).json, { contentAvailable: false, text: null })
  })

  await t.test('a live server forgets all after 13 months, the person too [retention.live]', async (t) => {
    clock.moveTo(426)
    await until(async () => (await read(service, liveServer.token, sent[0]!)).status === 404, SWEPT_MS_MAX)
    await until(async () => (await keysLeft(redis)).length === 0, SWEPT_MS_MAX)
    t.same(await keysLeft(redis), [])
    await until(async () => !(await holds(redis, ADDRESS)), SWEPT_MS_MAX)
    t.notOk(await holds(redis, ADDRESS), 'the address is nowhere in the store')
    const again = await send(service, testServer.token, 'you@simulator.test')
    t.equal((await read(service, testServer.token, again)).status, 200, 'and mail goes on')
  })
})

async function send(service: TestService, token: string, from: string): Promise<string> {
  const options: CallOptions = {
    token,
    headers: { 'idempotency-key': from },
    body: { from, to: [ADDRESS], subject: 'To be forgotten', text: 'Forget me.', tag: 'retention' },
  }
  const { json } = await service.call('POST /v1/email', options)
  await until(async () => (await read(service, token, json.messageId)).json.status === 'delivered', 10_000)
  return json.messageId
}

function read(service: TestService, token: string, id: string): ReturnType<TestService['call']> {
  return service.call(`GET /v1/messages/${id}`, { token })
}

async function keysLeft(redis: Redis): Promise<string[]> {
  const all = await Promise.all(PATTERNS.map((name) => redis.keys(`*:${name}:*`)))
  return all.flat()
}

/** Whether a text stands anywhere in the store. */
async function holds(redis: Redis, text: string): Promise<boolean> {
  for (const key of await redis.keys('*')) {
    const type = await redis.type(key)
    const value =
      type === 'hash'
        ? await redis.hgetall(key)
        : type === 'stream'
          ? await redis.xrange(key, '-', '+')
          : type === 'string'
            ? await redis.get(key)
            : await redis.zrange(key, 0, -1)
    if (JSON.stringify(value).includes(text)) return true
  }
  return false
}
