/** cluster-store - the store over a real Redis Cluster: the node that is asked, and the consequence of each answer. */
import t, { type Test } from 'tap'
import { makeClock } from '../../../cluster/clock.ts'
import { mailboxKey, metaKey, repliesKey } from '../../../cluster/keyspace.ts'
import { type PackedCommand, packCommand, packParcel } from '../../../cluster/mailbox/parcel.ts'
import { ClusterStore, connectClusterStore } from '../../../cluster/slots/cluster-store.ts'
import type { NodeStore, ShardNode } from '../../../cluster/slots/shard-node.ts'
import { SHARD_SLOTS } from '../../../cluster/slots/slot-map.ts'
import type { Bell } from '../../../cluster/store.ts'
import { until } from '../../support/machine/until.ts'
import { startCluster, type TestCluster } from '../../support/store/redis-cluster.ts'
import { commitOf, RECORD, TOKEN } from '../../support/store/redis-shard.ts'

const WAIT_MS = 60_000
const nothing = (): void => undefined

async function open(test: Test, { seeds }: TestCluster): Promise<ClusterStore> {
  const store = await connectClusterStore({ seeds: seeds.slice(0, 1), durability: 'fsync' })
  test.teardown(() => store.close())
  return store
}

/** A shard of the `n`-th primary. */
function shardAt(store: ClusterStore, n: number): number {
  const name = store.primaries[n]?.name ?? ''
  return store.shardsOf(name)[0] ?? 0
}

async function take(store: ClusterStore, shard: number): Promise<void> {
  t.equal((await store.acquire({ shard, sawToken: '', newToken: TOKEN, worker: 'w' })).kind, 'ok')
}

/** A store over one node whose gate is answered by hand. */
function makeGated() {
  const clock = makeClock()
  const time = { passedMs: 0 }
  const passes: ((isThrough: boolean) => void)[] = []
  const text = 'id 127.0.0.1:7001@1 master - 0 0 1 connected 0-16383'
  const beat = { kind: 'ok', nowMs: 1, workers: new Map() } as const
  const store = new ClusterStore<ShardNode>({
    seeds: ['127.0.0.1:7001'],
    clock: { monotonicMs: () => time.passedMs, after: (ms, call) => clock.after(ms, call) },
    askApart: async () => text,
    makeNode: (name) => ({
      name,
      address: name,
      clock,
      answeredAtMs: 0,
      steadySinceMs: 0,
      store: { heartbeat: async () => beat } as unknown as NodeStore,
      isUp: true,
      isSilent: false,
      isGated: true,
      kept: () => new Promise<boolean>((resolve) => passes.push(resolve)),
      hear: nothing,
      listen: () => ({ close: nothing }),
      nodes: async () => text,
      depose: nothing,
      close: nothing,
    }),
  })
  return { passes, store, time }
}

t.test('cluster-store: a record that others may lack is answered once replicas have it', async (t) => {
  const { passes, store, time } = makeGated()
  t.teardown(() => store.close())
  const beat = async () => (await store.heartbeat({ worker: 'w', record: RECORD })).kind
  await until(() => store.primaries.length > 0, WAIT_MS)
  const asked = async (isThrough: boolean): Promise<string> => {
    const kind = beat()
    await until(() => passes.length > 0, WAIT_MS)
    passes.shift()?.(isThrough)
    return kind
  }
  t.equal(await asked(false), 'failed', 'a failover could still drop it')
  t.equal(await asked(true), 'ok', 'it is still new')
  time.passedMs += 9_000
  t.equal(await beat(), 'ok', 'the record stands')
  time.passedMs += 9_000
  t.equal(await beat(), 'ok')
  time.passedMs += 61_000
  t.equal(await asked(true), 'ok', 'others may have removed it in the meantime')
  t.equal(passes.length, 0)
})

