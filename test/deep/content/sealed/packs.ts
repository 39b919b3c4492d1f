/**
 * packs - text and HTML of a running service's mail leave Redis for packs with the days, are read as before, and go
 * with an erasure and with their age.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { openJoined } from '../../../../src/content/joined.ts'
import { unpackHead } from '../../../../src/state/message/head.ts'
import { packName } from '../../../../src/state/message/packed.ts'
import { openMailKey } from '../../../../src/state/ring/sealing.ts'
import { unpackPart } from '../../../../src/store/content.ts'
import { MOVED_CLOCK_SKIP, makeMovedClock } from '../../../support/machine/moved-clock.ts'
import { until } from '../../../support/machine/until.ts'
import { startTestService, type TestService } from '../../../support/service/service.ts'
import { Seeker, seekInRedis } from '../../../support/store/seek.ts'
import { ringOf } from '../../../support/world/rings.ts'

const WAIT_MS = 40_000
/** Letters and digits that nothing has but the mail to one person. */
const WORD = `q${Math.random().toString(36).slice(2).padEnd(12, 'x')}q`
const VICTIM = `delivered+${WORD}@simulator.test`
const OTHER = 'delivered+ada@simulator.test'

t.test('packs: bodies of a service over its days', { skip: MOVED_CLOCK_SKIP }, async (t) => {
  const clock = makeMovedClock()
  const service = await clock.around(() => startTestService({ CONTENT_STORE: 'file', HOT_DAYS: '4' }))
  const redis = new Redis({ path: service.redis.socketPath })
  t.teardown(async () => {
    redis.disconnect()
    await service.stop()
  })
  const { testServer, account } = service.firstRun
  const sizes = [20, 3_000, 9_000, 40_000]
  const ids: string[] = []
  for (const [n, size] of sizes.entries()) {
    ids.push(await send(service, OTHER, { size, file: n === 2 }))
    ids.push(await send(service, VICTIM, { size, file: n === 2 }))
  }
  for (const id of ids) await until(async () => (await show(service, id)).json.status === 'delivered', WAIT_MS)
  const read = () => Promise.all(ids.map(async (id) => (await show(service, id)).json))
  const before = await read()
  t.ok(before.every(({ text, html }) => text.length > 10 && html.length > 10))

  await t.test('they leave Redis after a day, and every message shows what it showed', async (t) => {
    clock.moveTo(2)
    await until(async () => (await bodiesIn(redis)) === 0, WAIT_MS)
    t.same(await read(), before)
    t.equal(filesOf(service).filter((path) => !path.endsWith('.files')).length, 1)
    const raw = await fetch(`http://127.0.0.1:${service.config.httpPort}/v1/messages/${ids[2]}/raw`, {
      headers: { authorization: `Bearer ${testServer.token}` },
    })
    t.match(await raw.text(), /For you\. /)
    const seeker = new Seeker(WORD)
    t.notOk(
      filesOf(service).some((path) => seeker.isIn(readFileSync(path))),
      'the pack is encrypted',
    )
    t.ok((await openedIn(service, redis)).some((bytes) => seeker.isIn(bytes)))
  })

  await t.test('a restart reads them', async (t) => {
    await service.restart()
    t.same(await read(), before)
  })

  await t.test('after an erasure no key that is left opens a word of the person', async (t) => {
    const seeker = new Seeker(WORD)
    const ordered = await service.call('POST /v1/erasures', { token: account.token, body: { address: VICTIM } })
    await until(async () => {
      const { json } = await service.call(`GET /v1/erasures/${ordered.json.erasureId}`, { token: account.token })
      return json.status === 'done'
    }, WAIT_MS)
    const opened = await openedIn(service, redis)
    t.equal(opened.length, sizes.length)
    t.notOk(opened.some((bytes) => seeker.isIn(bytes)))
    t.same(await seekInRedis(redis, seeker), [])
    t.match((await show(service, ids[1] as string)).json, { text: null, html: null, contentAvailable: false })
    t.same((await show(service, ids[0] as string)).json, before[0])
  })

  await t.test('a segment that leaves Redis takes the places along', async (t) => {
    await until(() => send(service, OTHER, { size: 9 }).catch(() => null), WAIT_MS)
    clock.moveTo(6.5)
    const sealed = `{s000}:sealed:${testServer.serverId}`
    await until(async () => Object.values(await redis.hgetall(sealed)).some((row) => !row.startsWith('[0,')), WAIT_MS)
    t.same((await show(service, ids[6] as string)).json, before[6])
  })

  await t.test('they are hidden with their age, and the pack is removed within a day', async (t) => {
    clock.moveTo(7.1)
    await until(async () => (await show(service, ids[0] as string)).json?.contentAvailable === false, WAIT_MS)
    const pack = filesOf(service).find((path) => !path.endsWith('.files')) as string
    clock.moveTo(9)
    await service.restart()
    await until(() => !filesOf(service).includes(pack), WAIT_MS)
    t.match((await show(service, ids[0] as string)).json, { text: null, html: null, subject: 'Parcel' })
  })
})

async function send(service: TestService, to: string, { size, file = false }: { size: number; file?: boolean }) {
  const words = to === VICTIM ? `For ${WORD}. ` : 'For you. '
  const filler = Array.from({ length: size }, (_, n) => String.fromCharCode(97 + ((n * 7919) % 26))).join('')
  const attachments = file ? [{ name: 'a.txt', content: Buffer.alloc(90_000, to).toString('base64') }] : undefined
  const body = {
    from: 'shop@simulator.test',
    to: [to],
    subject: 'Parcel',
    text: words + filler,
    html: `<p>${words}</p>`,
    ...(attachments && { attachments }),
  }
  const { status, json } = await service.call('POST /v1/email', { token: service.firstRun.testServer.token, body })
  if (status !== 200) throw new Error(`Refused: ${status} ${JSON.stringify(json)}`)
  return json.messageId as string
}

function show(service: TestService, id: string): ReturnType<TestService['call']> {
  return service.call(`GET /v1/messages/${id}`, { token: service.firstRun.testServer.token })
}

/** Small bodies, and content with keys of its own. */
async function bodiesIn(redis: Redis): Promise<number> {
  return (await redis.keys('*:bodies:*')).length + (await redis.keys('*:content:*')).length
}

function filesOf({ dataDir }: TestService): string[] {
  const folder = join(dataDir, 'content')
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.includes('/out/'))
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
}

/** Every body that some head in Redis opens. */
async function openedIn(service: TestService, redis: Redis): Promise<Buffer[]> {
  const ring = ringOf(service.config.secretKey as string)
  const opened: Buffer[] = []
  for (const key of await redis.keys('*:head:*'))
    for (const text of Object.values(await redis.hgetall(key))) {
      const { stored } = unpackHead(text, 1)
      if (stored?.packed === undefined) continue
      const mailKey = openMailKey(ring, stored.key) as Buffer
      const { object, from, length } = stored.packed
      const pack = readFileSync(join(service.dataDir, 'content', packName(0, object)))
      opened.push(await unpackPart([await openJoined(pack.subarray(from, from + length), { mailKey, kind: 'body' })]))
    }
  return opened
}
