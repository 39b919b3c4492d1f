/** remember - the same value again while it is asked for, and a bound on how many. */

import t from 'tap'
import { remember } from '../../src/actors/remember.ts'

t.test('remember: what is asked for again is the same value, what is not is made anew', async (t) => {
  const made: string[] = []
  const named = remember((id) => {
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
