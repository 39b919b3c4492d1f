/** link - the result of a command: answered, lost or unsent; and a link that receives nothing. */
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { RedisLink, type StoreAnswer } from '../../../cluster/redis/link.ts'
import { FREE, openValve } from '../../chaos/valve.ts'
import { until } from '../../support/machine/until.ts'
import { startRedis } from '../../support/store/redis.ts'

const WAIT_MS = 60_000
const DELAY_MS = 800
/** Over some three seconds. */
const LOOKS = 100
const LOOK_MS = 30
const nothing = async (): Promise<void> => undefined

t.test('redis link: answers', async (t) => {
  const redis = await startRedis({ durability: 'memory' })
  t.teardown(() => redis.stop())
  const link = new RedisLink({ address: redis.socketPath, name: 'link', silentMsMax: 2_000, prepare: nothing })
  t.teardown(() => link.close())
  t.same(await link.call('PING'), { kind: 'unsent' }, 'before it is up')
  await link.ready(WAIT_MS)
  t.same(await link.call('PING'), { kind: 'reply', value: 'PONG' })
  t.match(await link.call('NONE', 'x'), { kind: 'error', message: /^ERR unknown command/ })
  t.match(await link.client.client('GETNAME'), 'link')

  // A store that is silent: the connection is closed, and the outcome of the command is unknown.
  await redis.kill('SIGSTOP')
  t.same(await link.call('PING'), { kind: 'lost' })
  t.same(await link.call('PING'), { kind: 'unsent' })
  await redis.kill('SIGCONT')
  await link.ready(WAIT_MS)
  t.same(await link.call('ECHO', 'ü'), { kind: 'reply', value: 'ü' })

  await redis.kill('SIGKILL')
  await until(() => !link.up, WAIT_MS)
  t.same(await link.call('PING'), { kind: 'unsent' })
  await t.rejects(link.ready(1), { message: /^The store does not answer/ })
})

t.test(
  'redis link: a slow connection is late at every check, whatever it carries, and no longer once it is fast',
  async (t) => {
    const redis = await startRedis({ durability: 'memory' })
    const path = join(redis.dir, 'valve')
    const valve = await openValve(path, () => redis.socketPath)
    const link = new RedisLink({ address: path, name: 'link', prepare: nothing })
    t.teardown(async () => {
      link.close()
      valve.close()
      await redis.stop()
    })
    await link.ready(WAIT_MS)
    valve.set({ names: ['link'], severs: false, toStore: FREE, fromStore: { held: false, delayMs: DELAY_MS } })
    await until(() => link.lagMs >= DELAY_MS, WAIT_MS)
    let least = Number.POSITIVE_INFINITY
    // Alone, and with a command in every place between two of its own.
    for (let n = 0; n < LOOKS; n += 1) {
      if (n % 10 === 9) void link.call('PING')
      await pause(LOOK_MS)
      least = Math.min(least, link.lagMs)
    }
    t.ok(least >= DELAY_MS - 1, `the least was ${least}`)
    valve.set(null)
    await until(() => link.lagMs < DELAY_MS / 2, WAIT_MS)
  },
)

t.test('redis link: commands sent in one turn are answered in order', async (t) => {
  const redis = await startRedis({ durability: 'memory' })
  t.teardown(() => redis.stop())
  const link = new RedisLink({ address: redis.socketPath, name: 'link', prepare: nothing })
  await link.ready(WAIT_MS)
  const sent: Promise<StoreAnswer>[] = Array.from({ length: 500 }, (_, index) => link.call('ECHO', String(index)))
  const answers = await Promise.all(sent)
  t.same(
    answers,
    Array.from({ length: 500 }, (_, index) => ({ kind: 'reply', value: String(index) })),
  )
  link.close()
  t.same(await link.call('PING'), { kind: 'unsent' })
})

t.test('redis link: a preparation that fails is tried again on a new connection', async (t) => {
  const redis = await startRedis({ durability: 'memory' })
  t.teardown(() => redis.stop())
  let tries = 0
  const prepare = async (): Promise<void> => {
    tries += 1
    if (tries < 3) throw new Error('not yet')
  }
  const link = new RedisLink({ address: redis.socketPath, name: 'link', prepare })
  t.teardown(() => link.close())
  await link.ready(WAIT_MS)
  t.equal(tries, 3)
})

t.test('redis link: a client that gives up is replaced, and stays ended once the link is closed', async (t) => {
  const redis = await startRedis({ durability: 'memory' })
  t.teardown(() => redis.stop())
  const link = new RedisLink({ address: redis.socketPath, name: 'link', prepare: nothing })
  await link.ready(WAIT_MS)
  link.client.disconnect()
  await until(() => link.client.status === 'end', WAIT_MS)
  t.equal(link.up, false)
  await link.ready(WAIT_MS)
  t.same(await link.call('PING'), { kind: 'reply', value: 'PONG' })
  link.close()
  await until(() => link.client.status === 'end', WAIT_MS)
  await t.rejects(link.ready(700), { message: /^The store does not answer/ })
})
