/**
 * move-slot - the slot of a shard moves to another primary. Until the slot has changed its owner everything is at the
 * source, any other keys are a copy, and a target that falls silent loses nothing.
 */
import { Redis } from 'ioredis'
import t from 'tap'
import { makeClock } from '../../../cluster/clock.ts'
import { copyKey, metaKey, shardTag } from '../../../cluster/keyspace.ts'
import { clearOthers, type Follower } from '../../../cluster/slots/clear-slot.ts'
import type { MoveEnd } from '../../../cluster/slots/copy-keys.ts'
import { watchKeys } from '../../../cluster/slots/key-watch.ts'
import { parseMove, readHolder } from '../../../cluster/slots/move-fence.ts'
import { endHere, moveSlot, type SlotMove } from '../../../cluster/slots/move-slot.ts'
import { hasSlot, parseNodes, SHARD_SLOTS } from '../../../cluster/slots/slot-map.ts'
import { switchSlot } from '../../../cluster/slots/switch-slot.ts'
import { until } from '../../support/machine/until.ts'
import { type ClusterNode, startCluster } from '../../support/store/redis-cluster.ts'

const cluster = await startCluster({ primaries: 3, replicas: 1, settings: { 'enable-debug-command': 'local' } })
t.teardown(() => cluster.stop())
const SHARD = 17
const slot = SHARD_SLOTS[SHARD] ?? 0
const WAIT_MS = 20_000
const TAG = `${shardTag(SHARD)}:`
let orders = 0

async function endOf({ name, client }: ClusterNode): Promise<MoveEnd> {
  return { name, client, id: (await client.call('CLUSTER', 'MYID')) as string }
}

async function followerOf(node: ClusterNode): Promise<Follower> {
  const lines = String(await node.client.call('CLUSTER', 'NODES'))
  return { ...(await endOf(node)), primary: /myself,slave (\w+)/.exec(lines)?.[1] ?? '' }
}

/** The slot with a key and an owner, and its way to another primary. */
async function makeMove(): Promise<SlotMove & { readonly to: ClusterNode; readonly third: MoveEnd }> {
  const from = await cluster.primaryOf(slot)
  const [to, other] = cluster.nodes.slice(0, 3).filter((node) => node !== from)
  if (to === undefined || other === undefined) throw new Error('There are three primaries')
  const [source, target, third] = await Promise.all([endOf(from), endOf(to), endOf(other)])
  await source.client.set(`${TAG}stays`, 'x')
  await source.client.hset(metaKey(SHARD), { owner: 'worker', tok: '7:a', seq: '3', last: 'c' })
  orders += 1
  const replicas = await Promise.all(cluster.nodes.slice(3).map(followerOf))
  const ends = { source, target, primaries: [source, target, third], replicas, to, third }
  const ids = new Set([...ends.primaries, ...replicas].map(({ id }) => id))
  const rest = { ids, heardMs: 100, clock: makeClock(), nonce: `n${orders}`, isReplicated: false }
  return { shard: SHARD, slot, ...ends, ...rest, mustHold: () => undefined }
}

t.test('move: from the first key the shard has no worker, and its last owner can ask for the progress', async (t) => {
  const move = await makeMove()
  const seen: unknown[] = []
  const at = async (step: string): Promise<void> => {
    if (step !== 'marked') return
    const { owner, token } = await readHolder(move.source.client, SHARD)
    seen.push(parseMove(owner), token, await move.source.client.get(`${TAG}fenced:7:a`))
  }
  await moveSlot({ ...move, at }, () => undefined)
  t.same(seen, [{ source: move.source.id, target: move.target.id }, `8:${move.nonce}`, '3 c'])
  t.same(await readHolder(move.target.client, SHARD), { owner: '', token: `8:${move.nonce}`, uncleared: [] })
  t.equal(await move.source.client.call('CLUSTER', 'COUNTKEYSINSLOT', slot), 0)
  t.equal(await move.target.client.exists(copyKey(SHARD)), 0)
  // The target and its replica have it, and no other node.
  await until(async () => {
    const counts = cluster.nodes.map(({ client }) => client.call('CLUSTER', 'COUNTKEYSINSLOT', slot))
    return (await Promise.all(counts)).filter((count) => Number(count) > 0).length === 2
  }, 20_000)
  t.notMatch(await move.source.client.call('CLUSTER', 'NODES'), `[${slot}-`)
})

t.test('move: a key that has ended and is still listed holds nothing up', async (t) => {
  const move = await makeMove()
  await move.source.client.call('DEBUG', 'SET-ACTIVE-EXPIRE', '0')
  await move.source.client.set(`${TAG}ends`, 'x', 'PX', 1)
  await move.source.client.call('DEBUG', 'SLEEP', '0.01')
  t.ok((await moveSlot(move, () => undefined)) >= 1)
  t.equal(await cluster.primaryOf(slot), move.to)
  t.equal(await move.target.client.get(`${TAG}stays`), 'x')
})

