/** Values that the owner of a shard has read or written need not be read again, and always equal the store's. */
import { test } from 'tap'
import type { Fact } from '../../../cluster/behaviour.ts'
import { FieldCache } from '../../../cluster/facts/field-cache.ts'
import { Overlay } from '../../../cluster/facts/overlay.ts'

const NOW_MS = 1_000
const fact = (...fields: string[]) => ({ read: 'fields', key: 'k', fields }) as const
const other = (key: string, ...fields: string[]) => ({ read: 'fields', key, fields }) as const

function cacheOf(left = 100): FieldCache {
  return new FieldCache({ left })
}

test('field-cache: what was read is known, absent fields too, and only whole facts', async (t) => {
  const cache = cacheOf()
  const hash: Fact = { read: 'hash', key: 'h' }
  cache.take([fact('a', 'b'), hash], [['1', null], new Map()])
  t.same([cache.has(fact('b', 'a')), cache.has(fact('a', 'c')), cache.has(other('h'))], [true, false, false])
  t.same([cache.field('k', 'a'), cache.field('k', 'b'), cache.field('k', 'c')], ['1', null, undefined])
})

test('field-cache: a confirmed commit changes what is known', async (t) => {
  const cache = cacheOf()
  cache.take([fact('a', 'b')], [['1', '2']])
  cache.note([{ key: 'k', write: 'HSET', args: ['a', '9', 'c', '3'] }])
  t.same([cache.field('k', 'a'), cache.field('k', 'b')], ['9', '2'])
  t.equal(cache.field('k', 'c'), undefined, 'nobody has asked for it')
  cache.note([{ key: 'k', write: 'HDEL', args: ['a', 'c'] }])
  t.same([cache.field('k', 'a'), cache.field('k', 'c')], [null, undefined])
  cache.note([
    { key: 'k', write: 'HSET', args: ['a', '1'] },
    { key: 'k', write: 'UNLINK', args: [] },
  ])
  t.same([cache.field('k', 'a'), cache.field('k', 'b')], [null, null])
})

test('field-cache: what a commit knows to be absent is known, unless it writes it', async (t) => {
  const cache = cacheOf()
  cache.note([{ key: 'k', write: 'HSET', args: ['b', '1'] }], [{ key: 'k', fields: ['a', 'b'] }])
  t.same([cache.field('k', 'a'), cache.field('k', 'b')], [null, '1'])
})

test('field-cache: bytes are known as the text that a read answers', async (t) => {
  const cache = cacheOf()
  cache.take([fact('a')], [['short']])
  cache.note([{ key: 'k', write: 'HSET', args: ['a', Buffer.from('long')] }])
  t.equal(cache.field('k', 'a'), 'long')
})

test('field-cache: a hash that was read whole is known in every field, and stays so', async (t) => {
  const budget = { left: 10 }
  const cache = new FieldCache(budget)
  cache.take([{ ...fact('a', 'b'), wholeMax: 9 }], [new Map([['a', '1']])])
  t.same([cache.has(fact('a', 'z')), cache.field('k', 'a'), cache.field('k', 'z')], [true, '1', null])
  t.equal(budget.left, 8, 'itself counts, and its field')
  cache.note([
    { key: 'k', write: 'HSET', args: ['c', '3', 'a', '2'] },
    { key: 'k', write: 'HDEL', args: ['a'] },
  ])
  t.same([cache.field('k', 'a'), cache.field('k', 'c'), cache.field('k', 'z')], [null, '3', null])
  t.equal(budget.left, 7)
  cache.note([{ key: 'k', write: 'UNLINK', args: [] }])
  t.same([cache.field('k', 'c'), cache.has(fact('y'))], [null, true])
  cache.take([fact('a')], [['4']])
  t.same([cache.field('k', 'a'), cache.field('k', 'z')], ['4', null])
  cache.clear()
  t.equal(budget.left, 10)
})

test('field-cache: the writes of a commit since a read was sent are laid over it', async (t) => {
  const since = new Overlay()
  since.note({ key: 'k', write: 'HSET', args: ['a', '2'] })
  since.note({ key: 'l', write: 'HDEL', args: ['a'] })
  const cache = cacheOf()
  const whole = new Map([['a', '1']])
  cache.take([fact('a', 'b'), { ...other('l', 'a'), wholeMax: 9 }, other('m', 'a')], [['1', '1'], whole, ['1']], since)
  t.same([cache.field('k', 'a'), cache.field('k', 'b'), cache.field('m', 'a')], ['2', '1', '1'])
  t.same([cache.field('l', 'a'), cache.field('l', 'b')], [null, null])
})

test('field-cache: what came first goes first, and not while a batch rests on it', async (t) => {
  const budget = { left: 2 }
  const cache = new FieldCache(budget)
  cache.take([fact('a', 'b'), other('l', 'c')], [['1', '2'], ['3']])
  t.same([budget.left, cache.field('k', 'a'), cache.field('l', 'c')], [-1, '1', '3'])
  cache.begin(NOW_MS)
  t.same([budget.left, cache.field('k', 'a'), cache.field('l', 'c')], [1, undefined, '3'])
  const idle = new FieldCache(budget)
  budget.left = -1
  idle.begin(NOW_MS)
  t.equal(budget.left, -1, 'one without anything to drop drops nothing')
})

test('field-cache: what has ended is forgotten when the next batch begins, and not before', async (t) => {
  const budget = { left: 10 }
  const cache = new FieldCache(budget)
  cache.take([fact('a', 'b'), { ...other('l', 'a'), wholeMax: 9 }], [['1', '2'], new Map([['a', '3']])])
  // biome-ignore format: a row
  cache.forget([{ key: 'k', fields: ['a', 'never'] }, { key: 'l', fields: ['a'] }, { key: 'none', fields: ['a'] }])
  t.same([cache.field('k', 'a'), budget.left], ['1', 6], 'a batch may rest on it')
  cache.begin(NOW_MS)
  t.same([cache.field('k', 'a'), cache.field('k', 'b'), budget.left], [undefined, '2', 7])
  t.equal(cache.field('l', 'a'), '3', 'of a hash that is known whole')
  cache.begin(NOW_MS)
  t.equal(budget.left, 7, 'once')
})

test('field-cache: an idle shard gives its room back', async (t) => {
  const budget = { left: 10 }
  const cache = new FieldCache(budget)
  cache.begin(NOW_MS)
  cache.take([fact('a', 'b')], [['1', '2']])
  cache.sweep(NOW_MS + 600_000)
  t.equal(budget.left, 8)
  cache.sweep(NOW_MS + 600_001)
  t.equal(budget.left, 10)
  t.equal(cache.has(fact('a')), false)
})
