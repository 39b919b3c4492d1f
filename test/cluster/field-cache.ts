/** What the owner of a shard has read or written need not be read again, and is never another value than the store's. */
import { test } from 'tap'
import type { Fact } from '../../cluster/behaviour.ts'
import { FieldCache } from '../../cluster/field-cache.ts'

const NOW_MS = 1_000
const fact = (...fields: string[]): Fact => ({ read: 'fields', key: 'k', fields })

function cacheOf(left = 100): FieldCache {
  return new FieldCache({ left })
}

test('field-cache: what was read is known, absent fields too, and only whole facts', async (t) => {
  const cache = cacheOf()
  cache.take([fact('a', 'b')], [['1', null]])
  t.match(cache.split([fact('b', 'a')], NOW_MS), { known: [fact('b', 'a')], values: [[null, '1']], unknown: [] })
  t.match(cache.split([fact('a', 'c')], NOW_MS), { known: [], unknown: [fact('a', 'c')] })
  const other: Fact = { read: 'hash', key: 'k' }
  t.match(cache.split([other], NOW_MS), { known: [], unknown: [other] })
})

test('field-cache: a confirmed commit changes what is known', async (t) => {
  const cache = cacheOf()
  cache.take([fact('a', 'b')], [['1', '2']])
  cache.note([{ key: 'k', write: 'HSET', args: ['a', '9', 'c', '3'] }])
  t.match(cache.split([fact('a', 'b', 'c')], NOW_MS), { values: [['9', '2', '3']] })
  cache.note([{ key: 'k', write: 'HDEL', args: ['a'] }])
  t.match(cache.split([fact('a')], NOW_MS), { known: [] }, 'read again, not guessed')
  cache.note([{ key: 'k', write: 'UNLINK', args: [] }])
  t.match(cache.split([fact('b')], NOW_MS), { known: [] })
})

test('field-cache: what a commit knows to be absent is known, unless it writes it', async (t) => {
  const cache = cacheOf()
  cache.note([{ key: 'k', write: 'HSET', args: ['b', '1'] }], [{ key: 'k', fields: ['a', 'b'] }])
  t.match(cache.split([fact('a', 'b')], NOW_MS), { values: [[null, '1']] })
})

test('field-cache: long texts and bytes are not kept, and an old short value does not stay for them', async (t) => {
  const cache = cacheOf()
  cache.note([{ key: 'k', write: 'HSET', args: ['a', 'short', 'b', 'short'] }])
  cache.note([{ key: 'k', write: 'HSET', args: ['a', 'x'.repeat(97), 'b', new Uint8Array([1])] }])
  t.match(cache.split([fact('a')], NOW_MS), { known: [] })
  t.match(cache.split([fact('b')], NOW_MS), { known: [] })
})

test('field-cache: what came first goes first when the process holds enough', async (t) => {
  const budget = { left: 2 }
  const cache = new FieldCache(budget)
  cache.take([fact('a', 'b', 'c')], [['1', '2', '3']])
  t.equal(budget.left, 0)
  t.match(cache.split([fact('a')], NOW_MS), { known: [] })
  t.match(cache.split([fact('b', 'c')], NOW_MS), { values: [['2', '3']] })
  const starved = new FieldCache(budget)
  starved.take([fact('a')], [['1']])
  t.match(starved.split([fact('a')], NOW_MS), { known: [] }, 'one without anything to drop takes nothing')
})

test('field-cache: an idle shard gives its room back', async (t) => {
  const budget = { left: 10 }
  const cache = new FieldCache(budget)
  cache.take([fact('a', 'b')], [['1', '2']])
  cache.split([fact('a')], NOW_MS)
  cache.sweep(NOW_MS + 600_000)
  t.equal(budget.left, 8)
  cache.sweep(NOW_MS + 600_001)
  t.equal(budget.left, 10)
  t.match(cache.split([fact('a')], NOW_MS), { known: [] })
})
