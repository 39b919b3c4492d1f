/** instant - which texts name a moment. */

import t from 'tap'
import { isInstant } from '../../src/views/instant.ts'

const MOMENTS = [
  '2026-01-31T23:59:59Z',
  '2026-01-31T23:59:59.123Z',
  '2026-01-31T23:59:59.123456789Z',
  '2026-01-31T23:59:59+02:00',
  '2026-01-31T00:00:00-23:59',
  '2024-02-29T00:00:00Z',
  '2000-02-29T00:00:00Z',
  '0000-01-01T00:00:00Z',
  '9999-12-31T23:59:59Z',
]

/** Each with its fault. */
const NONE: readonly (readonly [text: string, why: string])[] = [
  ['', 'empty'],
  ['2026-01-31', 'no time'],
  ['2026-01-31T23:59:59', 'no offset'],
  ['2026-01-31T23:59Z', 'no seconds'],
  ['2026-01-31 23:59:59Z', 'a blank'],
  ['x2026-01-31T23:59:59Z', 'more before it'],
  ['2026-01-31T23:59:59Z\n', 'more behind it'],
  ['+002026-01-31T23:59:59Z', 'a year of six digits'],
  ['2026-01-31T23:59:59.1234567890Z', 'a fraction of ten digits'],
  ['2026-00-10T00:00:00Z', 'month 0'],
  ['2026-13-01T00:00:00Z', 'month 13'],
  ['2026-01-00T00:00:00Z', 'day 0'],
  ['2026-01-32T00:00:00Z', 'day 32'],
  ['2026-02-29T00:00:00Z', 'no leap year'],
  ['2026-02-30T00:00:00Z', 'a day that February never has'],
  ['2026-02-31T12:00:00+05:00', 'a day that February never has'],
  ['1900-02-29T00:00:00Z', 'no leap year'],
  ['2100-02-29T00:00:00Z', 'no leap year'],
  ['2026-04-31T00:00:00Z', 'a day that April never has'],
  ['2026-06-31T00:00:00Z', 'a day that June never has'],
  ['2026-09-31T00:00:00Z', 'a day that September never has'],
  ['2026-11-31T00:00:00Z', 'a day that November never has'],
  ['2026-02-28T24:00:00Z', 'hour 24'],
  ['2026-02-28T24:00:00.000Z', 'hour 24'],
  ['2026-02-28T25:00:00Z', 'hour 25'],
  ['2026-02-28T23:60:00Z', 'minute 60'],
  ['2026-06-30T23:59:60Z', 'second 60'],
  ['2026-02-28T00:00:00+24:00', 'an offset of a day'],
  ['2026-02-28T00:00:00+12:60', 'an offset of 60 minutes'],
]

t.test('instant: moments [time.instant]', async (t) => {
  for (const text of MOMENTS) t.ok(isInstant(text), text)
})

t.test('instant: invalid ones [time.instant]', async (t) => {
  for (const [text, why] of NONE) t.notOk(isInstant(text), `${text}: ${why}`)
})
