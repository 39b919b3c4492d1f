/**
 * sealed - the service and its Redis are killed by turns while segments of the log are sealed and a person is erased
 * from them. Every message exists once, every erased one is counted once, and no unnamed object is left.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { unpackSealed } from '../../../src/state/message/sealed.ts'
import { MOVED_CLOCK_SKIP, makeMovedClock } from '../../support/machine/moved-clock.ts'
import { until } from '../../support/machine/until.ts'
import { setScene } from '../../support/service/crash-scene.ts'
import { type Host, startHost } from '../../support/service/host.ts'
import { Seeker, seekInRedis } from '../../support/store/seek.ts'

/** Days of mail, each a segment; kills while it is sealed, and one while it is erased. */
const ROUNDS = Number(process.env.ROUNDS ?? 2)
const KILLS = Number(process.env.KILLS ?? 3)
const BATCHES = 20
const BATCH = 100
const PEOPLE = 20
const DAYS = 6
const KILL_MS_MAX = 900
const WAIT_MS = 120_000
const WORD = `q${Math.random().toString(36).slice(2).padEnd(12, 'x')}q`

t.test('crash: kills while the log is sealed and erased', { skip: MOVED_CLOCK_SKIP }, async (t) => {
  const clock = makeMovedClock()
  const scene = await clock.around(() => setScene({ CONTENT_STORE: 'file', HOT_DAYS: '4' }))
  const { redis, settings, firstRun, end } = scene
  const store = new Redis(redis.socketPath)
  let host: Host | null = null
  let kills = 0
  t.teardown(async () => {
    await host?.kill('SIGKILL')
    store.disconnect()
    await end()
  })
  const { account, testServer } = firstRun
  const { serverId } = testServer

  // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects.
  async function call(what: string, body?: object, { token = testServer.token, key = '' } = {}): Promise<any> {
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
  const rows = async () =>
    Object.values(await store.hgetall(`{s000}:sealed:${serverId}`)).flatMap((text) => unpackSealed(text) ?? [])
  /** The service dies, or its Redis, by turns. */
  const strike = async (): Promise<void> => {
    kills += 1
    if (kills % 2 === 0) return clock.around(() => redis.restart())
    await host?.kill('SIGKILL')
    host = await startHost(settings)
  }
  const found = async (recipient: string): Promise<string[]> => {
    const ids: string[] = []
    for (let after: string | null = null; ; ) {
      const page = await call('POST /v1/messages/search', { recipient, limit: 100, ...(after !== null && { after }) })
      ids.push(...page.messages.map(({ messageId }: { messageId: string }) => messageId))
      after = page.next
      if (after === null) return ids
    }
  }

  host = await startHost(settings)
  const sentTo = new Map<string, string[]>()
  for (let round = 0; round < ROUNDS; round += 1) {
    const victim = `delivered+${WORD}${round}@simulator.test`
    const people = [victim, ...Array.from({ length: PEOPLE - 1 }, (_, n) => `delivered+p${n}@simulator.test`)]
    for (let batch = 0; batch < BATCHES; batch += 1) {
      const messages = Array.from({ length: BATCH }, (_, n) => {
        const to = people[n % PEOPLE] as string
        return { from: 'hello@simulator.test', to: [to], subject: `For ${to.split('@')[0]}`, text: 'x' }
      })
      const answer = await call('POST /v1/email/batch', { messages }, { key: `${round} ${batch}` })
      for (const [n, { messageId }] of answer.messages.entries()) {
        const to = people[n % PEOPLE] as string
        sentTo.set(to, [...(sentTo.get(to) ?? []), messageId])
      }
    }
    await until(
      async () => (await store.zcard('{s000}:due:simulate')) + (await store.hlen('{s000}:claims')) === 0,
      WAIT_MS,
    )
    clock.moveTo(round * DAYS + 1)
    // A message of another day closes the segment.
    await call(
      'POST /v1/email',
      { from: 'hello@simulator.test', to: ['delivered+later@simulator.test'], subject: 'Later', text: 'x' },
      { key: `${round} later` },
    )
    clock.moveTo((round + 1) * DAYS)
    for (let kill = 0; kill < KILLS; kill += 1) {
      await new Promise((resolve) => setTimeout(resolve, Math.random() * KILL_MS_MAX))
      await strike()
    }
    // Claims of the ended process return after their time at most.
    await until(async () => (await rows()).filter(({ generation }) => generation > 0).length > round * 2, WAIT_MS)
    for (const [to, ids] of sentTo) {
      if (to.includes(WORD) && to !== victim) continue
      t.same((await found(to)).sort(), ids.toSorted(), `${to}: each once`)
    }
    const ordered = await call('POST /v1/erasures', { address: victim }, { token: account.token })
    await new Promise((resolve) => setTimeout(resolve, Math.random() * KILL_MS_MAX * 0.3))
    await strike()
    const done = await until(async () => {
      const seen = await call(`GET /v1/erasures/${ordered.erasureId}`, undefined, { token: account.token })
      return seen.status === 'done' ? seen : null
    }, WAIT_MS)
    t.equal(done.messages, sentTo.get(victim)?.length, 'each erased message is counted once')
  }
  t.same(await seekInRedis(store, new Seeker(WORD)), [], 'nothing of any erased person is in any key')
  const named = new Set([
    ...(await rows()).flatMap(({ day, leaf, next }) => [`cold/${day}/${leaf}`, `cold/${day}/${next}`]),
    ...(await store.zrange('{s000}:due:unlink', 0, -1)),
  ])
  const objects = readdirSync(join(settings.DATA_DIR as string, 'content/000/cold'), {
    recursive: true,
    encoding: 'utf8',
  })
    .filter((name) => name.includes('/'))
    .map((name) => `cold/${name}`)
  t.ok(objects.length >= ROUNDS)
  t.same(
    objects.filter((name) => !named.has(name)),
    [],
    `after ${kills} kills every object is named, or about to leave`,
  )
})
