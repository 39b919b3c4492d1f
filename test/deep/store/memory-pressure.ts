/** memory-pressure - sends are refused from 85 % of the store's memory on, and taken again once there is room. */
import { Redis } from 'ioredis'
import t from 'tap'
import { type FillLevel, fillLevel, parseFill } from '../../../src/store/memory-pressure.ts'
import { until } from '../../support/machine/until.ts'
import { startTestService } from '../../support/service/service.ts'

const service = await startTestService()
const redis = new Redis({ path: service.redis.socketPath })
t.teardown(async () => {
  redis.disconnect()
  await service.stop()
})
const { token } = service.firstRun.testServer
const isApart = process.env.TOPOLOGY === 'apart'
const MESSAGE = { from: 'you@simulator.test', to: ['ann@example.com'], subject: 'Room', text: 'Hi' }

/** Large enough that a few percent of the store exceed its own fluctuation. */
const BALLAST_PIECES = 48
const PIECE = Buffer.alloc(1024 * 1024)

/** Makes the store so full. */
async function fillTo(share: number): Promise<void> {
  const used = Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1])
  await redis.config('SET', 'maxmemory', String(Math.round(used / share)))
}

t.test('store fill: share of maxmemory, none without a maxmemory [send.room]', async (t) => {
  t.equal(parseFill('used_memory:85\r\nmaxmemory:100\r\n'), 0.85)
  t.equal(parseFill('used_memory:85\r\nmaxmemory:0\r\n'), 0)
  t.equal(parseFill(''), 0)
})

t.test('store fill: reported from 70 % on, and once if it stays at a bound [send.room]', async (t) => {
  const levelsOf = (...shares: number[]): FillLevel[] => {
    let level: FillLevel = 'roomy'
    return shares.map((share) => (level = fillLevel(share, level)))
  }
  t.same(levelsOf(0.69, 0.7, 0.69, 0.71, 0.67), ['roomy', 'filling', 'filling', 'filling', 'roomy'])
  t.same(levelsOf(0.84, 0.85, 0.84, 0.86, 0.82), ['filling', 'full', 'full', 'full', 'filling'])
  t.same(levelsOf(0.9, 0.69, 0.67, 0.1), ['full', 'filling', 'roomy', 'roomy'])
  t.equal(fillLevel(0.5, 'roomy', 0.4), 'full', 'from where a caller says')
})

t.test('store fill: mail is refused while it is nearly full, everything else continues [send.room]', async (t) => {
  const body = MESSAGE
  const send = () => service.call('POST /v1/email', { token, body })
  t.equal((await send()).status, 200)
  for (let piece = 0; piece < BALLAST_PIECES; piece += 1) await redis.set(`ballast:${piece}`, PIECE)
  await fillTo(0.9)
  const refused = await until(async () => {
    const called = await send()
    return called.status === 503 ? called : null
  }, 10_000)
  t.match(refused.json, { error: 'unavailable' })
  t.equal(refused.headers.get('retry-after'), '1')
  t.equal((await service.call('POST /v1/email/batch', { token, body: { messages: [body] } })).status, 503)
  t.match(await service.operate('GET /readyz'), { status: 503, text: /the store is nearly full \(\d\d % of/ })
  t.match((await service.operateActors('GET /readyz')).status, isApart ? 200 : 503, 'who takes no sends goes on')
  const refusals = /^sendwright_sends_not_taken_total\{why="memory"\} (\d+)$/m
  const counted = Number(refusals.exec((await service.operate('GET /metrics')).text)?.[1])
  t.equal((await send()).status, 503)
  t.match(
    (await service.operate('GET /metrics')).text,
    `sendwright_sends_not_taken_total{why="memory"} ${counted + 1}\n`,
  )
  const stream = { name: 'Full', kind: 'broadcast' }
  t.equal((await service.call('POST /v1/streams', { token, body: stream })).status, 201, 'the store has room for it')
  t.match((await service.operate('GET /metrics')).text, /^sendwright_store_fill_ratio 0\.(8[5-9]|9)\d*$/m)
  await fillTo(0.5)
  await until(async () => (await send()).status === 200, 10_000)
  t.equal((await service.operate('GET /readyz')).status, 200)
})
