/** calendar - compared with the platform's own, and names there and back. */

import t from 'tap'
import {
  computeCivilDate,
  computeMonth,
  DAY_MS,
  dayName,
  endOfNameMs,
  monthName,
  monthOfName,
  monthStartMs,
  msOfCivil,
} from '../../src/state/calendar.ts'

const FIRST_MS = Date.UTC(1999, 0, 1)
const LAST_MS = Date.UTC(2105, 0, 1)

t.test('calendar: every day of a century is the platform’s, at its first and last millisecond', async (t) => {
  const wrong: string[] = []
  for (let ms = FIRST_MS; ms < LAST_MS; ms += DAY_MS) {
    const iso = new Date(ms).toISOString().slice(0, 10)
    for (const at of [ms, ms + DAY_MS - 1]) {
      const { year, month, day } = computeCivilDate(at)
      const civil = [year, month, day].map((part) => String(part).padStart(2, '0')).join('-')
      if (civil !== iso || dayName(at) !== iso.replaceAll('-', '')) wrong.push(iso)
    }
    if (msOfCivil(computeCivilDate(ms)) !== ms) wrong.push(`${iso} back`)
  }
  t.same(wrong, [])
})

t.test('calendar: months begin, end and follow each other', async (t) => {
  const december = Date.UTC(2026, 11, 31, 23, 59, 59, 999)
  t.equal(computeMonth(december + 1), computeMonth(december) + 1)
  t.equal(monthStartMs(computeMonth(december) + 1), december + 1)
  t.equal(monthName(december), '202612')
  t.equal(monthOfName('202612'), computeMonth(december))
  t.equal(endOfNameMs('202612'), december + 1)
  t.equal(endOfNameMs('20261231'), december + 1)
  t.equal(endOfNameMs('20280228'), Date.UTC(2028, 1, 29))
})
