/**
 * live - the log of a running service leaves Redis with the days, and everything that was possible with its messages
 * still is: reading, searching, a late complaint, an erasure, retention.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { shardOf } from '../../../../cluster/id.ts'
import { makeContents } from '../../../../src/content/contents.ts'
import { makeFileHome } from '../../../../src/content/files.ts'
import { SealedSegments } from '../../../../src/content/sealed/segment.ts'
import { unpackSealed } from '../../../../src/state/message/sealed.ts'
import { MOVED_CLOCK_SKIP, makeMovedClock } from '../../../support/machine/moved-clock.ts'
import { until } from '../../../support/machine/until.ts'
import { startMx } from '../../../support/peers/mx.ts'
import { deliverMail } from '../../../support/peers/smtp-dialog.ts'
import { startZone } from '../../../support/peers/zone.ts'
import { verifyDomain } from '../../../support/service/crash-live.ts'
import { startTestService, type TestService } from '../../../support/service/service.ts'
import { Seeker, seekInRedis } from '../../../support/store/seek.ts'
import { ringOf } from '../../../support/world/rings.ts'

const WAIT_MS = 40_000
/** Letters and digits that nothing has but one person. */
const WORD = `q${Math.random().toString(36).slice(2).padEnd(12, 'x')}q`
const VICTIM = `${WORD}@example.com`
const PEOPLE = ['ada@example.com', 'ben@example.com', VICTIM, 'cay@example.com']
const COUNT = 24

