/**
 * limit - which limits a send is held to, as they stand now.
 *
 * A live server is held to its account's limits and to its own where set; all test servers of an account share two.
 *
 * Spec account.limits, limit.entry, server.read
 */

import type { AccountCounters, AccountState } from './account.ts'
import { type Limit, type LimitScope, type Period, type PeriodUnit, periodOf, resetsAtMs, used } from './quota.ts'
import type { ServerCounters, ServerState } from './server.ts'

interface Slot {
  readonly scope: LimitScope
  readonly period: PeriodUnit
  readonly limit: number
  readonly counter: Period | undefined
}

/** Every limit that a send on this server is held to, in the order of the Server resource. */
export function limitsOfServer(
  server: Pick<ServerState, 'mode' | 'perMinuteLimit' | 'monthlyCap'>,
  serverCounters: ServerCounters | null,
  of: { readonly account: AccountState; readonly counters: AccountCounters | null; readonly nowMs: number },
): Limit[] {
  const { account, counters, nowMs } = of
  if (server.mode === 'test') return testSlots(account, counters).map((slot) => stand(slot, nowMs))
  const limits = liveSlots(account, counters).map((slot) => stand(slot, nowMs))
  if (server.perMinuteLimit !== null)
    limits.push(
      stand(
        { scope: 'server', period: 'minute', limit: server.perMinuteLimit, counter: serverCounters?.minute },
        nowMs,
      ),
    )
  if (server.monthlyCap !== null)
    limits.push(
      stand({ scope: 'server', period: 'month', limit: server.monthlyCap, counter: serverCounters?.month }, nowMs),
    )
  return limits
}

/** Every limit of the Account resource: its own, then those that its test servers share. */
export function limitsOfAccount(account: AccountState, counters: AccountCounters | null, nowMs: number): Limit[] {
  return [...liveSlots(account, counters), ...testSlots(account, counters)].map((slot) => stand(slot, nowMs))
}

function liveSlots(account: AccountState, counters: AccountCounters | null): Slot[] {
  return [
    { scope: 'account', period: 'minute', limit: account.perMinuteLimit, counter: counters?.minute },
    { scope: 'account', period: 'month', limit: account.monthlyCap, counter: counters?.month },
  ]
}

function testSlots(account: AccountState, counters: AccountCounters | null): Slot[] {
  return [
    { scope: 'test', period: 'minute', limit: account.testPerMinuteLimit, counter: counters?.testMinute },
    { scope: 'test', period: 'month', limit: account.testMonthlyCap, counter: counters?.testMonth },
  ]
}

function stand({ scope, period, limit, counter }: Slot, nowMs: number): Limit {
  return {
    scope,
    period,
    limit,
    used: used(counter, periodOf(period, nowMs)),
    resetsAtMs: resetsAtMs(period, nowMs),
  }
}
