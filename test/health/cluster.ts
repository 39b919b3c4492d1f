/** cluster - what doctor says of each Redis of a cluster, in each state. */
import t from 'tap'
import { examineClocks, examineCluster } from '../../src/health/cluster.ts'
import type { ClusterState, RedisNode } from '../../src/store/cluster/cluster-state.ts'

const PRIMARY: RedisNode = {
  name: 'm1:7001',
  id: 'aa',
  isPrimary: true,
  primary: null,
  answers: true,
  isWell: true,
  shards: [0, 1, 2, 17],
  version: '7.0.15',
  memory: { usedBytes: 100, bytesMax: 1_000 },
  replicasInStep: 2,
  isInStep: false,
  behindBytes: null,
  offset: null,
  clockOffMs: 3,
  commandsPerSecond: 1,
  hasFailedToWrite: false,
}
const REPLICA: RedisNode = {
  ...PRIMARY,
  name: 'm2:7002',
  isPrimary: false,
  primary: 'm1:7001',
  shards: [],
  isInStep: true,
}
const GIB = 1024 ** 3

/** What is said of a cluster of the two, changed; with and without answers that wait for replicas. */
function said(primary: Partial<RedisNode>, replica: Partial<RedisNode> = {}, isReplicated = true): string[] {
  const state: ClusterState = {
    faults: [],
    nodes: [
      { ...PRIMARY, ...primary },
      { ...REPLICA, ...replica },
    ],
    moving: [],
    dissent: [],
    mover: null,
  }
  return examineCluster(state, { fault: null, isReplicated }).map(({ status, message }) => `${status}: ${message}`)
}

t.test('health: a cluster that is well, in one sentence [operator.health]', async (t) => {
  t.same(said({}), ['ok: Redis Cluster of 1 primaries and 1 replicas, at most 10 % of maxmemory is used'])
  t.same(said({ shards: [], answers: false, memory: null })[0]?.startsWith('ok'), true, 'one that holds nothing may go')
})

t.test('health: each thing that is wrong with a node names it [operator.health]', async (t) => {
  const cases: [Partial<RedisNode>, Partial<RedisNode>, boolean, RegExp][] = [
    [
      { answers: false, memory: null },
      {},
      false,
      /^failed: m1:7001 does not answer: 4 shards \(0-2, 17\) are unavailable/,
    ],
    [{ isWell: false }, {}, false, /^failed: m1:7001 takes no part in its cluster/],
    [{ hasFailedToWrite: true }, {}, false, /^failed: The last write .* of m1:7001 failed/],
    [{ replicasInStep: 0 }, {}, true, /^failed: m1:7001 has no replica in sync/],
    [{ replicasInStep: 1 }, {}, true, /^warning: m1:7001 has one replica in sync/],
    [{ memory: { usedBytes: 75, bytesMax: 100 } }, {}, false, /^warning: 75 % of the maxmemory of m1:7001/],
    [{ memory: { usedBytes: 90, bytesMax: 100 } }, {}, false, /^failed: 90 % .* new mail is refused/],
    [{ memory: { usedBytes: 90, bytesMax: 0 } }, {}, false, /^warning: m1:7001 has no maxmemory/],
    [{}, { answers: false }, true, /^failed: m2:7002, a replica of m1:7001, does not answer/],
    [{}, { answers: false }, false, /^warning: m2:7002/],
    [{}, { isInStep: false }, true, /^failed: m2:7002 has no link to its primary of m1:7001/],
    [{}, { behindBytes: GIB }, true, /^warning: m2:7002 is 1024 MB behind/],
  ]
  for (const [primary, replica, isReplicated, sentence] of cases) {
    const sentences = said(primary, replica, isReplicated)
    t.equal(sentences.length, 1, sentences.join('; '))
    t.match(sentences[0], sentence)
  }
  t.same(said({ replicasInStep: 0 }, {}, false).length, 1)
  const move = { shard: 17, at: 'm1:7001', to: 'm4:7001', from: 'aa', uncleared: [] }
  const state: ClusterState = { faults: ['It is so'], nodes: [PRIMARY], moving: [move], dissent: [], mover: null }
  const toldOf = (changed: Partial<ClusterState>) =>
    examineCluster({ ...state, ...changed }, { fault: 'It is full', isReplicated: false })
  t.match(toldOf({}), [
    { status: 'failed', message: 'It is so' },
    { status: 'failed', message: 'Rejecting all requests: It is full' },
    {
      status: 'failed',
      message: /^The move of shard 17 to m4:7001 was interrupted/,
      fix: /^Complete the move: sendwright cluster move 17 m4:7001; or undo it: sendwright cluster move 17 m1:7001$/,
    },
  ])
  t.match(toldOf({ mover: 'host 17' })[2], { status: 'warning', message: /by host 17: requests of its accounts wait/ })
  t.equal(toldOf({ moving: [{ ...move, at: 'm4:7001' }] })[2]?.fix, 'sendwright cluster move 17 m4:7001')
  const left = { ...move, at: 'm4:7001', from: null, uncleared: ['m1:7001'] }
  t.match(toldOf({ moving: [left] })[2], {
    status: 'warning',
    message: /^m1:7001 was unreachable when shard 17 was moved away, and its file still contains the shard$/,
    fix: 'When it is reachable: sendwright cluster move 17 m4:7001',
  })
  const dissent = [{ node: 'm2:7002', holder: 'm1:7001', shards: [1, 2, 17] }]
  t.match(toldOf({ moving: [], dissent })[2], {
    status: 'failed',
    message: /^m2:7002 does not know that m1:7001 holds shards 1-2, 17: /,
    fix: /redis-cli -h m1 -p 7001 CLUSTER BUMPEPOCH/,
  })
  t.match(toldOf({ moving: [{ ...move, from: null }], mover: 'm9, process 7' })[2], {
    status: 'warning',
    message: 'Shard 17 is being copied to another Redis by m9, process 7 and is still served',
  })
  t.match(toldOf({ moving: [{ ...move, from: null }] })[2], { status: 'warning', message: /marked as being moved/ })
})

