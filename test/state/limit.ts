/** limit - the present limits of a server and of an account. */

import t from 'tap'
import { ACCOUNT_DEFAULTS, type AccountState } from '../../src/state/account.ts'
import { limitsOfAccount, limitsOfServer } from '../../src/state/limit.ts'
import { periodOf } from '../../src/state/quota.ts'

const nowMs = Date.UTC(2026, 10, 20, 12, 0, 30)
const minute = periodOf('minute', nowMs)
const month = periodOf('month', nowMs)
const MINUTE_END = Date.UTC(2026, 10, 20, 12, 1)
const MONTH_END = Date.UTC(2026, 11, 1)
const account: AccountState = {
  ...ACCOUNT_DEFAULTS,
  accountId: 'a',
  name: 'Acme',
  status: 'active',
  createdAtMs: 0,
  keys: [],
  servers: 0,
  held: false,
}
const counters = { minute: [minute, 3], month: [month, 30], testMinute: [minute - 1, 9], testMonth: [month, 40] }
const of = { account, counters, nowMs }

const ACCOUNT_LIMITS = [
  { scope: 'account', period: 'minute', limit: 300, used: 3, resetsAtMs: MINUTE_END },
  { scope: 'account', period: 'month', limit: 10_000, used: 30, resetsAtMs: MONTH_END },
]
const TEST_LIMITS = [
  { scope: 'test', period: 'minute', limit: 300, used: 0, resetsAtMs: MINUTE_END },
  { scope: 'test', period: 'month', limit: 10_000, used: 40, resetsAtMs: MONTH_END },
]

t.test('limit: a live server is held to the account’s, and to its own where set', async (t) => {
  t.same(limitsOfServer({ mode: 'live', perMinuteLimit: null, monthlyCap: null }, null, of), ACCOUNT_LIMITS)
  const own = { minute: [minute, 1], month: [month, 2] }
  t.same(limitsOfServer({ mode: 'live', perMinuteLimit: 10, monthlyCap: 20 }, own, of), [
    ...ACCOUNT_LIMITS,
    { scope: 'server', period: 'minute', limit: 10, used: 1, resetsAtMs: MINUTE_END },
    { scope: 'server', period: 'month', limit: 20, used: 2, resetsAtMs: MONTH_END },
  ])
})

t.test('limit: a test server is held to the share of the account’s test servers', async (t) => {
  t.same(limitsOfServer({ mode: 'test', perMinuteLimit: null, monthlyCap: null }, null, of), TEST_LIMITS)
})

t.test('limit: an account shows its own and the shared ones, also before anything was counted', async (t) => {
  t.same(limitsOfAccount(account, counters, nowMs), [...ACCOUNT_LIMITS, ...TEST_LIMITS])
  t.same(
    limitsOfAccount(account, null, nowMs).map(({ used }) => used),
    [0, 0, 0, 0],
  )
})
