/** newest - pages over sets of several shards equal one list of everything, newest first. */
import t from 'tap'
import type { FactValue, ViewFact } from '../../cluster/behaviour.ts'
import { makeIds, msOf } from '../../cluster/id.ts'
import { makeReader, type Reader } from '../../src/views/key.ts'
import { readNewest } from '../../src/views/newest.ts'

const SHARDS = [0, 7, 255]
const KEYS = SHARDS.map((shard) => ({ shard, key: `set ${shard}` }))

/** Ids of each shard, some in one millisecond, as sorted sets that answer as the store does. */
function makeSets(times: readonly number[]) {
  const sets = new Map(
    SHARDS.map((shard) => {
      const ids = makeIds({ shard, last: '', random: () => 0.5 })
      return [shard, times.map((ms) => ids.next(ms))]
    }),
  )
  const answer = async (shard: number, facts: readonly ViewFact[]): Promise<readonly FactValue[]> =>
    facts.map((fact) => {
      if (fact.read !== 'sorted') throw new Error('Only sorted sets are read')
      const { min, max, count } = fact
      const within = (sets.get(shard) ?? []).map((id): [string, number] => [id, msOf(id)])
      const rows = within.filter(([, ms]) => ms >= min && ms <= max)
      const ordered = 'newest' in fact && fact.newest ? rows.sort().reverse() : rows.sort()
      return ordered.slice(0, count)
    })
  return { read: makeReader({ read: answer }), all: [...sets.values()].flat().sort().reverse() }
}

t.test('newest: pages of any size hold everything once, newest first [list.page]', async (t) => {
  const { read, all } = makeSets([5, 5, 5, 6, 900, 901, 901, 7_000])
  t.equal(all.length, 24)
  for (const limit of [1, 2, 3, 7, 24, 100]) {
    const paged: string[] = []
    for (let after: string | null = null; ; after = paged.at(-1) ?? null) {
      const page: readonly string[] = (await readNewest(read, KEYS, { limit, after })) ?? []
      t.ok(page.length <= limit)
      if (page.length === 0) break
      paged.push(...page)
    }
    t.same(paged, all, `pages of ${limit}`)
  }
})

t.test('newest: continues below an id that is gone, and ends if nothing is older [list.page]', async (t) => {
  const { read, all } = makeSets([10, 20, 30])
  const [newest = ''] = all
  const gone = newest.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'))
  t.same(
    await readNewest(read, KEYS, { limit: 100, after: gone }),
    all.filter((id) => id < gone),
  )
  t.same(await readNewest(read, KEYS, { limit: 5, after: all.at(-1) ?? '' }), [])
})

t.test('newest: a store that does not answer is reported', async (t) => {
  const { read } = makeSets([10])
  const away: Reader = async (shard, facts) => (shard === 7 ? null : read(shard, facts))
  t.equal(await readNewest(away, KEYS, { limit: 5, after: null }), null)
})
