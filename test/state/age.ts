/** age - 13 months and 30 days, to the millisecond, through short months. */

import t from 'tap'
import { attachmentExpiresAtMs, contentExpiresAtMs, cutoffMs, isPastAge, personCutoffMs } from '../../src/state/age.ts'
import { computeMonth, DAY_MS, HOUR_MS, monthStartMs } from '../../src/state/calendar.ts'

const NOON = 12 * HOUR_MS

const CUTOFFS: readonly (readonly [now: number, cutoff: number])[] = [
  [Date.UTC(2027, 0, 15) + NOON, Date.UTC(2025, 11, 15) + NOON],
  [Date.UTC(2027, 1, 1), Date.UTC(2026, 0, 1)],
  [Date.UTC(2027, 2, 28) + NOON, Date.UTC(2026, 1, 28) + NOON],
  [Date.UTC(2027, 2, 29), Date.UTC(2026, 2, 1)],
  [Date.UTC(2027, 2, 31) + NOON, Date.UTC(2026, 2, 1)],
  [Date.UTC(2027, 3, 1), Date.UTC(2026, 2, 1)],
  [Date.UTC(2029, 2, 29) + NOON, Date.UTC(2028, 1, 29) + NOON],
]

t.test('age: live mail is gone 13 months after', async (t) => {
  for (const [now, cutoff] of CUTOFFS) {
    t.equal(cutoffMs(now, false), cutoff, new Date(now).toISOString())
    t.notOk(isPastAge(cutoff, { nowMs: now, test: false }))
    t.ok(isPastAge(cutoff - 1, { nowMs: now, test: false }))
  }
})

t.test('age: the cutoff never goes back', async (t) => {
  let before = 0
  for (let ms = Date.UTC(2026, 0, 1); ms < Date.UTC(2029, 0, 1); ms += 7 * HOUR_MS) {
    if (cutoffMs(ms, false) < before) t.fail(`back at ${ms}`)
    before = cutoffMs(ms, false)
  }
  t.ok(before > 0)
})

t.test('age: test mail is gone after 30 days, content after 30 and 7', async (t) => {
  const nowMs = Date.UTC(2026, 5, 15)
  t.equal(cutoffMs(nowMs, true), nowMs - 30 * DAY_MS)
  t.equal(contentExpiresAtMs(nowMs, false), nowMs + 30 * DAY_MS)
  t.equal(contentExpiresAtMs(nowMs, true), nowMs + 7 * DAY_MS)
  const live = { sendAtMs: 0, test: false }
  t.equal(attachmentExpiresAtMs(nowMs, live), nowMs + 72 * HOUR_MS)
  t.equal(attachmentExpiresAtMs(nowMs, { ...live, sendAtMs: nowMs + DAY_MS }), nowMs + 96 * HOUR_MS)
  t.equal(attachmentExpiresAtMs(nowMs, { ...live, test: true }), nowMs + 7 * DAY_MS, 'as long as the text')
})

t.test('age: a person outlives every message of the month it was last named in', async (t) => {
  for (const months of [1, 2, 5, 13])
    for (let nowMs = Date.UTC(2026, 0, 1); nowMs < Date.UTC(2029, 0, 1); nowMs += 7 * HOUR_MS) {
      const lastMs = monthStartMs(computeMonth(personCutoffMs(nowMs, months))) - 1
      if (!isPastAge(lastMs, { nowMs, test: false, months })) t.fail(`${months} months at ${nowMs}`)
      if (lastMs > nowMs - 90 * DAY_MS) t.fail('a link may still work')
    }
  t.equal(personCutoffMs(Date.UTC(2027, 2, 1), 13), Date.UTC(2026, 1, 1), '14 months after January 2026')
})

t.test('age: a log that is kept for fewer months stays 31 days at least [retention.settings]', async (t) => {
  const nowMs = Date.UTC(2027, 2, 15) + NOON
  t.equal(cutoffMs(nowMs, false, 1), nowMs - 31 * DAY_MS, 'February is short')
  t.equal(cutoffMs(Date.UTC(2027, 7, 15), false, 1), Date.UTC(2027, 6, 15))
  t.equal(cutoffMs(nowMs, false, 3), Date.UTC(2026, 11, 15) + NOON)
  t.equal(cutoffMs(nowMs, false, 12), Date.UTC(2026, 2, 15) + NOON)
  t.equal(cutoffMs(nowMs, true, 1), nowMs - 30 * DAY_MS)
  let before = 0
  for (let ms = Date.UTC(2026, 0, 1); ms < Date.UTC(2029, 0, 1); ms += 7 * HOUR_MS) {
    if (cutoffMs(ms, false, 1) < before) t.fail(`back at ${ms}`)
    before = cutoffMs(ms, false, 1)
  }
  t.ok(before > 0)
})
