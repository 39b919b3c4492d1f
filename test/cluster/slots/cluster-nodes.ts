/** cluster-nodes - when the map is read, and the handling of a primary that no longer holds anything. */
import { setImmediate as settle } from 'node:timers/promises'
import t from 'tap'
import { makeClock } from '../../../cluster/clock.ts'
import { ClusterNodes } from '../../../cluster/slots/cluster-nodes.ts'
import type { NodeEvents, ShardNode } from '../../../cluster/slots/shard-node.ts'
import { VirtualTime, WorkerClock } from '../../simulation/virtual-time.ts'

const A = '127.0.0.1:7001'
const B = '127.0.0.1:7002'
const C = '127.0.0.1:7003'
const line = (name: string, epoch: number, slots: string, role = 'master'): string =>
  `${name} ${name}@1 ${role} - 0 0 ${epoch} connected ${slots}`
const BEFORE = [line(A, 1, '0-8191'), line(B, 2, '8192-16383'), line(C, 2, '', 'slave')].join('\n')
const AFTER = [line(A, 1, '0-8191'), line(B, 2, '', 'slave'), line(C, 3, '8192-16383')].join('\n')

/** Nodes that answer what `said` holds, in virtual time. */
function makeNodes() {
  const time = new VirtualTime()
  const clock = new WorkerClock(time, { rate: 1, originMs: 0, storeMs: 0 })
  const said = { text: BEFORE as string | null }
  const asked: string[] = []
  const events = new Map<string, NodeEvents>()
  const deposed: string[] = []
  const silent = new Set<string>()
  const ask = async (name: string): Promise<string | null> => {
    asked.push(name)
    return silent.has(name) ? new Promise(() => undefined) : said.text
  }
  const makeNode = (name: string, hears: NodeEvents): ShardNode => {
    events.set(name, hears)
    return {
      name,
      address: name,
      clock: makeClock(),
      answeredAtMs: 0,
      steadySinceMs: 0,
      store: null as never,
      isUp: true,
      get isSilent() {
        return silent.has(name)
      },
      isGated: false,
      kept: async () => true,
      hear: () => undefined,
      listen: () => ({ close: () => undefined }),
      nodes: () => ask(name),
      depose: () => void deposed.push(name),
      close: () => undefined,
    }
  }
  const nodes = new ClusterNodes(
    { seeds: [A], clock, makeNode, askApart: ask },
    { arranged: () => undefined, heard: () => undefined, held: () => undefined },
  )
  const pass = async (ms: number): Promise<void> => {
    for (const endMs = time.nowMs + ms; time.nowMs < endMs; time.nowMs += 1) {
      for (const timer of time.dueTimers(new Set([clock]))) time.call(timer)
      await settle()
    }
  }
  return { asked, deposed, events, nodes, pass, said, silent }
}

t.test('cluster-nodes: while all is well one node is asked in two seconds, by turns', async (t) => {
  const { asked, nodes, pass } = makeNodes()
  t.teardown(() => nodes.close())
  await pass(600)
  t.same([...nodes.all.keys()], [A, B])
  asked.length = 0
  await pass(6_000)
  t.same(asked.toSorted(), [A, A, B].toSorted().slice(0, asked.length))
  t.equal(asked.length, 3)
})

t.test(
  'cluster-nodes: for a silent node the others are asked at once, and it is left if they name another one',
  async (t) => {
    const { asked, deposed, nodes, pass, said, silent } = makeNodes()
    t.teardown(() => nodes.close())
    await pass(600)
    silent.add(B)
    asked.length = 0
    await pass(1_000)
    t.ok(asked.filter((name) => name === A).length >= 8, 'within a tenth of a second each')
    t.equal(asked.filter((name) => name === B).length, 1, 'who owes an answer is not asked again')
    said.text = AFTER
    await pass(110)
    t.same([deposed, [...nodes.all.keys()]], [[B], [A, C]])
  },
)

t.test('cluster-nodes: a moved slot is looked up at once', async (t) => {
  const { events, nodes, pass, said } = makeNodes()
  t.teardown(() => nodes.close())
  await pass(600)
  said.text = AFTER
  t.equal(nodes.targetOf(`MOVED 9000 ${C}`, { from: A, hops: 0 }), null, 'nobody is connected to it yet')
  await pass(20)
  t.same([...nodes.all.keys()], [A, C])
  t.equal(nodes.targetOf(`MOVED 9000 ${C}`, { from: A, hops: 0 })?.name, C)
  t.equal(nodes.targetOf(`ASK 9000 ${C}`, { from: A, hops: 4 }), null, 'not for ever')
  t.equal(nodes.targetOf('TRYAGAIN Multiple keys', { from: A, hops: 0 }), null)
  t.ok(events.has(C))
})
