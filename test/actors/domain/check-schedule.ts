/** check-schedule - how long after a look the next one comes. */

import t from 'tap'
import {
  checkTimerItem,
  domainOfTimer,
  firstCheckDue,
  nextCheckDue,
  type Scheduled,
} from '../../../src/actors/domain/check-schedule.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const DOMAIN: Scheduled = {
  domainId: 'd1',
  verified: false,
  failingSinceMs: null,
  unverifiedSinceMs: NOW_MS,
  pending: null,
}
const PENDING = { selector: 'sw2', publicKey: 'p', orderedAtMs: NOW_MS }
const VERIFIED = { ...DOMAIN, verified: true }

/** state, its age at the look, the wait. */
const CASES: readonly (readonly [string, Scheduled, number, number])[] = [
  ['unverified', DOMAIN, 0, 5 * MINUTE_MS],
  ['unverified', DOMAIN, HOUR_MS - 1, 5 * MINUTE_MS],
  ['unverified', DOMAIN, HOUR_MS, HOUR_MS],
  ['unverified', DOMAIN, HOUR_MS + 3 * DAY_MS - 1, HOUR_MS],
  ['unverified', DOMAIN, HOUR_MS + 3 * DAY_MS, DAY_MS],
  ['unverified', DOMAIN, 300 * DAY_MS, DAY_MS],
  ['verified', VERIFIED, 0, DAY_MS],
  ['verified', VERIFIED, 300 * DAY_MS, DAY_MS],
  ['verified, another key ordered', { ...VERIFIED, pending: PENDING }, 0, 5 * MINUTE_MS],
  ['verified, another key ordered', { ...VERIFIED, pending: PENDING }, 2 * HOUR_MS, HOUR_MS],
  ['verified, another key ordered', { ...VERIFIED, pending: PENDING }, 9 * DAY_MS, DAY_MS],
  ['in warning', { ...VERIFIED, failingSinceMs: NOW_MS }, 0, HOUR_MS],
  ['in warning', { ...VERIFIED, failingSinceMs: NOW_MS }, 23 * HOUR_MS, HOUR_MS],
]

t.test('check-schedule: the first check runs within a minute [domain.schedule]', async (t) => {
  const due = firstCheckDue('d1', NOW_MS)
  t.match(due, { lane: 'timers', item: 'check:d1' })
  t.ok(due.atMs > NOW_MS && due.atMs <= NOW_MS + MINUTE_MS)
  t.equal(domainOfTimer(checkTimerItem('d1')), 'd1')
})

t.test('check-schedule: closely, hourly, daily [domain.schedule]', async (t) => {
  for (const [state, domain, ageMs, waitMs] of CASES) {
    const atMs = NOW_MS + ageMs
    t.same(
      nextCheckDue(domain, atMs),
      { lane: 'timers', item: 'check:d1', atMs: atMs + waitMs },
      `${state}, ${ageMs} ms`,
    )
  }
})
