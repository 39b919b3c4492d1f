/** Tests of cluster/stuck-count.ts. */
import { test } from 'tap'
import { StuckCount } from '../../../cluster/worker/stuck-count.ts'

function beating(untilMs: number): StuckCount {
  const stuck = new StuckCount()
  for (let atMs = 0; atMs <= untilMs; atMs += 3_000) stuck.beat(atMs)
  return stuck
}

test('stuck-count: judges only while heartbeats have been answered for ten seconds', async (t) => {
  t.equal(new StuckCount().mayJudge(50_000), false)
  t.equal(beating(9_000).mayJudge(9_900), false)
  t.equal(beating(12_000).mayJudge(12_000), true)
  t.equal(beating(12_000).mayJudge(16_001), false, 'the store is silent')
  const back = beating(12_000)
  back.beat(40_000)
  back.beat(43_000)
  t.equal(back.mayJudge(43_000), false, 'the store was away')
})

test('stuck-count: the third time in a minute is too often', async (t) => {
  const stuck = new StuckCount()
  t.same([stuck.add(0), stuck.add(59_000), stuck.add(61_000), stuck.add(62_000)], [false, false, false, true])
})

test('stuck-count: shards that got stuck together count once', async (t) => {
  const stuck = new StuckCount()
  t.same(
    [0, 1, 250, 500, 2_000, 2_001, 4_000].map((atMs) => stuck.add(atMs)),
    [...Array.from({ length: 6 }, () => false), true],
  )
})
