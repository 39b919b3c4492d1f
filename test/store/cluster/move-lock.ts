/**
 * move-lock - one order at a time: an order during another one is refused, an order after a dead one waits for its
 * end, and an order that could not renew its lock for some seconds does nothing more.
 */
import { Redis } from 'ioredis'
import t from 'tap'
import { MOVE_KEY } from '../../../cluster/keyspace.ts'
import { MoveLock, OtherOrder } from '../../../src/store/cluster/move-lock.ts'
import { until } from '../../support/machine/until.ts'
import { startRedis } from '../../support/store/redis.ts'

const WAIT_MS = 20_000
const redis = await startRedis()
const client = new Redis({ path: redis.socketPath })
const clientAt = (): Redis =>
  new Redis({ path: redis.socketPath, lazyConnect: true, retryStrategy: () => null, maxRetriesPerRequest: 0 }).on(
    'error',
    () => undefined,
  )
t.teardown(async () => {
  client.disconnect()
  await redis.stop()
})

const lockOf = (nonce: string): MoveLock => new MoveLock(nonce, clientAt)

t.test(
  'lock: the second order is refused while the first one lives, and names it; then it gets its turn',
  async (t) => {
    const [first, second] = [lockOf('a'), lockOf('b')]
    await first.take('one')
    first.mustHold()
    await first.take('one')
    const refused = await second.take('one').catch((error: Error) => error)
    t.ok(refused instanceof OtherOrder)
    t.match(String(refused), `Another move is running, by process ${process.pid} on `)
    await second.end()
    t.match(await client.get(MOVE_KEY), /^a /, 'who never had it takes it from nobody')
    await first.end()
    t.equal(await client.get(MOVE_KEY), null)
    const third = lockOf('c')
    await third.take('one')
    await third.end()
  },
)

t.test('lock: the end of a dead order is waited for, as long as its lease', async (t) => {
  await client.set(MOVE_KEY, 'dead m9 7', 'PX', 1_500)
  const lock = lockOf('d')
  const startedAtMs = performance.now()
  await lock.take('one')
  t.ok(performance.now() - startedAtMs >= 1_000)
  lock.mustHold()
  t.ok((await client.pttl(MOVE_KEY)) > 5_000)
  await lock.end()
})

t.test('lock: it is renewed while it is held, and a new holder is named', async (t) => {
  const lock = lockOf('e')
  await lock.take('one')
  await client.pexpire(MOVE_KEY, 3_000)
  await until(async () => (await client.pttl(MOVE_KEY)) > 5_000, WAIT_MS)
  // A failover has lost it, and another order was quicker.
  await client.set(MOVE_KEY, 'f m9 7', 'PX', 60_000)
  await until(() => {
    try {
      lock.mustHold()
      return false
    } catch (error) {
      return error instanceof OtherOrder && /process 7 on m9/.test(error.message)
    }
  }, WAIT_MS)
  await lock.end()
  t.equal(await client.get(MOVE_KEY), 'f m9 7')
  await client.del(MOVE_KEY)
})

t.test('lock: an order without an answer for some seconds holds it no longer', async (t) => {
  const lock = lockOf('g')
  await lock.take('one')
  await redis.kill('SIGSTOP')
  await until(() => {
    try {
      lock.mustHold()
      return false
    } catch (error) {
      return /does not answer: run the command again/.test((error as Error).message)
    }
  }, WAIT_MS)
  await redis.kill('SIGCONT')
  await lock.end()
  t.pass()
})
