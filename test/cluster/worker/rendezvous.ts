/** Tests of cluster/rendezvous.ts. */
import { test } from 'tap'
import { wantedOwner } from '../../../cluster/worker/rendezvous.ts'

const SHARDS = Array.from({ length: 256 }, (_, shard) => shard)
const workers = (count: number): string[] => Array.from({ length: count }, (_, n) => `mwqfu2${n}l95b56qwm`)

test('rendezvous: nobody, one, and the order of the names does not matter', async (t) => {
  t.equal(wantedOwner(3, []), '')
  t.equal(wantedOwner(3, ['a']), 'a')
  for (const shard of SHARDS) t.equal(wantedOwner(shard, workers(5)), wantedOwner(shard, workers(5).reverse()))
})

test('rendezvous: everybody has a fair share', async (t) => {
  for (const count of [2, 3, 4, 8]) {
    const shares = new Map<string, number>()
    for (const shard of SHARDS) {
      const owner = wantedOwner(shard, workers(count))
      shares.set(owner, (shares.get(owner) ?? 0) + 1)
    }
    t.equal(shares.size, count)
    const fair = SHARDS.length / count
    for (const share of shares.values()) t.ok(share > fair / 2 && share < fair * 1.6, `${share} of ${fair}`)
  }
})

test('rendezvous: who comes or goes moves only what is his', async (t) => {
  const four = workers(4)
  const three = four.slice(0, 3)
  for (const shard of SHARDS) {
    const before = wantedOwner(shard, four)
    if (before !== four[3]) t.equal(wantedOwner(shard, three), before)
  }
})
