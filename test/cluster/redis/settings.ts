/**
 * settings - stores that are refused, by their settings or as a node of a cluster; and values that a store cannot
 * read.
 */
import t from 'tap'
import { stagedKey } from '../../../cluster/keyspace.ts'
import { connectRedisStore } from '../../../cluster/redis/store.ts'
import { until } from '../../support/machine/until.ts'
import { commitOf, openRedis, openStore } from '../../support/store/redis-shard.ts'

const WAIT_MS = 60_000

/** Settings that break `fsync`, and the reported sentence. */
const BREAKING: [Record<string, string>, RegExp][] = [
  [
    { appendonly: 'no' },
    /appendonly must be yes\. What it took .* in memory alone: do not stop Redis, set CONFIG SET appendonly yes/,
  ],
  [{ appendfsync: 'everysec' }, /appendfsync must be always\. Set CONFIG SET appendfsync always;/],
  [{ 'no-appendfsync-on-rewrite': 'yes' }, /no-appendfsync-on-rewrite must be no\. Set /],
  [
    { 'maxmemory-policy': 'allkeys-lru', appendfsync: 'no' },
    /appendfsync must be always, maxmemory-policy must be noeviction\. Set /,
  ],
]

t.test('redis settings: a node of a cluster is refused before anything is written', async (t) => {
  const redis = await openRedis(t, { 'cluster-enabled': 'yes' })
  await t.rejects(connectRedisStore({ address: redis.socketPath, durability: 'fsync' }), {
    name: 'StoreRefused',
    message: /^Redis runs as a node of a Redis Cluster: name its host/,
  })
})

t.test('redis settings: an unreadable parcel is a failed read, not a missing parcel', async (t) => {
  const redis = await openRedis(t)
  const store = await openStore(t, redis.socketPath)
  const parcels = [{ shard: 5, parcelId: 'odd', count: 1, said: Buffer.from('x') }]
  await store.enqueue({ replyTo: 'w', commandsMax: 9, parcels })
  await store.views.del(stagedKey(5, 'odd'))
  const request = { shard: 5, of: 'mailbox', from: '-', count: 9 } as const
  t.equal((await store.entries(request))?.length, 1)
  await store.views.rpush(stagedKey(5, 'odd'), 'x')
  t.equal((await store.entries(request))?.length, 1, 'what is no text was never staged: it is gone')
  await store.views.call('ACL', 'SETUSER', 'default', 'resetkeys', '~*:mailbox')
  t.equal(await store.entries(request), null)
})

t.test('redis settings: a store that breaks its durability level is refused', async (t) => {
  for (const [settings, message] of BREAKING) {
    const redis = await openRedis(t, { appendfsync: 'always', ...settings })
    await t.rejects(connectRedisStore({ address: redis.socketPath, durability: 'fsync' }), {
      name: 'StoreRefused',
      message,
    })
  }
  const redis = await openRedis(t)
  await t.rejects(connectRedisStore({ address: redis.socketPath, durability: 'fsync' }), { name: 'StoreRefused' })
  const refused: string[] = []
  const store = await openStore(t, redis.socketPath, { onRefused: (error) => refused.push(error.name) })
  const side = store.views.duplicate()
  t.teardown(() => side.disconnect())
  await until(() => side.status === 'ready', WAIT_MS)
  await side.config('SET', 'maxmemory-policy', 'allkeys-lru')
  await side.client('KILL', 'ID', store.identity.clientId)
  await until(() => refused.length > 0, WAIT_MS)
  t.same(await store.commit(commitOf(1, 0)), { kind: 'unsent' })
  await side.config('SET', 'maxmemory-policy', 'noeviction')
  await until(() => store.connected, WAIT_MS)
})
