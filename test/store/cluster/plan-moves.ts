/** plan-moves - shards dealt out evenly, with as few moves as can be. */
import t from 'tap'
import { COMMON_SLOT, SHARD_SLOTS } from '../../../cluster/slots/slot-map.ts'
import { holdsCommon, planMoves, planRanges } from '../../../src/store/cluster/plan-moves.ts'

const run = (first: number, count: number): number[] => Array.from({ length: count }, (_, n) => first + n)

/** The shards of each node after the moves. */
function after(holders: Parameters<typeof planMoves>[0], leaving?: ReadonlySet<string>): Record<string, number> {
  const held = new Map(holders.map(({ name, shards }) => [name, new Set(shards)]))
  for (const { shards, from, to } of planMoves(holders, leaving))
    for (const shard of shards) {
      if (held.get(from)?.delete(shard) !== true) throw new Error(`${from} does not hold ${shard}`)
      held.get(to)?.add(shard)
    }
  return Object.fromEntries([...held].map(([name, { size }]) => [name, size]))
}

t.test('plan: a new Redis gets its share from all, and nothing else moves', async (t) => {
  const holders = [
    { name: 'a', shards: run(0, 86) },
    { name: 'b', shards: run(86, 85) },
    { name: 'c', shards: run(171, 85) },
    { name: 'd', shards: [] },
  ]
  t.same(after(holders), { a: 64, b: 64, c: 64, d: 64 })
  t.equal(planMoves(holders).flatMap(({ shards }) => shards).length, 64)
  t.ok(planMoves(holders).every(({ to }) => to === 'd'))
  t.same(planMoves(holders.slice(0, 3)), [], 'one more or less is even')
})

t.test('plan: a leaving node gives all away, and one node has to stay', async (t) => {
  const holders = [
    { name: 'a', shards: run(0, 100) },
    { name: 'b', shards: run(100, 100) },
    { name: 'c', shards: run(200, 56) },
  ]
  t.same(after(holders, new Set(['a'])), { a: 0, b: 128, c: 128 })
  t.throws(() => planMoves(holders, new Set(['a', 'b', 'c'])), /No Redis is left/)
})

t.test('plan: ranges for a new cluster cover all slots, with equal numbers of shards', async (t) => {
  for (const primaries of [1, 3, 7, 12, 256]) {
    const ranges = planRanges(primaries)
    t.equal(ranges.length, primaries)
    t.equal(ranges[0]?.first, 0)
    t.equal(ranges.at(-1)?.last, 16_383)
    for (const [n, { first, last, shards }] of ranges.entries()) {
      if (n > 0) t.equal(first, (ranges[n - 1]?.last ?? 0) + 1)
      const held = SHARD_SLOTS.filter((slot) => slot >= first && slot <= last).length
      if (held !== shards || Math.abs(held - 256 / primaries) >= 1) t.fail(`${held} of ${shards} in range ${n}`)
    }
    t.equal(ranges.filter(holdsCommon).length, 1, String(COMMON_SLOT))
  }
})
