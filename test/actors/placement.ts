/** New accounts fill two shards before the next two are begun. */
import t from 'tap'
import { SHARDS } from '../../cluster/id.ts'
import { ACCOUNTS_EACH, placeAccount, SHARDS_TOGETHER } from '../../src/actors/placement.ts'

function placed(accounts: number): number[] {
  const counts = Array.from({ length: SHARDS }, () => 0)
  for (let n = 0; n < accounts; n += 1) {
    const shard = placeAccount(counts)
    counts[shard] = (counts[shard] ?? 0) + 1
  }
  return counts
}

t.test('placement: the first account is on shard 0, the next beside it', async (t) => {
  t.same(placed(1).slice(0, 2), [1, 0])
  t.same(placed(2).slice(0, 3), [1, 1, 0])
})

t.test('placement: two shards are filled evenly, then the next two', async (t) => {
  const full = placed(SHARDS_TOGETHER * ACCOUNTS_EACH)
  t.ok(full.slice(0, SHARDS_TOGETHER).every((count) => count === ACCOUNTS_EACH))
  t.ok(full.slice(SHARDS_TOGETHER).every((count) => count === 0))
  t.equal(placeAccount(full), SHARDS_TOGETHER)
})

t.test('placement: once all are full they grow evenly', async (t) => {
  const counts = placed(SHARDS * ACCOUNTS_EACH + SHARDS)
  t.ok(counts.every((count) => count === ACCOUNTS_EACH + 1))
})

t.test('placement: an account that has gone leaves its place to the next', async (t) => {
  const counts = placed(100)
  counts[1] = 0
  t.equal(placeAccount(counts), 1)
})
