/**
 * move-losses - the source, the target, or the order itself is ended after each step of a move: every key of the shard
 * is what it was, the order goes on by itself or when it is given again, and the service goes on.
 */
import t from 'tap'
import { metaKey } from '../../../cluster/keyspace.ts'
import { MOVE_STEPS, type MoveStep } from '../../../cluster/slots/move-slot.ts'
import { SHARD_SLOTS } from '../../../cluster/slots/slot-map.ts'
import { moveShards, type ShardMoved } from '../../../src/store/cluster/move-shards.ts'
import { startLoad } from '../../support/clients/ledger.ts'
import { until } from '../../support/machine/until.ts'
import { startClusterFleet } from '../../support/service/cluster-fleet.ts'
import { wellAgain } from '../../support/store/cluster-well.ts'
import type { ClusterNode } from '../../support/store/redis-cluster.ts'
import { shardKeys } from '../../support/store/shard-keys.ts'

const WELL_MS_MAX = 60_000
const durability = 'replica'

const fleet = await startClusterFleet({
  accounts: 3,
  durability,
  replicas: 2,
  settings: { 'min-replicas-to-write': '1', 'min-replicas-max-lag': '5' },
})
t.teardown(() => fleet.end())
const { cluster, httpPort, keys } = fleet
const SHARD = 1
const slot = SHARD_SLOTS[SHARD] ?? 0
const settings = { redisUrls: cluster.seeds, durability } as const

async function move(to: string, at: (step: MoveStep) => Promise<void> | void = () => undefined): Promise<ShardMoved[]> {
  const done: ShardMoved[] = []
  await moveShards(settings, { shards: [SHARD], to, progress: () => undefined, done: (one) => done.push(one), at })
  return done
}

/** Another primary than the one that has the shard. */
async function elsewhere(): Promise<ClusterNode> {
  const here = await cluster.primaryOf(slot)
  for (const other of [0, 100, 200, 50, 150].map((shard) => SHARD_SLOTS[shard] ?? 0)) {
    const node = await cluster.primaryOf(other)
    if (node !== here) return node
  }
  throw new Error('There are three primaries')
}

/** Takes some messages: the service goes on. */
async function serves(name: string): Promise<void> {
  const load = startLoad({ port: httpPort, token: keys, clients: 3, recipient: (n) => `${name}${n}@example.com` })
  await load.passes(9)
  const ledger = await load.end()
  t.ok([...ledger.told.values()].every(({ size }) => size === 1))
  t.same(ledger.falselyRefused, [])
}

/** Who has any key of the shard: its primary and that one's replicas, and nobody else. */
async function havingKeys(): Promise<ClusterNode[]> {
  const counts = await Promise.all(cluster.nodes.map(({ client }) => client.call('CLUSTER', 'COUNTKEYSINSLOT', slot)))
  return cluster.nodes.filter((_, place) => Number(counts[place]) > 0)
}

const held = async (): Promise<[string, string][]> => [...(await shardKeys(await cluster.primaryOf(slot), SHARD))]

for (const step of MOVE_STEPS)
  for (const which of ['source', 'target', 'order'] as const)
    t.test(`move: the ${which} is lost once it is ${step}: nothing of the shard is lost or torn`, async (t) => {
      await wellAgain(cluster)
      await serves(`${which}-${step}-`)
      const [source, target] = [await cluster.primaryOf(slot), await elsewhere()]
      const struck = which === 'source' ? source : target
      let before: [string, string][] = []
      let isStruck = false
      let compared = 0
      const at = async (now: MoveStep): Promise<void> => {
        // From the fence to its end nobody writes.
        if (now === 'fenced' && before.length === 0) before = await held()
        if (now === 'agreed') {
          t.same(await held(), before, 'every key is what it was')
          compared += 1
        }
        if (now !== step || isStruck) return
        isStruck = true
        if (which === 'order') throw new Error('The order is ended')
        await struck.kill()
      }
      await move(target.name, at).catch(({ message }: Error) => t.comment(message))
      t.ok(isStruck && before.length > 5)
      if (which !== 'order') await struck.start()
      await wellAgain(cluster)
      if (which === 'order') await move(target.name, at)
      t.ok(compared > 0)
      const now = await cluster.primaryOf(slot)
      t.not(now, source, 'it has gone')
      t.notMatch(await now.client.hget(metaKey(SHARD), 'owner'), /^move:/)
      await serves(`after-${which}-${step}-`)
      const has = new Set([...(await held())].map(([name]) => name))
      t.same(
        before.filter(([name]) => !has.has(name)),
        [],
        'no key is missing',
      )
      await until(async () => (await havingKeys()).length === 3, WELL_MS_MAX).catch(async (error: Error) => {
        for (const { name, client } of await havingKeys())
          t.comment(name, await client.call('CLUSTER', 'GETKEYSINSLOT', slot, 50), await client.info('replication'))
        throw error
      })
    })
