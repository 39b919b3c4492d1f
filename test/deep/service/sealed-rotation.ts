/**
 * sealed-rotation - the secret is rotated over sealed segments and packs of bodies, and the service is killed while it
 * writes their objects again. Every message, its text, its MIME text, a search and an erasure work afterwards, and
 * nothing opens with the former key.
 */
import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { unpackSealed } from '../../../src/state/message/sealed.ts'
import { openRing } from '../../../src/state/ring/ring.ts'
import { MOVED_CLOCK_SKIP, makeMovedClock } from '../../support/machine/moved-clock.ts'
import { until } from '../../support/machine/until.ts'
import { setScene } from '../../support/service/crash-scene.ts'
import { type Host, startHost } from '../../support/service/host.ts'
import { SealedSeeker } from '../../support/store/seek-sealed.ts'

const SEGMENTS = 2
const MESSAGES = 60
const PEOPLE = 5
/** Four days after the end of the last segment, and before the content of the first message ends. */
const SEALED_DAY = 6.3
/** Kills while an object is written again. */
const KILLS = Number(process.env.KILLS ?? 2)
const WAIT_MS = 120_000
const REWRITE_MS_MAX = 20_000

t.test('rotation: over sealed segments, with kills [secret.rotate]', { skip: MOVED_CLOCK_SKIP }, async (t) => {
  const clock = makeMovedClock()
  const scene = await clock.around(() => setScene({ CONTENT_STORE: 'file', HOT_DAYS: '4' }))
  const { redis, settings, firstRun, end } = scene
  const store = new Redis(redis.socketPath)
  let host: Host | null = null
  t.teardown(async () => {
    await host?.kill('SIGKILL')
    store.disconnect()
    await end()
  })
  const { account, testServer, operatorToken } = firstRun
  const { serverId } = testServer
  const secret = settings.SECRET_KEY as string

  async function ask(
    what: string,
    body?: object,
    { token = testServer.token, key = '', port = settings.HTTP_PORT } = {},
  ) {
    const [method = 'GET', path = '/'] = what.split(' ')
    return until(async () => {
      const headers = {
        authorization: `Bearer ${token}`,
        connection: 'close',
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(key !== '' && { 'idempotency-key': key }),
      }
      const sent = body === undefined ? {} : { body: JSON.stringify(body) }
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers, ...sent }).catch(() => null)
      if (answer === null || answer.status === 503) return null
      const text = await answer.text()
      if (!answer.ok) throw new Error(`${what}: ${answer.status} ${text}`)
      return { text }
    }, WAIT_MS)
  }
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects.
  const call = async (...how: Parameters<typeof ask>): Promise<any> => JSON.parse((await ask(...how)).text)
  const rows = async () =>
    Object.values(await store.hgetall(`{s000}:sealed:${serverId}`)).flatMap((text) => unpackSealed(text) ?? [])
  const ringOf = async (with_: string) => openRing((await store.hget('{cl}:conf', 'ring')) as string, with_)
  const objects = (tree: string) =>
    readdirSync(join(settings.DATA_DIR as string, 'content/000', tree), { recursive: true, encoding: 'utf8' }).filter(
      (name) => name.includes('/'),
    )
  const found = async (recipient: string): Promise<string[]> => {
    const page = await call('POST /v1/messages/search', { recipient, limit: 100 })
    return page.messages.map(({ messageId }: { messageId: string }) => messageId)
  }

  host = await startHost(settings)
  const texts = new Map<string, string>()
  const sentTo = new Map<string, string[]>()
  for (let segment = 0; segment < SEGMENTS; segment += 1) {
    for (let n = 0; n < MESSAGES; n += 1) {
      const to = `delivered+p${n % PEOPLE}@simulator.test`
      // Bodies that stay in Redis until they are packed, and some that do not.
      const text = randomBytes(n % 10 === 0 ? 45_000 : 600).toString('hex')
      const body = { from: 'hello@simulator.test', to: [to], subject: `Number ${n}`, text }
      const { messageId } = await call('POST /v1/email', body, { key: `${segment} ${n}` })
      texts.set(messageId, text)
      sentTo.set(to, [...(sentTo.get(to) ?? []), messageId])
    }
    await until(
      async () => (await store.zcard('{s000}:due:simulate')) + (await store.hlen('{s000}:claims')) === 0,
      WAIT_MS,
    )
    clock.moveTo(segment + 1)
  }
  // A message of another day closes the segment.
  const later = { from: 'hello@simulator.test', to: ['delivered+later@simulator.test'], subject: 'Later', text: 'x' }
  await call('POST /v1/email', later, { key: 'later' })
  clock.moveTo(SEALED_DAY)
  await until(async () => (await rows()).filter(({ generation }) => generation > 0).length >= SEGMENTS, WAIT_MS)
  const sealedBefore = (await rows()).filter(({ generation }) => generation > 0)
  t.ok(sealedBefore.length >= SEGMENTS, `${sealedBefore.length} sealed segments`)
  const bodies = objects('out')
  t.ok(
    bodies.some((name) => !/\.\w+$/.test(name)),
    `packs of bodies: ${bodies.length} objects`,
  )
  const readAll = async (name: string): Promise<void> => {
    let wrong = 0
    for (const [id, text] of texts) {
      const seen = await call(`GET /v1/messages/${id}`)
      if (seen.text !== text) wrong += 1
    }
    t.equal(wrong, 0, `${name}: every message has its text`)
    for (const [to, ids] of sentTo) t.same((await found(to)).sort(), ids.toSorted(), `${name}: ${to} is found`)
  }
  await readAll('before')
  const former = (await ringOf(secret))?.sealing ?? []
  t.equal(former.length, 1)

  const next = randomBytes(24).toString('hex')
  const rotating = { ...settings, SECRET_KEY: next, SECRET_KEY_PREVIOUS: secret, SETTLING_MS: '2000' }
  await host.kill('SIGTERM')
  host = await startHost(rotating)
  await call('POST /v1/operator/secret/rotate', {}, { token: operatorToken, port: settings.OPERATOR_PORT })
  let inRewrites = 0
  for (let kill = 0; kill < KILLS; kill += 1) {
    const isWriting = async () => (await rows()).some((row) => row.generation > 0 && row.next !== '')
    const endMs = performance.now() + REWRITE_MS_MAX
    while (performance.now() < endMs && !(await isWriting()));
    if (await isWriting()) inRewrites += 1
    await host.kill('SIGKILL')
    host = await startHost(rotating)
  }
  t.ok(inRewrites > 0, `${inRewrites} kills while an object was written again`)
  const state = async () => JSON.parse((await store.hget('{s000}:rotation', 'state')) ?? '{}')
  await until(async () => (await state()).phase === 'done', WAIT_MS)
  t.match(await state(), { unreadable: 0, phase: 'done' })
  t.same(await new SealedSeeker(former, []).inRedis(store), [], 'nothing opens with the former key')
  const current = (await ringOf(next))?.current as number
  for (const row of (await rows()).filter(({ generation }) => generation > 0)) {
    t.match(row.key, new RegExp(`^${current}\\.`))
    t.equal(row.headKeys, current)
  }
  // A process that never knew the former key.
  await host.kill('SIGTERM')
  host = await startHost({ ...settings, SECRET_KEY: next })
  await readAll('after')
  const [victim, ids] = [...sentTo][0] as [string, string[]]
  t.match((await ask(`GET /v1/messages/${ids[0]}/raw`)).text, /Number/)
  const ordered = await call('POST /v1/erasures', { address: victim }, { token: account.token })
  const done = await until(async () => {
    const seen = await call(`GET /v1/erasures/${ordered.erasureId}`, undefined, { token: account.token })
    return seen.status === 'done' ? seen : null
  }, WAIT_MS)
  t.equal(done.messages, ids.length, 'each erased message is counted once')
  t.ok(objects('cold').length >= SEGMENTS)
})
