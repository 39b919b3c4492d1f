/** quota - periods that roll over, clocks that go back, and which limit is named. */

import t from 'tap'
import { firstRefusal, type Limit, type Period, periodOf, resetsAtMs, take, used } from '../../src/state/quota.ts'

const NOW_MS = Date.UTC(2026, 10, 30, 23, 59, 59, 999)

t.test('quota: periods are UTC minutes and months', async (t) => {
  t.equal(periodOf('minute', NOW_MS), Math.floor(NOW_MS / 60_000))
  t.equal(periodOf('month', NOW_MS), 2026 * 12 + 10)
  t.equal(periodOf('month', NOW_MS + 1), 2026 * 12 + 11)
  t.equal(resetsAtMs('minute', NOW_MS), NOW_MS + 1)
  t.equal(resetsAtMs('month', NOW_MS), NOW_MS + 1)
  t.equal(resetsAtMs('month', NOW_MS + 1), Date.UTC(2027, 0, 1))
})

/** Counts of the periods of a walk. Each step adds one and returns the count of its period. */
const WALKS: readonly { name: string; walk: readonly number[]; counts: readonly number[]; packed: Period }[] = [
  { name: 'within a period', walk: [5, 5, 5], counts: [1, 2, 3], packed: [5, 3] },
  { name: 'to the next', walk: [5, 5, 6, 6], counts: [1, 2, 1, 2], packed: [6, 2, 2] },
  { name: 'over a gap', walk: [5, 9], counts: [1, 1], packed: [9, 1, 1, 4] },
  { name: 'one back, and forth', walk: [5, 6, 5, 6, 5], counts: [1, 1, 2, 2, 3], packed: [6, 2, 3] },
  { name: 'far ahead, and back', walk: [5, 900, 5, 5, 900], counts: [1, 1, 2, 3, 2], packed: [900, 2, 3, 895] },
  { name: 'on below a far period', walk: [900, 5, 5, 6, 6], counts: [1, 1, 2, 1, 2], packed: [900, 1, 2, 894] },
]

for (const { name, walk, counts, packed } of WALKS) {
  t.test(`quota: a clock that walks ${name} neither resets nor freezes`, async (t) => {
    let counter: Period | null = null
    const seen = walk.map((now) => {
      counter = take(counter, now, 1)
      return used(counter, now)
    })
    t.same(seen, counts)
    t.same(counter, packed)
  })
}

t.test('quota: a counter reports nothing of periods that it no longer stores', async (t) => {
  t.equal(used(null, 5), 0)
  t.equal(used(undefined, 5), 0)
  t.equal(used([5, 3], 6), 0)
  t.equal(used([5, 3], 4), 0)
  t.equal(used([9, 3, 2, 4], 8), 0)
  t.equal(used([9, 3, 2, 4], 5), 2)
})

t.test('quota: the exact limit passes, one more does not', async (t) => {
  const limits = [makeLimit({ limit: 300, used: 250 })]
  t.equal(firstRefusal(limits, 50), null)
  t.equal(firstRefusal(limits, 51), limits[0])
  t.equal(firstRefusal([], 51), null)
})

t.test('quota: the longest of several is named, the server before the account', async (t) => {
  const full = { limit: 1, used: 1 }
  const accountMinute = makeLimit({ ...full, scope: 'account' })
  const serverMinute = makeLimit({ ...full, scope: 'server' })
  const accountMonth = makeLimit({ ...full, scope: 'account', period: 'month', resetsAtMs: 9000 })
  const serverMonth = makeLimit({ ...full, scope: 'server', period: 'month', resetsAtMs: 9000 })
  t.equal(firstRefusal([accountMinute, accountMonth, serverMinute, serverMonth], 1), serverMonth)
  t.equal(firstRefusal([serverMonth, accountMonth, serverMinute, accountMinute], 1), serverMonth)
  t.equal(firstRefusal([accountMinute, accountMonth, serverMinute], 1), accountMonth)
  t.equal(firstRefusal([accountMinute, serverMinute], 1), serverMinute)
  t.equal(firstRefusal([serverMinute, accountMinute], 1), serverMinute)
})

function makeLimit(changes: Partial<Limit>): Limit {
  return { scope: 'account', period: 'minute', limit: 0, used: 0, resetsAtMs: 1000, ...changes }
}
