/** Tests of cluster/shard/known-commits.ts. */
import { test } from 'tap'
import { KnownCommits } from '../../../cluster/shard/known-commits.ts'

test('known-commits: what a store has lost, since when, and only once', async (t) => {
  const known = new KnownCommits()
  t.equal(known.lossAt(0), null, 'nothing was confirmed')
  for (let seq = 11; seq <= 20; seq += 1) known.note(seq, seq * 100)
  t.equal(known.lossAt(20), null)
  t.equal(known.lossAt(25), null, 'others have gone on')
  t.same(known.lossAt(17), { commits: 3, sinceMs: 1_800 })
  t.equal(known.lossAt(16), null, 'it was told')
})

test('known-commits: what others had committed when the shard was taken is known as well, but for when', async (t) => {
  const known = new KnownCommits()
  known.begin({ seq: 7, token: '2:a' })
  t.equal(known.lossAt(7), null)
  t.same(known.lossAt(4), { commits: 3, sinceMs: null })
})

test('known-commits: a store that has forgotten the grant has lost all that was confirmed under it', async (t) => {
  const known = new KnownCommits()
  known.begin({ seq: 7, token: '3:mine' })
  known.note(8, 800)
  t.equal(known.keptBy({ seq: 8, token: '3:mine' }), 8)
  t.equal(known.keptBy({ seq: 9, token: '4:next' }), 9, 'the owner after this one has continued')
  t.equal(known.keptBy({ seq: 9, token: '2:before' }), 7, 'however far the owner before has come since')
  t.equal(known.keptBy({ seq: 9, token: '3:theirs' }), 7, 'and one that was granted the same epoch')
  t.equal(known.keptBy({ seq: 3, token: '2:before' }), 3, 'and what it has lost from before')
  t.equal(known.keptBy(null), 0)
  t.same(known.lossAt(7), { commits: 1, sinceMs: 800 })
})

test('known-commits: of a loss that goes further back than is remembered, the oldest that is', async (t) => {
  const known = new KnownCommits()
  for (let seq = 1; seq <= 200; seq += 1) known.note(seq, seq)
  t.same(known.lossAt(0), { commits: 200, sinceMs: 137 })
  const taken = new KnownCommits()
  taken.note(50, 5_000)
  t.same(taken.lossAt(10), { commits: 40, sinceMs: 5_000 }, 'what the owner before confirmed is not known here')
})
