/**
 * rotation-cluster - the secret is rotated over a Redis Cluster of three primaries, and a shard moves between two of
 * them while the walk is on its way.
 */
import t from 'tap'
import { COMMON_SLOT, SHARD_SLOTS } from '../../../cluster/slots/slot-map.ts'
import { moveShards } from '../../../src/store/cluster/move-shards.ts'
import { makeRotationRig } from '../../support/service/rotation-rig.ts'
import { secretInFile } from '../../support/service/secret-folder.ts'
import { startTestService } from '../../support/service/service.ts'
import { startCluster } from '../../support/store/redis-cluster.ts'

/** The walk goes on for so long, so that the move is during it. */
const SETTLING_MS = 6_000
/** That of the rotation, and of the first account. */
const SHARD = 0

t.test('rotation: over a cluster, while a shard moves [secret.rotate]', async (t) => {
  const cluster = await startCluster()
  const service = await startTestService(
    { ...secretInFile(), REDIS_URL: cluster.seeds.join(','), CONTENT_STORE: 'file', DURABILITY: 'fsync' },
    { settlingMs: SETTLING_MS },
  )
  t.teardown(async () => {
    await service.stop()
    await cluster.stop()
  })
  const rig = makeRotationRig(service, {
    redises: () => cluster.nodes.map(({ client }) => client),
    common: async () => (await cluster.primaryOf(COMMON_SLOT)).client,
  })
  const holder = async () => (await cluster.primaryOf(SHARD_SLOTS[SHARD] ?? 0)).name
  const from = await holder()
  const to = cluster.nodes.find(({ name }) => name !== from)?.name ?? ''
  let moving: Promise<unknown> | null = null
  const settings = { redisUrls: cluster.seeds, durability: 'fsync' } as const
  await rig.rotate(t, async (phase) => {
    if (phase === 'walking')
      moving ??= moveShards(settings, { shards: [SHARD], to, progress: () => undefined, done: () => undefined })
  })
  t.ok(moving !== null, 'the walk was seen')
  await moving
  t.equal(await holder(), to)
})