t.test('sealed: the log of a service over its days', { skip: MOVED_CLOCK_SKIP }, async (t) => {
  const clock = makeMovedClock()
  const mx = await startMx()
  const zone = await startZone()
  const service = await clock.around(() =>
    startTestService({
      RELAY_URL: `smtp://127.0.0.1:${mx.port}`,
      PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8',
      DNS_SERVERS: zone.server,
      CONTENT_STORE: 'file',
      HOT_DAYS: '4',
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
  const { token, serverId } = liveServer
  await verifyDomain(service.config.httpPort, service.firstRun, { zone, domain: 'live.example' })
  const ids: string[] = []
  for (let n = 0; n < COUNT; n += 1) ids.push(await send(service, PEOPLE[n % PEOPLE.length] as string, n))
  await until(async () => (await statusOf(service, ids.at(-1) as string)) === 'delivered', WAIT_MS)
  for (const id of ids) await until(async () => (await statusOf(service, id)) === 'delivered', WAIT_MS)
  const read = async () => Promise.all(ids.map(async (id) => withoutContent((await show(service, id)).json)))
  const before = await read()
  const returnPath = mx.sessions
    .flatMap(({ commands }) => commands)
    .map((line) => /^MAIL FROM:<([^>]*)>/.exec(line)?.[1])
    .find(Boolean) as string

  await t.test('a closed segment leaves Redis, and its messages are read and found as before', async (t) => {
    clock.moveTo(32)
    const later = await until(
      async () => (await send(service, PEOPLE[0] as string, 99).catch(() => null)) ?? null,
      WAIT_MS,
    )
    await until(async () => (await statusOf(service, later)) === 'delivered', WAIT_MS)
    clock.moveTo(37)
    const row = await until(
      async () => rowsOf(redis, serverId).then((rows) => rows.find(({ generation }) => generation > 0)),
      WAIT_MS,
    )
    t.match(row, { messages: COUNT })
    t.equal((await redis.keys(`*:log:${serverId}:*`)).length, 1, 'the open segment alone is in Redis')
    t.same(await read(), before)
    const search = async (body: object) => {
      const { json } = await service.call('POST /v1/messages/search', { token, body: { ...body, limit: 100 } })
      return json.messages.length
    }
    t.equal(await search({ recipient: VICTIM }), COUNT / PEOPLE.length)
    t.equal(await search({ tag: 'tag-1' }), COUNT / 3)
    t.equal(await search({ metadata: { word: 'ada' } }), COUNT / PEOPLE.length + 1)
    t.equal(await search({}), COUNT + 1)
    const operator = { token: service.firstRun.operatorToken }
    t.match((await service.operate(`GET /v1/operator/messages/${ids[3]}`, operator)).json, { messageId: ids[3] })
  })

  await t.test('a late complaint is recorded and shown', async (t) => {
    t.match(await deliverMail(service.config.mxPort, returnPath, complaintAbout(returnPath)), /^250 /)
    const complained = await until(async () => {
      const seen = await Promise.all(ids.map(async (id) => (await show(service, id)).json))
      return seen.find(({ recipients }) => recipients[0].complainedAt !== null) ?? null
    }, WAIT_MS)
    t.same(
      complained.events.map(({ event }: { event: string }) => event),
      ['delivered', 'spam_complaint'],
    )
    t.equal((await redis.keys(`*:recalled:${serverId}:*`)).length, 1)
  })

  await t.test('a restart reads what is sealed', async (t) => {
    await service.restart()
    t.match((await show(service, ids[5] as string)).json, { subject: 'Order 5' })
  })

  await t.test('an erasure reaches the object: no byte that a row names has a word of the person', async (t) => {
    const seeker = new Seeker(WORD)
    t.ok(
      (await openedOf(service, redis)).some((bytes) => seeker.isIn(bytes)),
      'the word is in the object before',
    )
    t.notOk(
      filesOf(service.dataDir).some((bytes) => seeker.isIn(bytes)),
      'files are encrypted',
    )
    const ordered = await service.call('POST /v1/erasures', { token: account.token, body: { address: VICTIM } })
    const done = await until(async () => {
      const { json } = await service.call(`GET /v1/erasures/${ordered.json.erasureId}`, { token: account.token })
      return json.status === 'done' ? json : null
    }, WAIT_MS)
    t.equal(done.messages, COUNT / PEOPLE.length)
    t.same(
      (await openedOf(service, redis)).filter((bytes) => seeker.isIn(bytes)),
      [],
    )
    t.same(await seekInRedis(redis, seeker), [])
    t.match((await show(service, ids[2] as string)).json, { subject: null, recipients: [{ status: 'delivered' }] })
    t.match((await show(service, ids[3] as string)).json, { subject: 'Order 3' })
  })

  await t.test('after 13 months nothing is left', async (t) => {
    clock.moveTo(470)
    await until(async () => (await redis.keys(`*:sealed:${serverId}`)).length === 0, WAIT_MS)
    t.equal((await show(service, ids[5] as string)).status, 404)
    await until(
      async () => namesOf(join(service.dataDir, 'content')).filter((name) => name.includes('/cold/')).length === 0,
      WAIT_MS,
    )
    t.same(await redis.keys(`*:recalled:${serverId}:*`), [])
  })
})

async function send(service: TestService, to: string, n: number): Promise<string> {
  const body = {
    from: 'shop@live.example',
    to: [{ email: to, name: `Name of ${to.split('@')[0]}` }],
    subject: to === VICTIM ? `Order for ${WORD}` : `Order ${n}`,
    text: 'Thank you.',
    tag: `tag-${n % 3}`,
    metadata: { word: to.split('@')[0] },
  }
  const { status, json } = await service.call('POST /v1/email', { token: service.firstRun.liveServer.token, body })
  if (status !== 200) throw new Error(`Refused: ${status}`)
  return json.messageId
}

function show(service: TestService, id: string): ReturnType<TestService['call']> {
  return service.call(`GET /v1/messages/${id}`, { token: service.firstRun.liveServer.token })
}

async function statusOf(service: TestService, id: string): Promise<string> {
  return (await show(service, id)).json.status
}

/** The parts of a message that do not change with its age. */
function withoutContent(message: Record<string, unknown>): object {
  return { ...message, text: null, html: null, contentAvailable: false }
}

async function rowsOf(redis: Redis, serverId: string) {
  const [key = ''] = await redis.keys(`*:sealed:${serverId}`)
  const texts = key === '' ? {} : await redis.hgetall(key)
  return Object.values(texts).flatMap((text) => unpackSealed(text) ?? [])
}

/** The text of every object that a row names. */
async function openedOf(service: TestService, redis: Redis): Promise<Buffer[]> {
  const { serverId } = service.firstRun.liveServer
  const home = makeFileHome(join(service.dataDir, 'content'), { worker: () => 'test' })
  const contents = makeContents({ home, room: null, told: () => undefined, warn: () => undefined })
  const ring = ringOf(service.config.secretKey as string)
  const segments = new SealedSegments({ contents, ring, nowMs: () => 0 })
  const opened: Buffer[] = []
  for (const row of await rowsOf(redis, serverId)) {
    if (row.generation === 0) continue
    const segment = segments.open(shardOf(serverId) as number, row)
    const { blocks } = await segment.tail()
    for (const number of blocks.keys()) opened.push(Buffer.from(JSON.stringify(await segment.block(number))))
  }
  return opened
}

function namesOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    statSync(join(folder, name)).isFile(),
  )
}

function filesOf(dataDir: string): Buffer[] {
  const folder = join(dataDir, 'content')
  return namesOf(folder).map((name) => readFileSync(join(folder, name)))
}

function complaintAbout(returnPath: string): string {
  return `From: staff@provider.example
Subject: FW: Order
MIME-Version: 1.0
Content-Type: multipart/report; report-type=feedback-report; boundary="b"

--b
Content-Type: text/plain

This is an email abuse report.

--b
Content-Type: message/feedback-report

Feedback-Type: abuse
User-Agent: Loop/1.0
Version: 1

--b
Content-Type: message/rfc822

Return-Path: <${returnPath}>
Subject: Order

Mail
--b--
`
}
