/**
 * holds - one process's copy of the operator's list, over a real Redis: updated at once by a signal, later without
 * one.
 */

import { Redis } from 'ioredis'
import t from 'tap'
import { HOLDS_TOPIC } from '../../src/actors/message/operate-queue.ts'
import { watchHolds } from '../../src/outbound/holds.ts'
import { holdsKey, wakesKey } from '../../src/state/keys.ts'
import { oneNode } from '../../src/store/nodes.ts'
import { makeReadKeys } from '../../src/store/read-keys.ts'
import { until } from '../support/machine/until.ts'
import { startRedis } from '../support/store/redis.ts'

t.test('holds: read at the start, and again when the list has changed [queue.hold, queue.retry]', async (t) => {
  const server = await startRedis()
  const redis = new Redis(server.socketPath)
  const away = new Redis('/none/such.sock', { lazyConnect: true, retryStrategy: () => null })
  away.on('error', () => undefined)
  let client = redis
  t.teardown(async () => {
    redis.disconnect()
    await server.stop()
  })
  const topics: string[] = []
  const woken: string[] = []
  let say: (text: string) => void = () => undefined
  let hasLeft = false
  await redis.hset(holdsKey(), 'old.test', '1')
  await redis.hset(wakesKey(), 'before.test', '1')
  const holds = await watchHolds({
    readKeys: makeReadKeys(oneNode(() => client)),
    hear: async (topic, heard) => {
      topics.push(topic)
      say = heard
      return () => {
        hasLeft = true
      }
    },
    wake: (destination) => void woken.push(destination),
  })
  t.same(topics, [HOLDS_TOPIC])
  t.same([holds.has('old.test'), holds.has('new.test')], [true, false])
  await redis.hset(holdsKey(), 'new.test', '2')
  await redis.hdel(holdsKey(), 'old.test')
  await redis.hset(wakesKey(), 'now.test', '2')
  t.notOk(holds.has('new.test'), 'nobody has said so')
  say('')
  await until(() => holds.has('new.test'), 5000)
  t.notOk(holds.has('old.test'))
  t.same(woken, ['now.test'], 'what was ordered before is no news')
  await holds.refresh()
  t.same(woken, ['now.test'], 'each order once')
  client = away
  await holds.refresh()
  t.ok(holds.has('new.test'), 'kept while the store is away')
  holds.stop()
  t.ok(hasLeft)
})
