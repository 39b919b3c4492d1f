/** move-shards - shards move to another Redis under load: nothing answered is lost, and an unfinished move ends. */
import t from 'tap'
import type { MoveStep } from '../../../../cluster/slots/move-slot.ts'
import { COMMON_SLOT, SHARD_SLOTS } from '../../../../cluster/slots/slot-map.ts'
import { moveShards, readHolders, readState, type ShardMoved } from '../../../../src/store/cluster/move-shards.ts'
import { planMoves } from '../../../../src/store/cluster/plan-moves.ts'
import { startLoad } from '../../../support/clients/ledger.ts'
import { until } from '../../../support/machine/until.ts'
import { startClusterFleet } from '../../../support/service/cluster-fleet.ts'

const fleet = await startClusterFleet({
  accounts: 6,
  durability: 'fsync',
  settings: { 'cluster-replica-no-failover': 'yes' },
})
t.teardown(() => fleet.end())
const { cluster, httpPort, keys } = fleet
const WAIT_MS = 30_000
const settings = { redisUrls: cluster.seeds, durability: 'fsync' } as const

async function move(
  shards: readonly number[],
  to: string,
  at: (step: MoveStep) => Promise<void> | void = () => undefined,
): Promise<ShardMoved[]> {
  const done: ShardMoved[] = []
  await moveShards(settings, { shards, to, progress: () => undefined, done: (one) => done.push(one), at })
  return done
}

const nameOf = async (shard: number): Promise<string> => (await cluster.primaryOf(SHARD_SLOTS[shard] ?? 0)).name
const elsewhere = async (shard: number): Promise<string> => {
  const here = await nameOf(shard)
  return cluster.nodes.map(({ name }) => name).find((name) => name !== here) ?? ''
}

t.test('move: under load nothing that was answered is lost, and the shard is served at its new place', async (t) => {
  const load = startLoad({ port: httpPort, token: keys, clients: 4, recipient: (n) => `p${n}@example.com` })
  await load.passes(60)
  const to = await elsewhere(1)
  const moved = await move([1], to)
  t.match(moved, [{ shard: 1, to }])
  t.ok((moved[0]?.keys ?? 0) > 0)
  await load.passes(120)
  const ledger = await load.end()
  t.ok([...ledger.told.values()].every(({ size }) => size === 1))
  t.same(ledger.falselyRefused, [])
  t.equal(await nameOf(1), to)
  t.match(await move([1], to), [{ from: to, keys: 0 }], 'what is there already stays')
})

t.test('move: a shard for which its target has no room stays where it is, and is served meanwhile', async (t) => {
  const [slot, to] = [SHARD_SLOTS[5] ?? 0, await elsewhere(5)]
  const source = await cluster.primaryOf(slot)
  const target = cluster.nodes.find(({ name }) => name === to)
  await source.client.setrange('{s005}:large', 32 * 1024 ** 2, 'x')
  const used = Number(/used_memory:(\d+)/.exec((await target?.client.info('memory')) ?? '')?.[1])
  await target?.client.config('SET', 'maxmemory', String(2 * used))
  await t.rejects(
    move([5], to),
    /^Shard 5 needs [34]\d MB, but .* has only \d+ MB left below 85 %: increase its maxmemory/,
  )
  t.equal(await nameOf(5), source.name)
  t.notMatch(await source.client.hget('{s005}:meta', 'owner'), /^move:/)
  await target?.client.config('SET', 'maxmemory', '0')
  await source.client.unlink('{s005}:large')
})

