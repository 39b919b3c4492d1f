/** memoize - a cached value while it is used, and a bound on their number. */

import t from 'tap'
import { memoize, memoizeShortly } from '../../src/state/memoize.ts'

t.test('memoize: a used value is the same one, an unused one is created again', async (t) => {
  const made: string[] = []
  const named = memoize((id) => {
    made.push(id)
    return { id }
  })
  const first = named('a')
  t.equal(named('a'), first)
  for (let n = 0; n < 2_500; n += 1) named(`n${n}`)
  t.equal(named('a'), first, 'one generation later it is still there, and young again')
  for (let n = 2_500; n < 4_000; n += 1) named(`n${n}`)
  t.equal(named('a'), first)
  t.equal(made.filter((id) => id === 'a').length, 1)
  for (let n = 0; n < 10_000; n += 1) named(`m${n}`)
  t.not(named('a'), first)
  t.same(named('a'), { id: 'a' })
})

t.test('memoize: briefly, the same value until another one takes its place, and always the right one', async (t) => {
  let made = 0
  const named = memoizeShortly((id) => {
    made += 1
    return { id }
  })
  t.equal(named('a.0.1'), named('a.0.1'))
  t.equal(made, 1)
  for (const id of ['', 'x', 'a'.repeat(100), `${'a'.repeat(99)}b`]) t.same([named(id), named(id)], [{ id }, { id }])
  const ids = Array.from({ length: 5_000 }, (_, n) => `message${n}.0.1`)
  for (const id of ids) t.equal(named(id).id, id)
  made = 0
  const recent = ids.slice(-64)
  for (const id of recent) t.equal(named(id).id, id)
  t.ok(made < 16, `${made} of the last 64 were made anew`)
})
