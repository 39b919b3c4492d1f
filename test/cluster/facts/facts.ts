/** Tests of cluster/facts.ts. */
import { test } from 'tap'
import type { Fact, Op } from '../../../cluster/behaviour.ts'
import { FactList, FactRounds, FactView, type Laid } from '../../../cluster/facts/facts.ts'
import { Overlay } from '../../../cluster/facts/overlay.ts'

function overlayOf(...ops: Op[]): Overlay {
  const overlay = new Overlay()
  for (const op of ops) overlay.note(op)
  return overlay
}

const FIELD: Fact & { read: 'fields' } = { read: 'fields', key: 'h', fields: ['a'] }
const SCORE: Fact = { read: 'score', key: 'z', member: 'm' }
const set = (value: string): Overlay => overlayOf({ key: 'h', write: 'HSET', args: ['a', value] })

test('facts: repeats are read once, fields of one key together', async (t) => {
  const list = new FactList()
  t.equal(list.empty, true)
  for (const fact of [SCORE, SCORE, FIELD, { ...FIELD, fields: ['a', 'b'] }]) list.add(fact)
  t.same(list.list(), [SCORE, { read: 'fields', key: 'h', fields: ['a', 'b'] }])
})

test('facts: only commits that a read may not have seen are laid over it, the batch over all', async (t) => {
  const cases: [string, number, Laid[], Overlay, string | null][] = [
    ['nothing laid', 5, [], new Overlay(), 'read'],
    ['an older commit is in the read', 5, [{ seq: 5, overlay: set('five') }], new Overlay(), 'read'],
    ['a newer one is not', 5, [{ seq: 6, overlay: set('six') }], new Overlay(), 'six'],
    [
      'the newest wins',
      5,
      [
        { seq: 6, overlay: set('six') },
        { seq: 7, overlay: set('seven') },
      ],
      new Overlay(),
      'seven',
    ],
    ['the batch wins over all', 5, [{ seq: 6, overlay: set('six') }], set('staged'), 'staged'],
    [
      'it may have gone',
      5,
      [{ seq: 6, overlay: overlayOf({ key: 'h', write: 'HDEL', args: ['a'] }) }],
      new Overlay(),
      null,
    ],
  ]
  for (const [name, seq, laid, staged, expected] of cases) {
    const rounds = new FactRounds()
    rounds.add(seq, [FIELD], [['read']])
    t.equal(new FactView(rounds, laid, staged).field('h', 'a'), expected, name)
  }
})

test('facts: rounds of one batch were read at different times', async (t) => {
  const rounds = new FactRounds()
  rounds.add(5, [FIELD], [['old']])
  rounds.add(6, [SCORE, { ...FIELD, fields: ['b'] }], [3, ['new']])
  const laid = [
    {
      seq: 6,
      overlay: overlayOf(
        { key: 'h', write: 'HSET', args: ['a', 'six', 'b', 'six'] },
        { key: 'z', write: 'ZREM', args: ['m'] },
      ),
    },
  ]
  const view = new FactView(rounds, laid, new Overlay())
  t.equal(view.field('h', 'a'), 'six')
  t.equal(view.field('h', 'b'), 'new')
  t.equal(view.score('z', 'm'), 3)
  t.equal(rounds.oldestSeq, 5)
})

test('facts: what was not fetched is a fault, what was can be asked about', async (t) => {
  const rounds = new FactRounds()
  rounds.add(1, [FIELD, SCORE], [[null], null])
  const view = new FactView(rounds, [], new Overlay())
  t.equal(view.field('h', 'a'), null)
  t.equal(view.score('z', 'm'), null)
  t.throws(() => view.field('h', 'b'), { name: 'Fault' })
  t.throws(() => view.score('z', 'other'), { name: 'Fault' })
  t.throws(() => view.value('t'), { name: 'Fault' })
  t.same([view.has(FIELD), view.has({ ...FIELD, fields: ['a', 'b'] }), view.has(SCORE)], [true, false, true])
})

test('facts: every kind of read has the writes laid over it', async (t) => {
  const range: Fact & { read: 'range' } = { read: 'range', key: 'x', from: '-', to: '+', count: 10 }
  const sorted: Fact & { read: 'sorted' } = { read: 'sorted', key: 'z', min: 0, max: 9, count: 10 }
  const rounds = new FactRounds()
  const entry = { id: '1-0', fields: ['f', '1'] }
  rounds.add(
    1,
    [{ read: 'hash', key: 'h' }, range, sorted, { read: 'value', key: 't' }],
    [new Map([['a', '1']]), [entry], [['m', 1]], 'old'],
  )
  const overlay = overlayOf(
    { key: 'h', write: 'HSET', args: ['b', '2'] },
    { key: 'x', write: 'XADD', args: ['2-0', 'f', '2'] },
    { key: 'z', write: 'ZADD', args: ['5', 'n'] },
    { key: 't', write: 'SET', args: ['new', 'PXAT', '1'] },
  )
  const view = new FactView(rounds, [{ seq: 2, overlay }], new Overlay())
  t.same(
    [...view.hash('h')],
    [
      ['a', '1'],
      ['b', '2'],
    ],
  )
  t.same(
    view.range(range).map(({ id }) => id),
    ['1-0', '2-0'],
  )
  t.same(view.sorted(sorted), [
    ['m', 1],
    ['n', 5],
  ])
  t.equal(view.value('t'), 'new')
})
