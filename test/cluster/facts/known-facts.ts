/** The facts that an owner knows without a read, fields and heads alike, until it leaves. */
import { test } from 'tap'
import type { Op } from '../../../cluster/behaviour.ts'
import { KnownFacts } from '../../../cluster/facts/known-facts.ts'
import { laneHead } from '../../../cluster/facts/lane-heads.ts'
import { Overlay } from '../../../cluster/facts/overlay.ts'

const HEAD = laneHead(0, 'post/a')
const FIELD = { read: 'fields', key: 'k', fields: ['a'] } as const

test('known-facts: what was read is known with what was written since, and nothing once the shard is gone', async (t) => {
  const budget = { left: 10 }
  const known = new KnownFacts(budget)
  t.same([known.has(HEAD), known.has(FIELD)], [false, false])
  known.take([HEAD, FIELD], [[['i', 1]], ['1']])
  t.same(
    [known.has(HEAD), known.has(FIELD), known.has({ ...HEAD, count: 3, isHead: undefined } as never)],
    [true, true, false],
  )
  const ops: Op[] = [
    { key: HEAD.key, write: 'ZADD', args: ['2', 'j'] },
    { key: 'k', write: 'HSET', args: ['a', '2'] },
  ]
  const overlay = new Overlay()
  for (const op of ops) overlay.note(op)
  known.note({ ops, absent: [], forgets: [{ key: 'k', fields: ['a'] }], overlay })
  // biome-ignore format: a row
  t.same([known.head(HEAD.key)?.members, known.field('k', 'a')], [[['i', 1], ['j', 2]], '2'])
  t.equal(budget.left, 7)
  known.begin(0)
  t.same([known.has(FIELD), budget.left], [false, 8], 'what nobody asks for again goes with the next batch')
  known.clear()
  t.same([known.has(HEAD), known.has(FIELD), budget.left], [false, false, 10])
})
