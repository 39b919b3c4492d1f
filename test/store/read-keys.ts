/** read-keys - one command over keys of many shards, over two real Redis: each is asked for its own shards only. */
import { Redis } from 'ioredis'
import t from 'tap'
import { accountsKey, holdsKey } from '../../src/state/keys.ts'
import { countAccounts } from '../../src/store/installation.ts'
import { makeReadKeys } from '../../src/store/read-keys.ts'
import { startRedis } from '../support/store/redis.ts'

const servers = await Promise.all([startRedis(), startRedis()])
const [even, odd] = servers.map(({ socketPath }) => new Redis({ path: socketPath })) as [Redis, Redis]
t.teardown(async () => {
  even.disconnect()
  odd.disconnect()
  await Promise.all(servers.map((server) => server.stop()))
})
const nodeOf = (shard: number) => (shard % 2 === 0 ? even : odd)
const readKeys = makeReadKeys({ nodeOf, common: () => even })

t.test('read-keys: every shard is read from its own Redis, the answers in the order of the reads', async (t) => {
  for (const shard of [0, 1, 2, 7]) await nodeOf(shard).zadd(accountsKey(shard), ...entries(shard))
  // Keys on the wrong one belong to no shard.
  await odd.zadd(accountsKey(2), 1, 'astray')
  const counts = await countAccounts(readKeys)
  t.equal(counts?.length, 256)
  t.same(counts?.slice(0, 8), [1, 2, 3, 0, 0, 0, 0, 8])
  const reads = [7, 2].map((shard) => ({ shard, key: accountsKey(shard), args: [0, 1] }))
  t.same(await readKeys('zrange', reads), [
    ['7-0', '7-1'],
    ['2-0', '2-1'],
  ])
})

t.test('read-keys: more than one round trip, and hashes in their form', async (t) => {
  const reads = Array.from({ length: 4_500 }, (_, at) => ({ shard: at % 3, key: accountsKey(at % 3) }))
  const counts = await readKeys('zcard', reads)
  t.same(
    counts,
    Array.from({ length: 4_500 }, (_, at) => (at % 3) + 1),
  )
  await even.hset(holdsKey(), 'a.test', '5')
  t.same(await readKeys('hgetall', [{ shard: 0, key: holdsKey() }]), [{ 'a.test': '5' }])
  t.same(await readKeys('hgetall', [{ shard: 2, key: '{s002}:none' }]), [{}])
  t.same(await readKeys('zcard', []), [])
})

t.test('read-keys: an error of one Redis, or its absence, is no answer at all', async (t) => {
  await odd.set('{s001}:text', 'x')
  t.equal(await readKeys('zcard', [{ shard: 1, key: '{s001}:text' }]), null)
  const away = new Redis('/none/such.sock', { lazyConnect: true, retryStrategy: () => null })
  away.on('error', () => undefined)
  const half = makeReadKeys({ nodeOf: (shard) => (shard === 3 ? away : even), common: () => even })
  t.equal(await countAccounts(half), null)
  t.same(await half('zcard', [{ shard: 0, key: accountsKey(0) }]), [1])
})

function entries(shard: number): (string | number)[] {
  return Array.from({ length: shard + 1 }, (_, at) => [at, `${shard}-${at}`]).flat()
}
