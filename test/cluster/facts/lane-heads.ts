/** The cached head of a lane equals what a read would return, or there is no cached head. */
import { test } from 'tap'
import type { Op } from '../../../cluster/behaviour.ts'
import { LaneHeads, laneHead } from '../../../cluster/facts/lane-heads.ts'
import { Overlay } from '../../../cluster/facts/overlay.ts'

type Members = [string, number][]

const FACT = laneHead(0, 'post/a')
const { key } = FACT
const names = (count: number): Members => Array.from({ length: count }, (_, n) => [`i${n < 10 ? 0 : ''}${n}`, n])
const add = (...args: string[]): Op => ({ key, write: 'ZADD', args })
const remove = (...args: string[]): Op => ({ key, write: 'ZREM', args })

function headsOf(members: Members, left = 1_000) {
  const budget = { left }
  const heads = new LaneHeads(budget)
  heads.take([FACT], [members])
  const note = (...ops: Op[]): void => {
    const overlay = new Overlay()
    for (const op of ops) overlay.note(op)
    heads.note(ops, overlay)
  }
  return { heads, budget, note }
}

/** the read, the write, the knowledge afterwards (null: none), whether it is the whole lane */
const CASES: [string, Members, Op[], Members | null, boolean][] = [
  ['nothing written', names(3), [], names(3), true],
  ['the first leaves', names(4), [remove('i00')], names(4).slice(1), true],
  // biome-ignore format: a row
  ['a claim moves the first', names(2), [add('XX', '90', 'i00')], [['i01', 1], ['i00', 90]], true],
  // biome-ignore format: a row
  ['one comes in between', names(3), [add('1.5', 'x')], [['i00', 0], ['i01', 1], ['x', 1.5], ['i02', 2]], true],
  ['one comes last', names(1), [add('9', 'x')], [['i00', 0], ['x', 9]], true], // biome-ignore format: a row
  ['all leave', names(2), [remove('i00', 'i01')], null, true],
  ['the lane goes', names(2), [{ key, write: 'UNLINK', args: [] }], null, true],
  ['cut off: one beyond its end stays unknown', names(16), [add('99', 'x')], names(16), false],
  // biome-ignore format: a row
  ['cut off: one before its end comes in', names(16), [add('0.5', 'x')], [['i00', 0], ['x', 0.5], ...names(15).slice(1)], false],
  ['cut off: a claim moves the first beyond its end', names(16), [add('XX', '99', 'i00')], names(16).slice(1), false],
  ['cut off: three are left', names(16), [remove(...names(13).map(([name]) => name))], names(16).slice(13), false],
  ['cut off: two are left', names(16), [remove(...names(14).map(([name]) => name))], null, false],
  ['cut off: a condition on one that is not known', names(16), [add('XX', '5', 'x')], null, false],
  ['another lane', names(3), [{ ...add('1', 'x'), key: laneHead(0, 'post/b').key }], names(3), true],
]

test('lane-heads: what a commit makes of what was read', async (t) => {
  for (const [name, read, ops, expected, isWhole] of CASES) {
    const { heads, budget, note } = headsOf(read)
    note(...ops)
    t.same(heads.head(key), expected === null ? undefined : { members: expected, isWhole }, name)
    t.equal(budget.left, 1_000 - (expected?.length ?? 0), `${name}: budget`)
  }
})

test('lane-heads: a lane that grows past what is kept is known as far as that', async (t) => {
  const { heads, note } = headsOf(names(10))
  note(
    add(
      ...names(30)
        .slice(10)
        .flatMap(([name, score]) => [String(score), name]),
    ),
  )
  t.same(heads.head(key), { members: names(16), isWhole: false })
})

test('lane-heads: only heads are taken in, and what is too much goes when a batch begins', async (t) => {
  const { heads, budget } = headsOf(names(4), 6)
  const { isHead: _, ...plain } = { ...laneHead(0, 'post/c') }
  heads.take([plain, laneHead(0, 'post/b')], [names(5), names(5)])
  t.equal(heads.head(plain.key), undefined)
  t.equal(budget.left, -3)
  heads.begin()
  t.same([heads.head(key), heads.head(laneHead(0, 'post/b').key)?.members.length, budget.left], [undefined, 5, 1])
  heads.clear()
  t.equal(budget.left, 6)
})
