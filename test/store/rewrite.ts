/** rewrite - a real Redis: one process at a time has the turn, and the others know what it began. */
import { Redis } from 'ioredis'
import t from 'tap'
import { makeRewrites } from '../../src/store/rewrite.ts'
import { until } from '../support/machine/until.ts'
import { startRedis } from '../support/store/redis.ts'

const WAIT_MS = 10_000
const server = await startRedis()
const clients = [1, 2].map(() => new Redis(server.socketPath))
t.teardown(async () => {
  for (const client of clients) client.disconnect()
  await server.stop()
})
const [one, other] = clients.map((client) => makeRewrites(() => client)) as [
  ReturnType<typeof makeRewrites>,
  ReturnType<typeof makeRewrites>,
]

t.test('rewrite: one of two processes has the turn, until it ends or is given back', async (t) => {
  t.same([await one.takeTurn(60_000), await other.takeTurn(60_000)], [true, false])
  await one.giveTurnBack()
  t.equal(await other.takeTurn(50), true)
  await until(async () => ((await one.takeTurn(60_000)) ? true : null), WAIT_MS)
})

t.test('rewrite: a process knows what the other one has begun, and that it succeeded', async (t) => {
  t.same(await other.known(), { begunMs: 0, runId: '', cleanMs: 0, dueMs: 0 })
  const before = await one.state()
  t.match(before, { runId: /^\w{40}$/, isRunning: false, isOk: true })
  await other.noteDue(5)
  t.match(await one.known(), { dueMs: 5 })
  t.equal(await one.ask(), null)
  await one.noteBegun({ begunMs: 17, runId: before?.runId ?? '' })
  t.same(await other.known(), { begunMs: 17, runId: before?.runId, cleanMs: 0, dueMs: 0 })
  await until(async () => ((await other.state())?.isRunning === false ? true : null), WAIT_MS)
  await other.noteClean(17)
  t.match(await one.known(), { begunMs: 17, cleanMs: 17 })
})
