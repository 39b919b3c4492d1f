/** cluster-rules - a real Redis Cluster as it must be, and each deviation with its sentence. */
import t from 'tap'
import {
  type ClusterLook,
  explainAway,
  findDissent,
  lookAtCluster,
  nodeTimeoutMs,
  type OpenMove,
  openMoves,
  replicasInStep,
} from '../../../cluster/slots/cluster-look.ts'
import { clusterFaults } from '../../../cluster/slots/cluster-rules.ts'
import type { OpenSlot } from '../../../cluster/slots/node-look.ts'
import { SHARD_SLOTS } from '../../../cluster/slots/slot-map.ts'
import { freePort } from '../../support/machine/port.ts'
import { startRedis } from '../../support/store/redis.ts'
import { startCluster } from '../../support/store/redis-cluster.ts'

const cluster = await startCluster({
  primaries: 3,
  replicas: 1,
  settings: { 'cluster-replica-no-failover': 'yes', 'min-replicas-to-write': '0' },
})
t.teardown(() => cluster.stop())
const [first, , , replica] = cluster.nodes
const look = async (seeds = cluster.seeds.slice(0, 1)): Promise<ClusterLook> => {
  const found = await lookAtCluster(seeds)
  if (found === null) throw new Error('Nobody answered')
  return found
}

t.test('look: every node from one seed, with its slots and its answers', async (t) => {
  const seen = await look()
  t.same(
    seen.nodes.map(({ isPrimary }) => isPrimary),
    [true, true, true, false, false, false],
  )
  t.equal(seen.nodes.flatMap(({ shards }) => shards).length, 256)
  t.same([seen.uncovered, seen.strangers, seen.badSeeds], [[], [], []])
  t.ok(seen.nodes.every(({ answers }) => answers?.isWell && Math.abs(answers.clockOffMs) < 5_000))
  for (const { name } of seen.nodes.slice(0, 3)) t.equal(replicasInStep(seen, name), 1)
  t.same(clusterFaults(seen, 'fsync'), [])
  t.equal(nodeTimeoutMs(seen), 2_000)
})

t.test('look: a node that has another primary for a shard is named, unless it receives no news', async (t) => {
  const seen = await look()
  t.same(findDissent(seen), [])
  const [holder, , third] = seen.nodes
  const shard = holder?.shards[0] ?? 0
  const slot = SHARD_SLOTS[shard] ?? 0
  /** The third one, according to which no node has the slot. */
  const apart = (openSlots: readonly OpenSlot[]): ClusterLook => ({
    ...seen,
    nodes: seen.nodes.map((node) => {
      const { answers } = node
      if (answers === null || node !== third) return node
      const without = ([first, last]: readonly [number, number]): (readonly [number, number])[] =>
        slot < first || slot > last
          ? [[first, last]]
          : [
              [first, slot - 1],
              [slot + 1, last],
            ]
      const nodes = answers.nodes.map((line) => ({ ...line, ranges: line.ranges.flatMap(without) }))
      return { ...node, answers: { ...answers, nodes, openSlots } }
    }),
  })
  t.same(findDissent(apart([])), [{ node: third?.name, holder: holder?.name, shards: [shard] }])
  t.same(findDissent(apart([{ slot, isLeaving: false, other: holder?.id ?? '' }])), [])
  t.same(findDissent(apart([{ slot, isLeaving: true, other: holder?.id ?? '' }])).length, 1)
})

t.test('look: a move waits for a node that may come back unchanged', async (t) => {
  const seen = await look()
  const { nodes } = seen
  const [one, other, third] = nodes
  if (one === undefined || other === undefined || third === undefined) return
  const fenced: OpenMove = { shard: one.shards[0] ?? 0, at: one.name, to: other.name, from: one.id, uncleared: [] }
  const without = (name: string, change: object = {}) => ({
    ...seen,
    nodes: nodes.map((node) => (node.name === name ? { ...node, answers: null, ...change } : node)),
  })
  t.equal(explainAway(seen, fenced, third.name), null)
  t.equal(explainAway(without(other.name), fenced, third.name), other.name, 'it may still claim the slot')
  t.equal(explainAway(without(other.name), fenced, other.name), null, 'it is waited for anyway')
  t.equal(explainAway(without(other.name, { hasFailed: true }), fenced, one.name), null, 'what it has is a copy')
  const marked = { ...fenced, from: null }
  t.equal(
    explainAway(without(other.name, { hasFailed: true }), marked, one.name),
    other.name,
    'it may have all that there is',
  )
  const switched = { ...fenced, shard: other.shards[0] ?? 0, at: other.name }
  t.equal(explainAway(without(one.name), switched, other.name), null, 'its replica takes no place by itself')
  for (const node of cluster.nodes) await node.client.config('SET', 'cluster-replica-no-failover', 'no')
  const free = await look()
  for (const node of cluster.nodes) await node.client.config('SET', 'cluster-replica-no-failover', 'yes')
  const lost = {
    ...free,
    nodes: free.nodes.map((node) => (node.name === one.name ? { ...node, answers: null } : node)),
  }
  t.equal(explainAway(lost, switched, other.name), one.name, 'its replica may claim the slot')
  t.equal(explainAway(without(one.name, { shards: [] }), switched, other.name), null, 'its replica has taken over')
})

