/**
 * Redis reaches its memory limit: new mail is refused and says when to come back, mail that was accepted is finished,
 * and once there is room the service goes on by itself.
 */
import { Redis } from 'ioredis'
import t from 'tap'
import { checkSettled, oddRefusals } from '../support/clients/crash-check.ts'
import { postEmail, startLoad } from '../support/clients/ledger.ts'
import { until } from '../support/machine/until.ts'
import { raiseLimits } from '../support/service/crash-scene.ts'
import { startTestService } from '../support/service/service.ts'

const WAIT_MS_MAX = 15_000
const REFUSED_MIN = 20
/** Clients hear whatever the answer is. */
const TRY_MS_MAX = 60_000

/**
 * No send is refused before the store itself refuses, and performers are held until it is full: what is accepted by
 * then must be finished in a full store.
 */
let room = 0
const service = await startTestService({}, { room: () => room, fullShare: Number.POSITIVE_INFINITY })
t.teardown(() => service.stop())
const { firstRun } = service
await raiseLimits(service.config.operatorPort, firstRun)
const desk = { port: service.config.httpPort, token: firstRun.testServer.token }
const message = { from: 'you@simulator.test', to: ['a@example.com'], subject: 'Full', text: 'x'.repeat(2_000) }

t.test('store: full; new mail is refused, accepted mail is finished, it recovers [crash.store-full]', async (t) => {
  const { socketPath } = service.redis
  const redis = new Redis({ path: socketPath })
  t.teardown(() => redis.disconnect())
  const load = startLoad({
    ...desk,
    clients: 8,
    tryMsMax: TRY_MS_MAX,
    recipient: (n) => `person${n % 100}@example.com`,
  })
  await load.passes(200)
  const [, maxmemory] = (await redis.config('GET', 'maxmemory')) as [string, string]
  await redis.config('SET', 'maxmemory', '1mb')
  const refused = await until(async () => {
    const answer = await postEmail(desk, message, null)
    return answer?.status === 503 ? answer : null
  }, WAIT_MS_MAX)
  t.equal(JSON.parse(refused.body).error, 'unavailable')
  t.ok(Number(refused.headers['retry-after']) >= 1, 'says when to come back')
  let others = 0
  for (let n = 0; n < REFUSED_MIN; n += 1) if ((await postEmail(desk, message, null))?.status !== 503) others += 1
  t.equal(others, 0, 'nothing is taken while it is full')
  const open = (): Promise<number> => openItems(redis)
  t.ok((await open()) > 0, 'accepted mail waits')
  room = 64
  await service.restart()
  await until(async () => (await open()) === 0, WAIT_MS_MAX)
  t.equal(await open(), 0, 'and is finished in the full store, by a process that was started in it')
  const headers = { authorization: `Bearer ${desk.token}`, connection: 'close' }
  const read = await fetch(`http://127.0.0.1:${desk.port}/v1/server`, { headers })
  t.equal(read.status, 200, 'reading goes on')
  // Here the store itself refuses each send. The new process is not ready once it has seen that.
  const notReady = await until(async () => (await service.operate('GET /readyz')).status === 503, WAIT_MS_MAX)
  t.ok(notReady, 'a process that can take no mail is not ready')
  await redis.config('SET', 'maxmemory', maxmemory)
  await until(async () => (await postEmail(desk, message, 'room'))?.status === 200, WAIT_MS_MAX)
  await load.passes(50)
  await until(async () => (await service.operate('GET /readyz')).status === 200, WAIT_MS_MAX)
  const ledger = await load.end()
  ledger.told.set('room', new Set([JSON.parse((await postEmail(desk, message, 'room'))?.body ?? '{}').messageId]))
  const before = (await messagesLogged(redis)) - ledger.told.size
  await checkSettled(t, { socketPath, firstRun, ledger, before })
  t.same(oddRefusals(ledger), [], 'no refusal but 503')
  const cut = ledger.cuts.filter(({ connected }) => connected)
  t.same(cut, [], 'and each request that was sent has its answer')
})

async function openItems(redis: Redis): Promise<number> {
  const lanes = await redis.keys('*:due:simulate')
  const counts = await Promise.all(lanes.map((lane) => redis.zcard(lane)))
  return counts.reduce((sum, count) => sum + count, 0)
}

async function messagesLogged(redis: Redis): Promise<number> {
  const logs = await redis.keys(`*:log:${firstRun.testServer.serverId}:*`)
  const counts = await Promise.all(logs.map((log) => redis.xlen(log)))
  return counts.reduce((sum, count) => sum + count, 0)
}
