/**
 * retention - the clock moves days and months past the retention that was set, and every byte is searched: Redis, its
 * rewritten file, and the content store, whose objects are opened by the keys in the rows.
 */
import { Redis } from 'ioredis'
import t from 'tap'
import { MOVED_CLOCK_SKIP, makeMovedClock } from '../support/machine/moved-clock.ts'
import { until } from '../support/machine/until.ts'
import { startMx } from '../support/peers/mx.ts'
import { startZone } from '../support/peers/zone.ts'
import { verifyDomain } from '../support/service/crash-live.ts'
import { startTestService } from '../support/service/service.ts'
import { Seeker, seekInFiles, seekInRedis } from '../support/store/seek.ts'
import { seekInObjects } from '../support/store/seek-objects.ts'

const SWEPT_MS_MAX = 30_000
/** In text and HTML alone. */
const BODY_WORD = 'quillwortbody'
/** In subject, tag and metadata. */
const HEAD_WORD = 'quillworthead'
const ADDRESS_WORD = 'quillwortada'

t.test('retention that was set holds for every byte [retention.settings]', { skip: MOVED_CLOCK_SKIP }, async (t) => {
  const clock = makeMovedClock()
  const mx = await startMx()
  const zone = await startZone()
  const service = await clock.around(() =>
    startTestService({
      RELAY_URL: `smtp://127.0.0.1:${mx.port}`,
      PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8',
      DNS_SERVERS: zone.server,
      CONTENT_STORE: 'file',
    }),
  )
  const redis = new Redis({ path: service.redis.socketPath })
  t.teardown(async () => {
    redis.disconnect()
    await service.stop()
    await zone.close()
    await mx.close()
  })
  const { liveServer, account } = service.firstRun
  const { token } = liveServer
  await verifyDomain(service.config.httpPort, service.firstRun, { zone, domain: 'live.example' })
  const read = (id: string) => service.call(`GET /v1/messages/${id}`, { token })
  const send = async (html: string): Promise<string> => {
    const body = {
      from: 'shop@live.example',
      to: [`${ADDRESS_WORD}@example.com`],
      subject: HEAD_WORD,
      html,
      tag: HEAD_WORD,
      metadata: { word: HEAD_WORD },
    }
    const { json } = await service.call('POST /v1/email', { token, body })
    await until(async () => (await read(json.messageId)).json.status === 'delivered', 10_000)
    return json.messageId
  }
  /** Every place that holds a word, after Redis has written its file anew. */
  const placesOf = async (word: string): Promise<string[]> => {
    await redis.bgrewriteaof()
    await until(async () => (await redis.info('persistence')).includes('aof_rewrite_in_progress:0'), 10_000)
    const seeker = new Seeker(word)
    const sought = { redis, dataDir: service.dataDir, secretKey: service.config.secretKey as string, seeker }
    return [
      ...(await seekInRedis(redis, seeker)),
      ...seekInFiles(service.redis.dir, seeker),
      ...seekInFiles(service.dataDir, seeker),
      ...(await seekInObjects(sought)),
    ]
  }
  const isNowhere = (word: string) => until(async () => (await placesOf(word)).length === 0, SWEPT_MS_MAX)
  const random = () => Buffer.from(Array.from({ length: 90_000 }, () => Math.random() * 256)).toString('base64')
  const ids = [
    await send(BODY_WORD),
    await send(`${BODY_WORD} ${'x'.repeat(20_000)}`),
    await send(BODY_WORD + random()),
  ]
  const before = await placesOf(BODY_WORD)
  t.ok(before.length > 1, `there is something to find: ${before.join()}`)
  const bytesBefore = Number(/used_memory_dataset:(\d+)/.exec(await redis.info('memory'))?.[1])

  await t.test('text and HTML are gone after the days that were set', async (t) => {
    clock.moveTo(3)
    // The jump of the clock ends the leases of the process.
    await until(async () => {
      const body = { sentContentDays: 2 }
      const path = `/v1/servers/${liveServer.serverId}/retention`
      return (await service.call(`PATCH ${path}`, { token: account.token, body })).status === 200
    }, SWEPT_MS_MAX)
    for (const id of ids) {
      await until(async () => !(await read(id)).json.contentAvailable, SWEPT_MS_MAX)
      t.strictSame((await read(id)).json.html, null)
    }
    await isNowhere(BODY_WORD)
    t.same(await placesOf(BODY_WORD), [])
    t.ok((await placesOf(HEAD_WORD)).length > 0, 'the log stays')
    const bytes = Number(/used_memory_dataset:(\d+)/.exec(await redis.info('memory'))?.[1])
    t.comment(`dataset ${bytesBefore} -> ${bytes} bytes`)
  })

  await t.test('messages are gone after the months that were set, their addresses some weeks later', async (t) => {
    const order = { token: service.firstRun.operatorToken, body: { logRetentionMonths: 1 } }
    await until(async () => (await service.operate('PATCH /v1/operator/retention', order)).status === 200, SWEPT_MS_MAX)
    clock.moveTo(34)
    await until(async () => (await read(ids[0] as string)).status === 404, SWEPT_MS_MAX)
    await isNowhere(HEAD_WORD)
    t.same(await placesOf(HEAD_WORD), [])
    // By day 130 the month of the last message is over for 63 days, whatever the day of today.
    clock.moveTo(130)
    await isNowhere(ADDRESS_WORD)
    t.same(await placesOf(ADDRESS_WORD), [])
    t.equal((await read(await send('again'))).status, 200, 'and mail goes on')
  })
})
