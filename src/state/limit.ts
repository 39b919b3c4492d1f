/**
 * limit - the current limits of a send.
 *
 * A live server is held to its account's limits and to its own where set; all test servers of an account share two.
 *
 * Spec account.limits, limit.entry, server.read
 */

import type { AccountCounters, AccountState } from './account.ts'
import { type Limit, type LimitScope, type Period, periodOf, resetsAtMs, used } from './quota.ts'
import type { ServerCounters, ServerState } from './server.ts'

/** The periods of a moment, worked out once for all limits. */
interface Moment {
  readonly minute: number
  readonly minuteEndMs: number
  readonly month: number
  readonly monthEndMs: number
}

/** Every limit that a send on this server is held to, in the order of the Server resource. */
export function limitsOfServer(
  server: Pick<ServerState, 'mode' | 'perMinuteLimit' | 'monthlyCap'>,
  serverCounters: ServerCounters | null,
  of: { readonly account: AccountState; readonly counters: AccountCounters | null; readonly nowMs: number },
): Limit[] {
  const { account, counters } = of
  const moment = momentOf(of.nowMs)
  if (server.mode === 'test') return testLimits(account, counters, moment)
  const limits = liveLimits(account, counters, moment)
  if (server.perMinuteLimit !== null)
    limits.push(minuteLimit('server', moment, server.perMinuteLimit, serverCounters?.minute))
  if (server.monthlyCap !== null) limits.push(monthLimit('server', moment, server.monthlyCap, serverCounters?.month))
  return limits
}

/** Every limit of the Account resource, then those that its test servers share. */
export function limitsOfAccount(account: AccountState, counters: AccountCounters | null, nowMs: number): Limit[] {
  const moment = momentOf(nowMs)
  return [...liveLimits(account, counters, moment), ...testLimits(account, counters, moment)]
}

function liveLimits(account: AccountState, counters: AccountCounters | null, moment: Moment): Limit[] {
  return [
    minuteLimit('account', moment, account.perMinuteLimit, counters?.minute),
    monthLimit('account', moment, account.monthlyCap, counters?.month),
  ]
}

function testLimits(account: AccountState, counters: AccountCounters | null, moment: Moment): Limit[] {
  return [
    minuteLimit('test', moment, account.testPerMinuteLimit, counters?.testMinute),
    monthLimit('test', moment, account.testMonthlyCap, counters?.testMonth),
  ]
}

/** The last requested moment, because all turns of a batch have the same. */
let lastMoment: Moment & { readonly nowMs: number } = momentAt(0)

function momentOf(nowMs: number): Moment {
  if (lastMoment.nowMs !== nowMs) lastMoment = momentAt(nowMs)
  return lastMoment
}

function momentAt(nowMs: number): Moment & { readonly nowMs: number } {
  return {
    nowMs,
    minute: periodOf('minute', nowMs),
    minuteEndMs: resetsAtMs('minute', nowMs),
    month: periodOf('month', nowMs),
    monthEndMs: resetsAtMs('month', nowMs),
  }
}

function minuteLimit(scope: LimitScope, moment: Moment, limit: number, counter: Period | undefined): Limit {
  return { scope, period: 'minute', limit, used: used(counter, moment.minute), resetsAtMs: moment.minuteEndMs }
}

function monthLimit(scope: LimitScope, moment: Moment, limit: number, counter: Period | undefined): Limit {
  return { scope, period: 'month', limit, used: used(counter, moment.month), resetsAtMs: moment.monthEndMs }
}
