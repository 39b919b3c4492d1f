/** hash-fraction - the same for the same text, and evenly distributed. */

import t from 'tap'
import { hashFraction } from '../../src/state/hash-fraction.ts'

t.test('hash-fraction: a text has one number, from 0 to below 1', async (t) => {
  t.equal(hashFraction('a.b#1'), hashFraction('a.b#1'))
  t.not(hashFraction('a.b#1'), hashFraction('a.b#2'))
  t.ok(hashFraction('') >= 0 && hashFraction('') < 1)
})

t.test('hash-fraction: texts that differ in their last digit fall into every tenth', async (t) => {
  const tenths = new Array<number>(10).fill(0)
  for (let index = 0; index < 1000; index += 1) tenths[Math.floor(hashFraction(`item#${index}`) * 10)]! += 1
  t.ok(
    tenths.every((count) => count > 60 && count < 140),
    tenths.join(' '),
  )
})
