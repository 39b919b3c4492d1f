/** Tests of cluster/worker/recent-asks.ts. */
import { test } from 'tap'
import { RecentAsks } from '../../../cluster/worker/recent-asks.ts'

test('recent-asks: nearly all of the last seconds, and not of before', async (t) => {
  const asks = new RecentAsks()
  t.equal(asks.areRefused(0), false)
  for (let atMs = 0; atMs < 4; atMs += 1) asks.note(true, atMs)
  t.equal(asks.areRefused(10), false, 'four say nothing')
  asks.note(true, 1_000)
  t.equal(asks.areRefused(1_000), true)
  asks.note(false, 1_100)
  t.equal(asks.areRefused(1_100), true, 'five of six')
  asks.note(false, 1_200)
  t.equal(asks.areRefused(1_200), false)
  for (let n = 0; n < 40; n += 1) asks.note(true, 2_000)
  t.equal(asks.areRefused(2_000), true)
  t.equal(asks.areRefused(6_001), false, 'it is over')
})