t.test(
  'health: a replica takes over where answers wait for one: the one that has most [operator.health]',
  async (t) => {
    const silent = { ...PRIMARY, answers: false, memory: null }
    const replicas = [5, 700, 60].map((offset, n) => ({ ...REPLICA, name: `m${n + 2}:7002`, offset }))
    const gone = { ...REPLICA, name: 'm9:7002', answers: false, offset: null }
    const fixOf = (isReplicated: boolean, others: readonly RedisNode[]): string | null =>
      examineCluster(
        { faults: [], nodes: [silent, ...others], moving: [], dissent: [], mover: null },
        { fault: null, isReplicated },
      )[0]?.fix ?? null
    t.match(fixOf(true, [...replicas, gone]), /most advanced replica: redis-cli -h m3 -p 7002 CLUSTER FAILOVER FORCE$/)
    t.equal(fixOf(false, replicas), 'Start it again', 'they lack what was answered')
    t.equal(fixOf(true, [gone]), 'Start it again')
  },
)

t.test('health: a primary with one replica is given one that another has too many [operator.health]', async (t) => {
  const poor = { ...PRIMARY, replicasInStep: 1 }
  const rich = { ...PRIMARY, name: 'm4:7001', id: 'dd', shards: [5], replicasInStep: 3 }
  const replicas = [2, 3, 4].map((n) => ({ ...REPLICA, name: `m${n}:7003`, primary: 'm4:7001' }))
  const fixOf = (nodes: readonly RedisNode[]): string | null =>
    examineCluster(
      { faults: [], nodes, moving: [], dissent: [], mover: null },
      { fault: null, isReplicated: true },
    ).find(({ message }) => message.includes('one replica in sync'))?.fix ?? null
  t.equal(
    fixOf([poor, rich, REPLICA, ...replicas]),
    'm4:7001 has 3 replicas. Let one follow this primary: redis-cli -h m2 -p 7003 CLUSTER REPLICATE aa',
  )
  t.match(fixOf([poor, { ...rich, replicasInStep: 2 }, REPLICA, ...replicas]), /^Start the other one/)
})

t.test('health: clocks of primaries that are a quarter of a second apart [operator.health]', async (t) => {
  const nodes = [PRIMARY, { ...PRIMARY, name: 'm2:7001', clockOffMs: 253 }, { ...REPLICA, clockOffMs: 9_000 }]
  t.match(examineClocks({ faults: [], moving: [], dissent: [], mover: null, nodes }), { status: 'ok' })
  const apart = nodes.map((node) => ({ ...node, clockOffMs: (node.clockOffMs ?? 0) * 1.1 }))
  t.match(examineClocks({ faults: [], moving: [], dissent: [], mover: null, nodes: apart }), {
    status: 'failed',
    message: /are 275 ms apart, m2:7001 is ahead/,
  })
})
