/**
 * retry-lane - items that wait for later become due now, step by step; items with an attempt in flight stay as they
 * are.
 */

import t from 'tap'
import { claimsKey } from '../../../cluster/keyspace.ts'
import { isUnderWay, retryLane } from '../../../src/actors/message/operate-queue.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20)
const LANE = 'deliver/a.test'

function begin(count: number, atMsOf: (n: number) => number): World {
  const world = new World(NOW_MS)
  for (let n = 0; n < count; n += 1) {
    const item = `i${String(n).padStart(4, '0')}`
    world.items.set(`${LANE} ${item}`, { lane: LANE, item, atMs: atMsOf(n), claims: 1 })
  }
  return world
}

const dueAt = (world: World) => [...world.items.values()].map(({ atMs }) => atMs - NOW_MS)

t.test('retry-lane: items due later become due now, with their attempts [queue.retry]', async (t) => {
  const world = begin(3, (n) => NOW_MS + n * 1000)
  const reply = world.run(retryLane, { lane: LANE, fromMs: NOW_MS + 1 })
  t.same(reply, { kind: 'retried', recipients: 2, nextMs: null }, 'the first is due already')
  t.same(dueAt(world), [0, 0, 0])
  t.same(
    [...world.items.values()].map(({ claims }) => claims),
    [1, 1, 1],
    'the schedule goes on where it was',
  )
  t.match(world.run(retryLane, { lane: 'deliver/none.test', fromMs: 0 }), { recipients: 0, nextMs: null })
})

t.test('retry-lane: an item with an attempt in flight is left alone [queue.retry]', async (t) => {
  const world = begin(2, () => NOW_MS + 5000)
  const fields = new Map([
    ['i0000', JSON.stringify(['worker-1', 1])],
    ['i0001', JSON.stringify(['', 1])],
  ])
  world.keys.set(claimsKey(world.shard), { type: 'hash', fields })
  t.match(world.run(retryLane, { lane: LANE, fromMs: NOW_MS + 1 }), { recipients: 1 })
  t.same(dueAt(world), [5000, 0])
  for (const [row, expected] of [
    [null, false],
    ['["",1]', false],
    ['["w",1]', true],
  ] as const)
    t.equal(isUnderWay(row), expected)
})

t.test(
  'retry-lane: a long lane is walked in a finite number of steps, even if everything is due at once',
  async (t) => {
    for (const atMsOf of [(n: number) => NOW_MS + 1 + n, () => NOW_MS + 1000]) {
      const world = begin(1200, atMsOf)
      let fromMs: number | null = NOW_MS + 1
      let steps = 0
      for (; fromMs !== null && steps < 20; steps += 1) fromMs = world.run(retryLane, { lane: LANE, fromMs }).nextMs
      t.ok(steps < 20, `${steps} steps`)
      t.ok(dueAt(world).every((ms) => ms === 0))
    }
  },
)
