/** complaint-threshold - how many complaints stop a stream, and over which time they are counted. */

import t from 'tap'
import { countInWindow, isOverComplaintThreshold, type StreamCounters } from '../../src/state/complaint-threshold.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const HOUR_MS = 3_600_000

const CASES: [name: string, deliveries: number, complaints: number, stops: boolean][] = [
  ['nobody complains', 5000, 0, false],
  ['few deliveries, all complained about', 999, 999, false],
  ['one of a thousand is not more than a thousandth', 1000, 1, false],
  ['two of a thousand are', 1000, 2, true],
  ['nine of ten thousand', 10_000, 9, false],
  ['ten of ten thousand', 10_000, 10, false],
  ['eleven of ten thousand', 10_000, 11, true],
]
for (const [name, deliveries, complaints, stops] of CASES)
  t.test(`complaint-threshold: ${name} [stream.brake]`, async (t) => {
    const hour = Math.floor(NOW_MS / HOUR_MS)
    t.equal(isOverComplaintThreshold({ hours: [[hour, deliveries, complaints]] }, NOW_MS), stops)
    // The same spread over the window.
    const spread: [number, number, number][] = [
      [hour - 24, deliveries - 1, 0],
      [hour - 2, 1, complaints],
    ]
    t.equal(isOverComplaintThreshold({ hours: spread }, NOW_MS), stops)
  })

t.test('complaint-threshold: deliveries 25 hours old no longer count, and are not kept [stream.brake]', async (t) => {
  let counters: StreamCounters | null = null
  for (let index = 0; index < 40; index += 1) {
    counters = countInWindow(counters, 'delivery', NOW_MS + index * HOUR_MS)
    counters = countInWindow(counters, 'complaint', NOW_MS + index * HOUR_MS)
  }
  const hours: readonly (readonly number[])[] = counters?.hours ?? []
  t.equal(hours.length, 25)
  t.same(
    hours.map(([, ...counts]) => counts),
    Array.from({ length: 25 }, () => [1, 1]),
  )
  const old = { hours: [[Math.floor(NOW_MS / HOUR_MS), 2000, 100]] as const }
  t.ok(isOverComplaintThreshold(old, NOW_MS + 24 * HOUR_MS - 1))
  t.ok(
    isOverComplaintThreshold(old, NOW_MS + 24 * HOUR_MS + HOUR_MS / 2),
    'the end of that hour is less than 24 hours old',
  )
  t.notOk(isOverComplaintThreshold(old, NOW_MS + 25 * HOUR_MS))
})

t.test('complaint-threshold: a clock that is set back continues the count', async (t) => {
  const before = countInWindow(null, 'delivery', NOW_MS)
  t.same(countInWindow(before, 'complaint', NOW_MS - 5 * HOUR_MS), { hours: [[Math.floor(NOW_MS / HOUR_MS), 1, 1]] })
})