t.test('move: keys that come and go during the copy are the same at the target', async (t) => {
  const move = await makeMove()
  await move.source.client.set(`${TAG}goes`, 'x')
  const at = async (step: string): Promise<void> => {
    if (step !== 'begun') return
    await move.source.client.unlink(`${TAG}goes`)
    await move.source.client.set(`${TAG}comes`, Buffer.from([0, 255, 13]))
    await move.source.client.xadd(`${TAG}mailbox`, '5-0', 'n', '1')
  }
  await moveSlot({ ...move, at }, () => undefined)
  t.equal(await move.target.client.exists(`${TAG}goes`), 0)
  t.same(await move.target.client.getBuffer(`${TAG}comes`), Buffer.from([0, 255, 13]))
  t.equal(await move.target.client.xlen(`${TAG}mailbox`), 1)
})

t.test(
  'move: keys that end at the target before the source is cleared leave the replicas of the source too',
  async (t) => {
    const move = await makeMove()
    await move.source.client.set(`${TAG}ends`, 'x')
    const at = async (step: string): Promise<void> => {
      if (step === 'agreed') await move.target.client.unlink(`${TAG}ends`)
    }
    await moveSlot({ ...move, at }, () => undefined)
    const followers = move.replicas.filter(({ primary }) => primary === move.source.id)
    t.equal(followers.length, 1)
    await until(async () => {
      const counts = followers.map(({ client }) => client.call('CLUSTER', 'COUNTKEYSINSLOT', slot))
      return (await Promise.all(counts)).every((count) => Number(count) === 0)
    }, WAIT_MS)
  },
)

/** A watch over a connection of its own, which `cut` ends. */
async function watched(move: SlotMove, at: SlotMove['at']): Promise<SlotMove & { cut(): void }> {
  const own = new Redis({ host: '127.0.0.1', port: Number(move.source.name.split(':')[1]), retryStrategy: () => null })
  own.on('error', () => undefined)
  const watch = () => watchKeys(own, { client: move.source.client, shard: SHARD })
  return { ...move, watch, ...(at !== undefined && { at }), cut: () => own.disconnect() }
}

t.test('move: everything is copied before the fence, and what is written meanwhile once more after it', async (t) => {
  const move = await makeMove()
  const { client } = move.source
  const pipeline = client.pipeline()
  for (let n = 0; n < 500; n += 1) pipeline.set(`${TAG}body:${n}`, 'x')
  await pipeline.set(`${TAG}short`, 'x', 'PX', 60_000).hset(`${TAG}head`, { a: '1', b: '2' }).exec()
  await client.xadd(`${TAG}log`, '5-1', 'n', '1')
  const name = Buffer.from([...Buffer.from(TAG), 0, 255, 42])
  await client.set(name, 'before')
  const counts: [number, number][] = []
  const at = async (step: string): Promise<void> => {
    if (step !== 'ahead') return
    counts.push(...seen.splice(0))
    await client.set(name, 'after')
    await client.pexpire(`${TAG}short`, 600_000_000)
    await client.hdel(`${TAG}head`, 'a')
    await client.xadd(`${TAG}log`, '6-1', 'n', '2')
    await client.unlink(`${TAG}body:7`)
    await client.set(`${TAG}new`, 'x')
  }
  const seen: [number, number][] = []
  const keys = await moveSlot(await watched(move, at), (moved, all) => void seen.push([moved, all]))
  t.ok((counts.at(-1)?.[0] ?? 0) > 500, 'ahead')
  t.ok((seen.at(-1)?.[1] ?? 0) < 20, `what is copied while nobody may write: ${seen.at(-1)}`)
  t.ok(keys > 500)
  const there = move.target.client
  t.equal(await there.get(name), 'after')
  t.ok((await there.pttl(`${TAG}short`)) > 500_000_000)
  t.same(await there.hgetall(`${TAG}head`), { b: '2' })
  t.equal((await there.xrange(`${TAG}log`, '-', '+')).length, 2)
  t.equal(await there.exists(`${TAG}body:7`), 0)
  t.equal(await there.get(`${TAG}body:8`), 'x')
  t.equal(await there.get(`${TAG}new`), 'x')
  t.same(await client.config('GET', 'notify-keyspace-events'), ['notify-keyspace-events', ''], 'as it was')
})

t.test('move: if it is unknown what was written, everything is copied once more', async (t) => {
  const move = await makeMove()
  const { client } = move.source
  const at = async (step: string): Promise<void> => {
    if (step !== 'ahead') return
    order.cut()
    await client.set(`${TAG}stays`, 'changed')
  }
  const order = await watched(move, at)
  await moveSlot(order, () => undefined)
  t.equal(await move.target.client.get(`${TAG}stays`), 'changed')
})

