/**
 * packs - the service and its Redis are killed by turns while bodies leave Redis for packs: every message shows its
 * text afterwards, and no pack is left that nothing names.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { unpackHead } from '../../../src/state/message/head.ts'
import { MOVED_CLOCK_SKIP, makeMovedClock } from '../../support/machine/moved-clock.ts'
import { until } from '../../support/machine/until.ts'
import { setScene } from '../../support/service/crash-scene.ts'
import { type Host, startHost } from '../../support/service/host.ts'

const KILLS = Number(process.env.KILLS ?? 20)
const BATCHES = 40
const BATCH = 100
/** From the moment that a pack is named. */
const KILL_MS_MAX = 1_500
const WAIT_MS = 120_000

t.test('crash: kills while bodies are packed', { skip: MOVED_CLOCK_SKIP }, async (t) => {
  const clock = makeMovedClock()
  const scene = await clock.around(() => setScene({ CONTENT_STORE: 'file' }))
  const { redis, settings, firstRun, end } = scene
  const store = new Redis(redis.socketPath)
  let host: Host | null = null
  t.teardown(async () => {
    await host?.kill('SIGKILL')
    store.disconnect()
    await end()
  })
  const { token } = firstRun.testServer

  // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects.
  async function call(what: string, body?: object, key = ''): Promise<any> {
    const [method = 'GET', path = '/'] = what.split(' ')
    return until(async () => {
      const headers = {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        connection: 'close',
        ...(key !== '' && { 'idempotency-key': key }),
      }
      const sent = body === undefined ? {} : { body: JSON.stringify(body) }
      const answer = await fetch(`http://127.0.0.1:${settings.HTTP_PORT}${path}`, { method, headers, ...sent }).catch(
        () => null,
      )
      if (answer === null || answer.status === 503) return null
      if (!answer.ok) throw new Error(`${what}: ${answer.status} ${await answer.text()}`)
      return answer.json()
    }, WAIT_MS)
  }
  const places = async () => {
    const heads = await Promise.all((await store.keys('*:head:*')).map((key) => store.hvals(key)))
    return heads.flat().flatMap((text) => unpackHead(text, 1).stored?.packed ?? [])
  }

  const isWriting = async () => {
    const counters = await store.hget('{s000}:counters', `pack:${firstRun.testServer.serverId}`)
    return counters !== null && !counters.includes('"writing":""')
  }

  host = await startHost(settings)
  const ids: string[] = []
  for (let batch = 0; batch < BATCHES; batch += 1) {
    const messages = Array.from({ length: BATCH }, (_, n) => {
      const to = [`delivered+p${n}@simulator.test`]
      return { from: 'hello@simulator.test', to, subject: 'Parcel', text: `Parcel ${batch * BATCH + n}.` }
    })
    const answer = await call('POST /v1/email/batch', { messages }, `batch ${batch}`)
    ids.push(...answer.messages.map(({ messageId }: { messageId: string }) => messageId))
  }
  await until(
    async () => (await store.zcard('{s000}:due:simulate')) + (await store.hlen('{s000}:claims')) === 0,
    WAIT_MS,
  )
  clock.moveTo(1.5)
  const counts: number[] = []
  for (let kill = 0; kill < KILLS; kill += 1) {
    await until(async () => (await isWriting()) || (await places()).length === ids.length, WAIT_MS)
    await new Promise((resolve) => setTimeout(resolve, Math.random() * KILL_MS_MAX))
    // The service dies, or its Redis, by turns.
    if (kill % 2 === 1) await clock.around(() => redis.restart())
    else {
      await host.kill('SIGKILL')
      host = await startHost(settings)
    }
    counts.push((await places()).length)
  }
  await until(async () => (await places()).length === ids.length, WAIT_MS)
  t.equal((await store.keys('*:bodies:*')).length, 0)
  for (let from = 0; from < ids.length; from += BATCH) {
    const shown = await Promise.all(ids.slice(from, from + BATCH).map((id) => call(`GET /v1/messages/${id}`)))
    t.same(
      shown.map(({ text }) => text),
      shown.map((_, n) => `Parcel ${from + n}.`),
      { diagnostic: false },
    )
  }
  const named = new Set([
    ...(await places()).map(({ object }) => `out/${object}`),
    ...(await store.zrange('{s000}:due:unlink', 0, -1)),
  ])
  const packs = readdirSync(join(settings.DATA_DIR as string, 'content/000/out'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.includes('/'))
    .map((name) => `out/${name}`)
  t.same(
    packs.filter((name) => !named.has(name)),
    [],
    `after ${KILLS} kills, with ${[...new Set(counts)].join()} packed, every pack is named or about to leave`,
  )
})