/** setting, its value, the expected sentence, and the node. */
const BROKEN = [
  ['appendfsync', 'everysec', /appendfsync must be always/, first],
  ['appendfsync', 'everysec', /appendfsync must be always/, replica],
  ['cluster-require-full-coverage', 'yes', /would refuse requests while another primary is down/, replica],
  ['cluster-allow-reads-when-down', 'yes', /would return outdated data while it is disconnected/, first],
  ['cluster-replica-no-failover', 'no', /is a replica that would take over/, replica],
] as const

t.test('rules: each setting that breaks the promise is named with its node', async (t) => {
  for (const [name, value, sentence, node] of BROKEN) {
    const before = String(((await node?.client.config('GET', name)) as string[] | undefined)?.[1])
    await node?.client.config('SET', name, value)
    const faults = clusterFaults(await look(), 'fsync')
    t.equal(faults.length, 1, `${name}: ${faults.join('; ')}`)
    t.match(faults[0], sentence)
    t.ok(faults[0]?.startsWith(node?.name ?? '?'))
    await node?.client.config('SET', name, before)
  }
})

t.test('rules: replica wants two of each primary, and primaries that refuse what none gets', async (t) => {
  const faults = clusterFaults(await look(), 'replica')
  t.match(faults[0], /two replicas of each primary: (127\.0\.0\.1:\d+ has 1(, |;)){3}/)
  t.equal(faults.filter((one) => /would accept writes without a replica/.test(one)).length, 6)
  for (const { client } of cluster.nodes) {
    await client.config('SET', 'min-replicas-to-write', '1')
    await client.config('SET', 'min-replicas-max-lag', '5')
  }
  const seen = await look()
  t.equal(clusterFaults(seen, 'replica').length, 1)
  const [one] = seen.nodes
  if (one === undefined) return
  // As many replicas as required in total, and one primary without any.
  const extra = [1, 2, 3].map((n) => ({ ...one, name: `m:${n}`, isPrimary: false, primary: one.name, shards: [] }))
  const crooked = { ...seen, nodes: [...seen.nodes, ...extra] }
  t.match(clusterFaults(crooked, 'replica')[0], /has 1, .* has 1;/)
  const away = extra.slice(0, 2).map((node) => ({ ...node, isPrimary: true, primary: null, answers: null }))
  t.same(clusterFaults({ ...crooked, nodes: [...crooked.nodes, ...away] }, 'replica'), [], 'they come back')
})

t.test('look: an unreachable node is listed without answers, and a moving shard is named', async (t) => {
  await replica?.kill()
  const seen = await look()
  t.equal(seen.nodes.find(({ name }) => name === replica?.name)?.answers, null)
  t.same(clusterFaults(seen, 'fsync'), [], 'it may come back as it was')
  await replica?.start()
  const slot = SHARD_SLOTS[17] ?? 0
  const source = await cluster.primaryOf(slot)
  const target = cluster.nodes.slice(0, 3).find((node) => node !== source)
  const id = (await target?.client.call('CLUSTER', 'MYID')) as string
  await source.client.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', id)
  t.same(openMoves(await look()), [{ shard: 17, at: source.name, to: target?.name, from: null, uncleared: [] }])
  await source.client.call('CLUSTER', 'SETSLOT', slot, 'STABLE')
  for (const { client } of cluster.nodes) await client.call('CLUSTER', 'DELSLOTS', slot)
  t.match(clusterFaults(await look(), 'fsync'), [/^No Redis has 1 of the shards/])
  await source.client.call('CLUSTER', 'ADDSLOTS', slot)
})

t.test('rules: seeds that are no nodes, of another cluster, or want another password', async (t) => {
  const port = await freePort()
  const alone = await startRedis({ settings: { port: String(port) } })
  t.teardown(() => alone.stop())
  const other = await startCluster({ primaries: 1 })
  t.teardown(() => other.stop())
  const [here = '', there = ''] = [cluster.seeds[0], other.seeds[0]]
  t.match(clusterFaults(await look([here, `redis://127.0.0.1:${port}`]), 'fsync'), [/is not a node of a Redis Cluster/])
  t.match(clusterFaults(await look([here, there]), 'fsync'), [/are nodes of different clusters/])
  await other.nodes[0]?.client.config('SET', 'requirepass', 'x')
  t.match(clusterFaults(await look([here, there]), 'fsync'), [/refuses the user and password of REDIS_URL/])
  t.equal(await lookAtCluster(['redis://127.0.0.1:1']), null, 'nobody is there')
})