t.test('move: a move that ends before the fence leaves the shard to its owner, and its copy is removed', async (t) => {
  const move = await makeMove()
  const order = await watched(move, () => {
    throw new Error('cut off')
  })
  await t.rejects(
    moveSlot(order, () => undefined),
    /cut off/,
  )
  t.equal((await readHolder(move.source.client, SHARD)).owner, 'worker')
  t.ok(Number(await move.target.client.call('CLUSTER', 'COUNTKEYSINSLOT', slot)) > 1)
  await endHere({ ...move, target: move.source })
  t.equal(await move.target.client.call('CLUSTER', 'COUNTKEYSINSLOT', slot), 0)
  t.equal((await readHolder(move.source.client, SHARD)).owner, 'worker', 'it is nobody else')
  t.notMatch(await move.target.client.call('CLUSTER', 'NODES'), `[${slot}-`)
})

t.test('move: a target that falls silent is detected, and accepts nothing late; nothing is lost', async (t) => {
  const move = await makeMove()
  const client = new Redis({ port: move.to.port, commandTimeout: 1_000, retryStrategy: () => null })
  client.on('error', () => undefined)
  const at = (step: string): void => {
    if (step === 'marked') move.to.signal('SIGSTOP')
  }
  const order = { ...move, target: { ...move.target, client }, at }
  await t.rejects(
    moveSlot(order, () => undefined),
    /Cannot write a key to .*: Command timed out/,
  )
  client.disconnect()
  move.to.signal('SIGCONT')
  t.equal(await move.source.client.get(`${TAG}stays`), 'x')
  // Its links to the others come back one by one.
  const again = (): Promise<boolean> =>
    moveSlot({ ...move, nonce: 'again' }, () => undefined).then(
      () => true,
      ({ message }: Error) => {
        if (!/cannot reach/.test(message)) throw new Error(message)
        return false
      },
    )
  await until(again, WAIT_MS)
  t.equal(await cluster.primaryOf(slot), move.to)
  t.equal(await move.target.client.get(`${TAG}stays`), 'x')
})

t.test('move: a node that was frozen when it got the order does not take the slot', async (t) => {
  const move = await makeMove()
  const { client } = move.target
  await client.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', move.source.id)
  // The node freezes between the two commands.
  const still = new Proxy(client, {
    get(of, name, self) {
      if (name === 'eval') void of.call('DEBUG', 'SLEEP', '2.5')
      const value = Reflect.get(of, name, self)
      return typeof value === 'function' ? value.bind(of) : value
    },
  })
  await t.rejects(switchSlot({ ...move.target, client: still }, slot), /did not respond and has not taken slot/)
  t.equal((await cluster.primaryOf(slot)).name, move.source.name)
  await switchSlot(move.target, slot)
  t.equal((await cluster.primaryOf(slot)).name, move.to.name)
  const back = await endOf(move.to)
  await until(async () => {
    const lines = String(await move.source.client.call('CLUSTER', 'NODES'))
    const line = parseNodes(lines, move.source.name).find(({ id }) => id === back.id)
    return line !== undefined && hasSlot(line, slot)
  }, WAIT_MS)
})

t.test('move: the remains of an interrupted move are removed from their node, even when it is undone', async (t) => {
  const move = await makeMove()
  const at = (step: string): void => {
    if (step === 'kept') throw new Error('cut off')
  }
  await t.rejects(
    moveSlot({ ...move, at }, () => undefined),
    /cut off/,
  )
  const { client } = move.target
  t.ok(Number(await client.call('CLUSTER', 'COUNTKEYSINSLOT', slot)) > 1)
  await endHere({ ...move, target: move.source })
  t.equal(await client.call('CLUSTER', 'COUNTKEYSINSLOT', slot), 0)
  t.notMatch(await client.call('CLUSTER', 'NODES'), `[${slot}-`)
  t.same((await readHolder(move.source.client, SHARD)).owner, '')
  t.equal(await move.source.client.get(`${TAG}stays`), 'x')
})

t.test('move: keys at another node that no move has left there are not touched', async (t) => {
  const move = await makeMove()
  const { client, name } = move.third
  await client.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', move.source.id)
  await client.pipeline().call('ASKING').call('SET', `${TAG}whose`, 'x').exec()
  await t.rejects(
    clearOthers({ ...move, holder: move.source }),
    new RegExp(`^${name} has keys of shard 17 that no move`),
  )
  t.equal(await client.call('CLUSTER', 'COUNTKEYSINSLOT', slot), 1)
  await client.pipeline().call('ASKING').call('SET', copyKey(SHARD), 'x').exec()
  await clearOthers({ ...move, holder: move.source })
  t.equal(await client.call('CLUSTER', 'COUNTKEYSINSLOT', slot), 0)
})

t.test('move: an order whose fence another one has taken does not switch', async (t) => {
  const move = await makeMove()
  const at = async (step: string): Promise<void> => {
    if (step === 'kept') await move.source.client.hset(metaKey(SHARD), 'tok', '99:other')
  }
  await t.rejects(
    moveSlot({ ...move, at }, () => undefined),
    /^Another command has taken over/,
  )
  t.equal((await cluster.primaryOf(slot)).name, move.source.name)
})