t.test('move: a source that comes back after its move is over is named, and cleared for good', async (t) => {
  // Without the node of the slots without a shard no order can continue.
  const common = (await cluster.primaryOf(COMMON_SLOT)).name
  const names = await Promise.all(Array.from({ length: 6 }, (_, one) => nameOf(one)))
  const shard = names.findIndex((name) => name !== common)
  const [slot, to] = [SHARD_SLOTS[shard] ?? 0, await elsewhere(shard)]
  const source = await cluster.primaryOf(slot)
  let isStruck = false
  await move([shard], to, async (step) => {
    if (step !== 'switched' || isStruck) return
    isStruck = true
    await source.kill()
  })
  t.equal(await nameOf(shard), to)
  const left = { shard, at: to, to, from: null, uncleared: [source.name] }
  t.same((await readState(settings)).moving, [left])
  await source.start()
  await until(async () => (await readState(settings)).nodes.every(({ isWell }) => isWell), WAIT_MS)
  t.same((await readState(settings)).moving, [left], 'also where it has removed it from its memory by itself')
  const other = names.findIndex((name, one) => one !== shard && name === to)
  t.match(await move([other === -1 ? shard + 1 : other], to), [{ to }], 'no other shard is kept from moving')
  await move([shard], to)
  t.same((await readState(settings)).moving, [])
  await source.kill()
  await source.start()
  t.equal(await source.client.call('CLUSTER', 'COUNTKEYSINSLOT', slot), 0)
  t.equal(await nameOf(shard), to)
  await until(async () => (await readState(settings)).nodes.every(({ isWell }) => isWell), WAIT_MS)
})

t.test('move: an interrupted one continues, and no other begins before', async (t) => {
  const slot = SHARD_SLOTS[2] ?? 0
  const source = await cluster.primaryOf(slot)
  const to = await elsewhere(2)
  const target = cluster.nodes.find(({ name }) => name === to)
  const [from, into] = await Promise.all([source, target].map((node) => node?.client.call('CLUSTER', 'MYID')))
  await target?.client.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', String(from))
  await source.client.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', String(into))
  const [key = ''] = (await source.client.call('CLUSTER', 'GETKEYSINSLOT', slot, 1)) as string[]
  await source.client.call('MIGRATE', '127.0.0.1', String(target?.port), key, 0, 1_000)
  await t.rejects(move([3], await elsewhere(3)), new RegExp(`^Another move is unfinished.* move 2 ${to}`))
  await move([2], to)
  t.equal(await nameOf(2), to)
  const load = startLoad({ port: httpPort, token: keys, clients: 2, recipient: (n) => `q${n}@example.com` })
  await load.passes(30)
  t.ok([...(await load.end()).told.values()].every(({ size }) => size === 1))
})

t.test(
  'move: not to a node that is no primary, and not while one is unreachable; the plan evens out the moves',
  async (t) => {
    await t.rejects(move([1], '127.0.0.1:1'), /^This cluster has no node 127\.0\.0\.1:1: its nodes are/)
    const [one, two, three] = cluster.nodes
    const holders = await readHolders(settings)
    for (const planned of planMoves(holders)) await move(planned.shards, planned.to)
    const counts = (await readHolders(settings)).map(({ shards }) => shards.length).sort()
    t.same(counts, [85, 85, 86])
    await three?.kill()
    await t.rejects(move([await shardAt(one?.name ?? '')], two?.name ?? ''), /unhealthy: .* does not answer/)
    await three?.start()
  },
)

t.test('move: if the nodes need a password it is sent with each key', async (t) => {
  for (const { client } of cluster.nodes) {
    await client.config('SET', 'requirepass', 'p@ss word')
    await client.call('AUTH', 'p@ss word')
  }
  await t.rejects(move([1], await elsewhere(1)), /refuses the user and password/)
  const redisUrls = [(cluster.seeds[0] ?? '').replace('redis://', 'redis://:p%40ss%20word@')]
  const to = await elsewhere(4)
  const keys: number[] = []
  const order = { shards: [4], to, progress: () => undefined, done: (one: ShardMoved) => keys.push(one.keys) }
  await moveShards({ ...settings, redisUrls }, order)
  t.equal(await nameOf(4), to)
  t.ok((keys[0] ?? 0) > 0)
  for (const { client } of cluster.nodes) await client.config('SET', 'requirepass', '')
})

async function shardAt(name: string): Promise<number> {
  return (await readHolders(settings)).find((one) => one.name === name)?.shards[0] ?? 0
}
