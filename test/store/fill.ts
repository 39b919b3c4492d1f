/** store-fill - sends are refused from 85 % of the store's memory on, and taken again once there is room. */
import { Redis } from 'ioredis'
import t from 'tap'
import { fillOf } from '../../src/store/fill.ts'
import { until } from '../support/machine/until.ts'
import { startTestService } from '../support/service/service.ts'

const service = await startTestService()
const redis = new Redis({ path: service.redis.socketPath })
t.teardown(async () => {
  redis.disconnect()
  await service.stop()
})
const { token } = service.firstRun.testServer
const MESSAGE = { from: 'you@simulator.test', to: ['ann@example.com'], subject: 'Room', text: 'Hi' }

/** So that a few percent of the store are more than what comes and goes in it by itself. */
const BALLAST_PIECES = 48
const PIECE = Buffer.alloc(1024 * 1024)

/** Makes the store so full. */
async function fillTo(share: number): Promise<void> {
  const used = Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1])
  await redis.config('SET', 'maxmemory', String(Math.round(used / share)))
}

t.test('store fill: share of maxmemory, none where there is no maxmemory [send.room]', async (t) => {
  t.equal(fillOf('used_memory:85\r\nmaxmemory:100\r\n'), 0.85)
  t.equal(fillOf('used_memory:85\r\nmaxmemory:0\r\n'), 0)
  t.equal(fillOf(''), 0)
})

t.test('store fill: mail is refused while it is nearly full, all else goes on [send.room]', async (t) => {
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
  const stream = { name: 'Full', kind: 'broadcast' }
  t.equal((await service.call('POST /v1/streams', { token, body: stream })).status, 201, 'the store has room for it')
  t.match((await service.operate('GET /metrics')).text, /^sendwright_store_fill 0\.(8[5-9]|9)\d*$/m)
  await fillTo(0.5)
  await until(async () => (await send()).status === 200, 10_000)
})
