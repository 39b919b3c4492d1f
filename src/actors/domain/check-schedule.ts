/**
 * check-schedule - when the records of a sending domain are looked up by themselves.
 *
 * A new domain is checked often at first and then less and less; a domain in its warning has a day to be fixed, so it
 * is checked hourly. A domain that has lost its verification is checked like a new one.
 *
 * The records of a domain that only test servers use are not urgent, so it is checked once a day.
 *
 * Spec domain.schedule, domain.test-use
 */

import type { Due } from '../../../cluster/behaviour.ts'
import { TIMERS_LANE } from '../../../cluster/keyspace.ts'
import { DAY_MS, HOUR_MS } from '../../state/calendar.ts'
import type { DomainState } from '../../state/domain.ts'

export const CHECK_TIMER = 'check'

const MINUTE_MS = 60_000
/** Long enough to have made the records after they were shown. */
const FIRST_CHECK_MS = 30_000
const CLOSELY_MS = HOUR_MS
const HOURLY_MS = 3 * DAY_MS

/** Input of the schedule. */
export type Scheduled = Pick<
  DomainState,
  'domainId' | 'verified' | 'failingSinceMs' | 'unverifiedSinceMs' | 'pending' | 'isTestOnly'
>

/** The first lookup of a domain added at `nowMs`. */
export function firstCheckDue(domainId: string, nowMs: number): Due {
  return { lane: TIMERS_LANE, item: checkTimerItem(domainId), atMs: nowMs + FIRST_CHECK_MS }
}

/** The look after one at `nowMs`. */
export function nextCheckDue(domain: Scheduled, nowMs: number): Due {
  return { lane: TIMERS_LANE, item: checkTimerItem(domain.domainId), atMs: nowMs + intervalMs(domain, nowMs) }
}

/** The timer of a domain. */
export function checkTimerItem(domainId: string): string {
  return `${CHECK_TIMER}:${domainId}`
}

/** The domain of a timer. */
export function domainOfTimer(item: string): string {
  return item.slice(CHECK_TIMER.length + 1)
}

function intervalMs(domain: Scheduled, nowMs: number): number {
  const { verified, failingSinceMs, unverifiedSinceMs, pending } = domain
  if (domain.isTestOnly && !verified) return DAY_MS
  const own = verified ? (failingSinceMs === null ? DAY_MS : HOUR_MS) : waitingMs(nowMs - unverifiedSinceMs)
  // A pending key is checked as often as a new domain.
  return pending === null ? own : Math.min(own, waitingMs(nowMs - pending.orderedAtMs))
}

/** How long to wait for records that have been awaited for `ageMs`. */
function waitingMs(ageMs: number): number {
  if (ageMs < CLOSELY_MS) return 5 * MINUTE_MS
  return ageMs < CLOSELY_MS + HOURLY_MS ? HOUR_MS : DAY_MS
}
