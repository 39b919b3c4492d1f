/**
 * move-losses - the source, the target, or the order itself is ended or frozen after a step of a move. Every key of
 * the shard is unchanged, the order continues by itself or when it is given again, and the service continues.
 * `LOSSES`: a pattern of the ones to try, such as `frozen`.
 */
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { metaKey } from '../../../../cluster/keyspace.ts'
import { MOVE_STEPS, type MoveStep } from '../../../../cluster/slots/move-slot.ts'
import { SHARD_SLOTS } from '../../../../cluster/slots/slot-map.ts'
import { MOVE_PREFIX } from '../../../../cluster/store.ts'
import { moveShards, type ShardMoved } from '../../../../src/store/cluster/move-shards.ts'
import { startLoad } from '../../../support/clients/ledger.ts'
import { spawnNode } from '../../../support/machine/node.ts'
import { until } from '../../../support/machine/until.ts'
import { startClusterFleet } from '../../../support/service/cluster-fleet.ts'
import { wellAgain } from '../../../support/store/cluster-well.ts'
import type { ClusterNode } from '../../../support/store/redis-cluster.ts'
import { shardKeys } from '../../../support/store/shard-keys.ts'

const ORDER = fileURLToPath(new URL('../../../support/store/move-order.js', import.meta.url))
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

/** Accepts some messages: the service continues. */
async function serves(name: string): Promise<void> {
  const load = startLoad({ port: httpPort, token: keys, clients: 3, recipient: (n) => `${name}${n}@example.com` })
  await load.passes(9)
  const ledger = await load.end()
  t.ok([...ledger.told.values()].every(({ size }) => size === 1))
  t.same(ledger.falselyRefused, [])
}

/** The holders of keys of the shard: its primary and that primary's replicas, and no other node. */
async function havingKeys(): Promise<ClusterNode[]> {
  const counts = await Promise.all(cluster.nodes.map(({ client }) => client.call('CLUSTER', 'COUNTKEYSINSLOT', slot)))
  return cluster.nodes.filter((_, place) => Number(counts[place]) > 0)
}

async function isFenced(): Promise<boolean> {
  const owner = await (await cluster.primaryOf(slot)).client.hget(metaKey(SHARD), 'owner')
  return owner?.startsWith(MOVE_PREFIX) === true
}

const held = async (): Promise<[string, string][]> => [...(await shardKeys(await cluster.primaryOf(slot), SHARD))]

/**
 * The lost part, the kind of loss, and the step after which it happens. `frozen`: it freezes until another one has its
 * place.
 */
interface Loss {
  readonly which: 'source' | 'target' | 'order'
  readonly how: 'killed' | 'frozen'
  readonly step: MoveStep
}

const LOSSES: readonly Loss[] = [
  ...MOVE_STEPS.flatMap((step): Loss[] =>
    (['source', 'target'] as const).map((which): Loss => ({ which, how: 'killed', step })),
  ),
  ...(['ahead', 'meta', 'switched'] as const).map((step): Loss => ({ which: 'order', how: 'killed', step })),
  { which: 'source', how: 'frozen', step: 'begun' },
  { which: 'source', how: 'frozen', step: 'agreed' },
  { which: 'target', how: 'frozen', step: 'kept' },
]
const chosen = LOSSES.filter(({ which, how, step }) =>
  new RegExp(process.env.LOSSES ?? '').test(`${which} ${how} ${step}`),
)

/** Lets a separate process move the shard, which ends once a step is done. */
async function loseOrder(to: string, step: MoveStep): Promise<void> {
  const child = spawnNode([ORDER, cluster.seeds.join(','), String(SHARD), to, step])
  child.stdout.resume()
  child.stderr.resume()
  const [, signal] = (await once(child, 'exit')) as [number | null, string | null]
  t.equal(signal, 'SIGKILL', 'it was ended in the midst')
}

for (const { which, how, step } of chosen)
  t.test(`move: the ${which} is ${how} once it is ${step}: nothing of the shard is lost or torn`, async (t) => {
    await wellAgain(cluster)
    await serves(`${which}-${how}-${step}-`)
    const [source, target] = [await cluster.primaryOf(slot), await elsewhere()]
    const struck = which === 'source' ? source : target
    let before: [string, string][] = []
    let isStruck = which === 'order'
    let compared = 0
    const at = async (now: MoveStep): Promise<void> => {
      // From the fence to its end nothing is written.
      if (now === 'fenced' && before.length === 0) before = await held()
      // The keys that were freed before are written again.
      if (now === 'agreed' && (await isFenced())) {
        t.same(await held(), before, 'every key is what it was')
        compared += 1
      }
      if (now !== step || isStruck) return
      isStruck = true
      if (how === 'killed') await struck.kill()
      else struck.signal('SIGSTOP')
    }
    if (which === 'order') await loseOrder(target.name, step)
    if (which === 'order' && step !== 'ahead') before = await held()
    await move(target.name, at).catch(({ message }: Error) => t.comment(message))
    t.ok(isStruck)
    // What was on its way to the node arrives now, or is never read.
    if (how === 'frozen') struck.signal('SIGCONT')
    else if (which !== 'order') await struck.start()
    await wellAgain(cluster)
    // After a loss before the fence the move does not continue by itself: the shard is served, and the order is given
    // again.
    if (compared === 0) await move((await elsewhere()).name, at)
    t.ok(compared > 0)
    t.not(await cluster.primaryOf(slot), source, 'it has gone')
    t.notMatch(await (await cluster.primaryOf(slot)).client.hget(metaKey(SHARD), 'owner'), /^move:/)
    await serves(`after-${which}-${how}-${step}-`)
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
