/** move-slot - the slot of a shard goes to another primary: what ends meanwhile, and a target that falls silent. */
import t from 'tap'
import { shardTag } from '../../../cluster/keyspace.ts'
import { type MoveEnd, moveSlot, type SlotMove } from '../../../cluster/slots/move-slot.ts'
import { SHARD_SLOTS } from '../../../cluster/slots/slot-map.ts'
import { type ClusterNode, startCluster } from '../../support/store/redis-cluster.ts'

const cluster = await startCluster({ primaries: 2, settings: { 'enable-debug-command': 'local' } })
t.teardown(() => cluster.stop())
const slot = SHARD_SLOTS[17] ?? 0
const TAG = `${shardTag(17)}:`

async function endOf({ name, client }: ClusterNode): Promise<MoveEnd> {
  return { name, client, id: (await client.call('CLUSTER', 'MYID')) as string }
}

/** The slot with a key, and its way to the other primary. */
async function makeMove(): Promise<SlotMove & { readonly to: ClusterNode }> {
  const from = await cluster.primaryOf(slot)
  const to = cluster.nodes.find((node) => node !== from) as ClusterNode
  const [source, target] = await Promise.all([endOf(from), endOf(to)])
  await source.client.set(`${TAG}stays`, 'x')
  return { slot, source, target, primaries: [source, target], user: '', password: '', giveMsMax: 100, to }
}

t.test('move: a key that has ended and is still listed holds nothing up', async (t) => {
  const move = await makeMove()
  await move.source.client.call('DEBUG', 'SET-ACTIVE-EXPIRE', '0')
  await move.source.client.set(`${TAG}ends`, 'x', 'PX', 1)
  await move.source.client.call('DEBUG', 'SLEEP', '0.01')
  t.ok((await moveSlot(move, () => undefined)) >= 1)
  t.equal(await cluster.primaryOf(slot), move.to)
  t.equal(await move.target.client.get(`${TAG}stays`), 'x')
})

t.test(
  'move: a target that falls silent holds the source up for no longer than it may, and loses nothing',
  async (t) => {
    const move = await makeMove()
    const startedAtMs = performance.now()
    const moving = moveSlot(move, (moved) => {
      if (moved === 0) move.to.signal('SIGSTOP')
    })
    await t.rejects(moving, /could not give a key .*IOERR/)
    move.to.signal('SIGCONT')
    t.ok(performance.now() - startedAtMs < 20_000)
    await moveSlot(move, () => undefined)
    t.equal(await cluster.primaryOf(slot), move.to)
  },
)
