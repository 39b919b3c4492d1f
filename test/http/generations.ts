/** generations - used entries stay, unused ones are dropped, and there is a bound. */

import t from 'tap'
import { Generations } from '../../src/http/generations.ts'

t.test('generations: used entries stay, unused ones are dropped', async (t) => {
  const known = new Generations<number>(100)
  t.ok(known.isEmpty)
  known.set('used', -1)
  known.set('unused', -2)
  for (let n = 0; n < 1_000; n += 1) {
    known.set(`n${n}`, n)
    t.equal(known.get('used'), -1)
  }
  t.equal(known.get('unused'), undefined)
  const left = Array.from({ length: 1_000 }, (_, n) => known.get(`n${n}`)).filter((value) => value !== undefined)
  t.ok(left.length > 90 && left.length <= 200, `${left.length} of the last ones`)
})

t.test('generations: removed or cleared it is not known, young or old', async (t) => {
  const known = new Generations<number>(2)
  for (const [at, id] of ['a', 'b', 'c', 'd'].entries()) known.set(id, at)
  for (const id of ['b', 'd']) {
    known.delete(id)
    t.equal(known.get(id), undefined)
  }
  t.equal(known.get('a'), 0)
  known.clear()
  t.same([known.get('a'), known.get('c'), known.isEmpty], [undefined, undefined, true])
})
