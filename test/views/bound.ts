/** bound - the begin and end of a walk, at the limits of entry ids in Redis. */
import t from 'tap'
import { entryIdOf } from '../../cluster/id.ts'
import { lowerBound, msOfBound, upperBound } from '../../src/views/bound.ts'

const ID = '01a1f8d8-8300-7000-8000-0e7faee555a7'
const MS = 0x01a1f8d88300
const FIRST_ID = '00000000-0000-7000-8000-000000000000'

/** after, toMs, bound, its milliseconds */
const UPPER: readonly [string | null, number | null, string, number][] = [
  [null, null, '+', Number.POSITIVE_INFINITY],
  [null, 5, '(5-0', 5],
  [null, 0, '0-0', 0],
  [null, -1, '0-0', 0],
  [ID, null, `(${entryIdOf(ID)}`, MS],
  [ID, MS, `(${MS}-0`, MS],
  [ID, MS + 1, `(${entryIdOf(ID)}`, MS],
  [FIRST_ID, null, '0-0', 0],
  [FIRST_ID, 5, '0-0', 0],
]

t.test(
  'bound: from the object or the instant, whichever is older; below the smallest id there is nothing [list.page]',
  async (t) => {
    for (const [after, toMs, bound, ms] of UPPER) {
      t.equal(upperBound({ after, toMs }), bound, `${after} ${toMs}`)
      t.equal(msOfBound(bound), ms, bound)
    }
  },
)

t.test('bound: a time before 1970 is the beginning [list.page]', async (t) => {
  t.equal(lowerBound(null), '-')
  t.equal(lowerBound(-1), '0')
  t.equal(lowerBound(7), '7')
})
