/**
 * Tests of cluster/overlay.ts: laid over a read from before a commit, or from after it, its writes give the read after.
 */
import { test } from 'tap'
import type { Fact, FactValue, Op } from '../../../cluster/behaviour.ts'
import { Overlay } from '../../../cluster/facts/overlay.ts'
import { sortableEntryId } from '../../../cluster/id.ts'
import { type Chance, makeChance } from '../../simulation/prng.ts'
import { SimStore } from '../../simulation/sim-store.ts'

const KEYS = {
  hash: '{s000}:h',
  stream: '{s000}:x',
  sorted: '{s000}:z',
  plain: '{s000}:p',
  bounds: '{s000}:b',
  text: '{s000}:t',
}
const NAMES = ['a', 'b', 'c', 'd'] as const
const RANGE = { from: '3-0', to: '60-0', count: 1_000 }
const SORTED = { min: 2, max: 7, count: 1_000 }
const WHOLE = { min: 0, max: 10, count: 1_000 }
const ROUNDS = 400

const READS: readonly Fact[] = [
  { read: 'hash', key: KEYS.hash },
  { read: 'fields', key: KEYS.hash, fields: NAMES },
  { read: 'range', key: KEYS.stream, ...RANGE },
  { read: 'last', key: KEYS.stream },
  { read: 'sorted', key: KEYS.sorted, ...WHOLE },
  { read: 'sorted', key: KEYS.bounds, ...WHOLE },
  { read: 'sorted', key: KEYS.plain, ...SORTED },
  { read: 'sorted', key: KEYS.sorted, ...WHOLE, newest: true },
  { read: 'sorted', key: KEYS.plain, ...SORTED, newest: true },
  { read: 'score', key: KEYS.sorted, member: 'a' },
  { read: 'score', key: KEYS.bounds, member: 'b' },
  { read: 'value', key: KEYS.text },
]

/** A random write; stream ids rise with `n`. */
function randomOp(chance: Chance, n: number): Op {
  const name = chance.pick(NAMES)
  const score = String(chance.below(10))
  const ops: Op[] = [
    { key: KEYS.hash, write: 'HSET', args: [name, String(n), chance.pick(NAMES), 'x'] },
    { key: KEYS.hash, write: 'HDEL', args: [name] },
    { key: KEYS.stream, write: 'XADD', args: [`${n}-0`, 'f', String(n)] },
    { key: KEYS.stream, write: 'XADD', args: [`${n}-0`, 'f', String(n)] },
    { key: KEYS.stream, write: 'XTRIM', args: ['MINID', `${Math.max(1, n - chance.below(8))}-0`] },
    { key: KEYS.sorted, write: 'ZADD', args: [...(chance.hit(0.5) ? ['XX'] : []), score, name] },
    { key: KEYS.sorted, write: 'ZREM', args: [name] },
    { key: KEYS.bounds, write: 'ZADD', args: [...(chance.hit(0.7) ? ['LT'] : []), score, name] },
    { key: KEYS.bounds, write: 'ZREM', args: [name] },
    { key: KEYS.plain, write: 'ZADD', args: [score, name] },
    { key: KEYS.text, write: 'SET', args: [String(n), 'PXAT', '9999999999999'] },
  ]
  if (chance.hit(0.06)) return { key: chance.pick(Object.values(KEYS)), write: 'UNLINK', args: [] }
  return chance.pick(ops)
}

/** The answers to READS under the overlay. */
function laidOver(overlay: Overlay, values: readonly FactValue[]): unknown[] {
  return READS.map((fact, place) => laidOne(overlay, fact, values[place] as never))
}

function laidOne(overlay: Overlay, fact: Fact, below: never): unknown {
  switch (fact.read) {
    case 'hash':
      return overlay.hash(fact.key, below)
    case 'fields':
      return fact.fields.map((field, at) => {
        const written = overlay.field(fact.key, field)
        return written === undefined ? ((below as string[])[at] ?? null) : written
      })
    case 'range':
      return overlay.range(
        fact.key,
        { ...RANGE, from: sortableEntryId(fact.from), to: sortableEntryId(fact.to) },
        below,
      )
    case 'last':
      return overlay.last(fact.key, below)
    case 'sorted':
      return overlay.sorted(fact.key, fact, below)
    case 'score':
      return overlay.score(fact.key, fact.member, below)
    case 'value':
      return overlay.value(fact.key, below)
  }
}

test('overlay: over a read from before and from after, it gives the one after', async (t) => {
  const chance = makeChance(11)
  const store = new SimStore()
  const token = '1:t'
  await store.acquire({ shard: 0, sawToken: '', newToken: token, worker: 'w' })
  const base = {
    shard: 0,
    token,
    nowMs: store.nowMs,
    deadlineMs: 0,
    lid: '',
    firstEntryId: '',
    cursor: '',
    outcomesCursor: '',
    frees: false,
    note: '',
  }
  let n = 1
  let wrong = 0
  for (let seq = 0; seq < ROUNDS; seq += 1) {
    const ops = Array.from({ length: 1 + chance.below(6) }, () => {
      n += 1
      return randomOp(chance, n)
    })
    if (seq % 20 === 0) for (const key of Object.values(KEYS)) ops.unshift({ key, write: 'UNLINK', args: [] })
    const before = (await store.read(0, READS))!
    const verdict = await store.commit({ ...base, seq, commitId: `c${seq}`, ops })
    if (!t.equal(verdict.kind, 'ok', `round ${seq}: ${JSON.stringify(verdict)} ${JSON.stringify(ops)}`)) return
    const after = (await store.read(0, READS))!
    const overlay = new Overlay()
    for (const op of ops) overlay.note(op)
    for (const [name, values] of [
      ['before', before],
      ['after', after],
    ] as const)
      if (!t.same(laidOver(overlay, values), after, `round ${seq}, over the read ${name} ${JSON.stringify(ops)}`))
        wrong += 1
    if (wrong > 0) return
  }
})

test('overlay: entries beyond the end of a bounded read are not guessed', async (t) => {
  const overlay = new Overlay()
  overlay.note({ key: 'x', write: 'XADD', args: ['9-0', 'f', '9'] })
  const below = [1, 2].map((n) => ({ id: `${n}-0`, fields: ['f', String(n)] }))
  const bounds = { from: '', to: '~' }
  t.same(overlay.range('x', { ...bounds, count: 2 }, below), below, 'more may lie between')
  t.equal(overlay.range('x', { ...bounds, count: 3 }, below).length, 3)
  overlay.note({ key: 'z', write: 'ZREM', args: ['a'] })
  overlay.note({ key: 'z', write: 'ZADD', args: ['9', 'late'] })
  overlay.note({ key: 'z', write: 'ZADD', args: ['1', 'early'] })
  const scores = [
    ['a', 2],
    ['b', 3],
  ] as const
  t.same(overlay.sorted('z', { min: 0, max: 10, count: 2 }, scores), [
    ['early', 1],
    ['b', 3],
  ])
  t.same(overlay.sorted('z', { min: 0, max: 10, count: 2, newest: true }, [...scores].reverse()), [
    ['late', 9],
    ['b', 3],
  ])
  t.same(overlay.sorted('z', { min: 0, max: 10, count: 5 }, scores), [
    ['early', 1],
    ['b', 3],
    ['late', 9],
  ])
})

test('overlay: a key that no write touches is as it was read', async (t) => {
  const overlay = new Overlay()
  t.equal(overlay.field('h', 'a'), undefined)
  t.equal(overlay.score('z', 'a', 4), 4)
  t.equal(overlay.value('t', 'text'), 'text')
  t.same(overlay.last('x', []), [])
})
