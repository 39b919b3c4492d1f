/** sts-policies - what is kept of MTA-STS policies of strangers on a real Redis, and its bounds. */
import { Redis } from 'ioredis'
import t from 'tap'
import { oneNode } from '../../src/store/nodes.ts'
import { makePolicyStore } from '../../src/store/sts-policies.ts'
import { startRedis } from '../support/store/redis.ts'

const YEAR_MS = 31_557_600_000

const server = await startRedis()
const redis = new Redis({ path: server.socketPath })
t.teardown(async () => {
  redis.disconnect()
  await server.stop()
})
const untilMs = Date.now() + YEAR_MS
const storeOf = (smallMax: number, largeMax: number) =>
  makePolicyStore(
    oneNode(() => redis),
    { smallMax, largeMax },
  )
const keys = async () => (await redis.keys('{s000}:sts:*')).map((key) => key.slice('{s000}:sts:'.length)).sort()

t.test(
  'sts-policies: hostile subdomains fill neither entries nor bytes, the least used are removed first [delivery.sts]',
  async (t) => {
    const store = storeOf(5, 2)
    const large = 'x'.repeat(25_000)
    for (let n = 0; n < 50; n += 1) {
      await store.write(`large${n}.evil.test`, large, untilMs)
      await store.write(`small${n}.evil.test`, 'y', untilMs)
      if (n === 0) await store.write('honest.test', 'z', untilMs)
      t.equal(await store.read('honest.test'), 'z', 'one that is used stays')
    }
    t.same(await keys(), [
      'honest.test',
      'large48.evil.test',
      'large49.evil.test',
      ...[46, 47, 48, 49].map((n) => `small${n}.evil.test`),
    ])
    t.equal(await redis.zcard('{s000}:sts-small'), 5)
    t.equal(await redis.zcard('{s000}:sts-large'), 2)
    t.ok((await redis.pexpiretime('{s000}:sts:honest.test')) === untilMs)
  },
)

t.test('sts-policies: a domain is in one list, and a policy above 32 KB is not kept [delivery.sts]', async (t) => {
  await redis.flushall()
  const store = storeOf(5, 2)
  await store.write('a.test', 'x'.repeat(3_000), untilMs)
  await store.write('a.test', 'x', untilMs)
  t.same(await redis.zrange('{s000}:sts-large', 0, -1), [])
  t.same(await redis.zrange('{s000}:sts-small', 0, -1), ['a.test'])
  await store.write('b.test', 'x'.repeat(32_769), untilMs)
  t.same(await keys(), ['a.test'])
  await redis.del('{s000}:sts:a.test')
  t.equal(await store.read('a.test'), null, 'expired')
})