t.test('cluster-store', async (t) => {
  const cluster = await startCluster()
  t.teardown(() => cluster.stop())
  const store = await open(t, cluster)

  await t.test('every shard has a primary, and shards of all are read, taken and committed to', async (t) => {
    t.equal(store.primaries.length, 3)
    t.equal(
      store.primaries.reduce((sum, { name }) => sum + store.shardsOf(name).length, 0),
      256,
    )
    for (const n of [0, 1, 2]) {
      const shard = shardAt(store, n)
      await take(store, shard)
      t.same(await store.commit(commitOf(shard, 0, { nowMs: store.of(shard)?.clock.nowMs() ?? 0 })), { kind: 'ok' })
      t.same(await store.commit(commitOf(shard, 0, { nowMs: store.of(shard)?.clock.nowMs() ?? 0 })), { kind: 'dup' })
    }
    const metas = await store.metas(Array.from({ length: 256 }, (_, shard) => shard))
    t.equal(metas?.filter((meta) => meta?.owner === 'w').length, 3)
    t.ok(metas?.every((meta) => meta !== undefined))
    const beat = await store.heartbeat({ worker: 'w', record: RECORD })
    t.equal(beat.kind, 'ok')
  })

  await t.test(
    'parcels for shards of all primaries arrive, notify their owners, and their replies are received',
    async (t) => {
      const shards = [0, 1, 2].map((n) => store.shardsOf(store.primaries[n]?.name ?? '')[1] ?? 0)
      const bells: Bell[] = []
      const told: string[] = []
      const listening = store.listen('w', {
        bells: (some) => void bells.push(...some),
        replies: (text) => void told.push(text),
        released: nothing,
        joined: nothing,
      })
      t.teardown(() => listening.close())
      for (const shard of shards) await take(store, shard)
      const command: PackedCommand = packCommand({ name: 'x', cmdId: 'c', body: {}, blobs: [] }, 0)
      let n = 0
      const enqueue = () => {
        n += 1
        const parcels = shards.map((shard) => {
          const parcelId = `p${n}-${shard}`
          return { shard, parcelId, count: 1, said: packParcel(parcelId, [command]) }
        })
        return store.enqueue({ replyTo: 'w', commandsMax: 10_000, parcels })
      }
      const areRung = () => shards.every((shard) => bells.some((bell) => bell.shard === shard && bell.entry === null))
      await until(areRung, WAIT_MS) // Once their bells arrive. Earlier ones were not received.
      bells.length = 0
      // Subscriptions take a moment, and nothing is received before.
      await until(async () => {
        t.same(await enqueue(), ['ok', 'ok', 'ok'])
        return shards.every((shard) => bells.some((bell) => bell.shard === shard))
      }, WAIT_MS)
      await until(async () => {
        bells.length = 0
        await enqueue()
        await until(() => bells.length >= shards.length, WAIT_MS)
        return bells.every(({ entry }) => entry !== null && entry.body !== null)
      }, WAIT_MS)
      t.match(bells[0]?.entry?.replyTo, /^\{s\d{3}\}:told:w$/, 'replies go to a stream in a slot of that primary')
      // A message that is sent before the first read is not received.
      let seq = 0
      await until(async () => {
        for (const shard of shards) {
          const replyTo = bells.find((bell) => bell.shard === shard)?.entry?.replyTo ?? ''
          const nowMs = store.of(shard)?.clock.nowMs() ?? 0
          const commit = commitOf(shard, seq, { nowMs, told: new Map([[replyTo, `for ${shard}`]]) })
          t.same(await store.commit(commit), { kind: 'ok' })
        }
        seq += 1
        return new Set(told).size === shards.length
      }, WAIT_MS)
      t.same(new Set(told), new Set(shards.map((shard) => `for ${shard}`)))
      t.same(await store.waiting(shards.map((shard) => ({ shard, mailbox: '0-0', outcomes: '0-0' }))), shards)
      for (const shard of shards) await store.viewsOf(shard).hset(repliesKey(shard, 1), 'p/0', '1 [1]')
      const found = await store.replies(shards.map((shard) => ({ shard, parcelId: 'p', slice: 1 })))
      t.same(
        found.map((one) => one?.fields),
        shards.map(() => ['1 [1]']),
      )
    },
  )

  await t.test('MOVED and ASK are followed with the same bytes, TRYAGAIN is away, and the map follows', async (t) => {
    const [from, to] = [store.primaries[0], store.primaries[1]]
    const shard = store.shardsOf(from?.name ?? '')[4] ?? 0
    const slot = SHARD_SLOTS[shard] ?? 0
    await take(store, shard)
    const [source, target] = [from, to].map((one) => cluster.nodes.find(({ name }) => name === one?.name))
    if (source === undefined || target === undefined) return t.fail('both are known')
    const [sourceId, targetId] = await Promise.all([
      source.client.call('CLUSTER', 'MYID'),
      target.client.call('CLUSTER', 'MYID'),
    ])
    const commit = (seq: number) => store.commit(commitOf(shard, seq, { nowMs: store.of(shard)?.clock.nowMs() ?? 0 }))
    t.same(await commit(0), { kind: 'ok' })
    await target.client.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', sourceId as string)
    await source.client.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', targetId as string)
    const keys = (await source.client.call('CLUSTER', 'GETKEYSINSLOT', slot, 100)) as string[]
    await source.client.call('MIGRATE', '127.0.0.1', target.port, metaKey(shard), 0, 5_000)
    t.same(await commit(1), { kind: 'away', reason: 'TRYAGAIN' }, 'its keys lie on both')
    for (const key of keys) await source.client.call('MIGRATE', '127.0.0.1', target.port, key, 0, 5_000)
    t.same(await commit(1), { kind: 'ok' }, 'asked of the one to which all has gone')
    t.equal(store.of(shard)?.name, source.name, 'the map stays')
    for (const node of [target, source, ...cluster.nodes])
      await node.client.call('CLUSTER', 'SETSLOT', slot, 'NODE', targetId as string)
    t.same(await commit(2), { kind: 'ok' }, 'moved')
    await until(() => store.of(shard)?.name === target.name, WAIT_MS)
    t.same(await commit(2), { kind: 'dup' })
    t.equal(await store.viewsOf(shard).exists(mailboxKey(shard)), 0)
  })

  await t.test('one primary unreachable: its shards are unknown, those of the others continue', async (t) => {
    const away = store.primaries.find(({ store: one }) => one.views !== store.viewsOf(null))
    const node = cluster.nodes.find(({ name }) => name === away?.name)
    if (away === undefined || node === undefined) return t.fail('it is known')
    const there = store.shardsOf(away.name)
    const others = store.primaries
      .filter(({ name }) => name !== away.name)
      .flatMap(({ name }) => store.shardsOf(name).slice(0, 3))
    await node.kill()
    await until(() => !away.isUp, WAIT_MS)
    const metas = await store.metas([there[0] ?? 0, ...others])
    t.equal(metas?.[0], undefined)
    t.ok(metas?.slice(1).every((meta) => meta !== undefined))
    t.same(await store.commit(commitOf(there[0] ?? 0, 0)), { kind: 'unsent' })
    t.ok(
      store.lags.every((lag) => lag.store !== away.name),
      'it is not the fault of who asks',
    )
    await node.start()
    await until(() => away.isUp, WAIT_MS)
    const areKnown = async () => (await store.metas(there))?.every((meta) => meta !== undefined) === true
    await until(areKnown, WAIT_MS)
  })
})
