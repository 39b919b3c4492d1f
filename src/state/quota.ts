/**
 * quota - the use of a period, and whether a request still fits.
 *
 * States: a counter is `[period, n, before, gap]`: `n` of the latest period seen, `before` of the one `gap` periods
 * earlier; a `gap` of 1 and a `before` of 0 are left off. If the clock goes back, counting continues in `before`, so
 * the latest period is neither reset nor blocking, even if it is far ahead.
 *
 * Guarantees: a request uses all of its limits or none. A request that does not fit under every limit uses nothing.
 *
 * Spec limit.entry, limit.refusal
 */

import { computeMonth, MINUTE_MS, monthStartMs } from './calendar.ts'

export type PeriodUnit = 'minute' | 'month'
export type LimitScope = 'account' | 'server' | 'test'

/** A counter as it is stored. */
export type Period = readonly number[]

/** The state of one limit at an instant. */
export interface Limit {
  readonly scope: LimitScope
  readonly period: PeriodUnit
  readonly limit: number
  readonly used: number
  readonly resetsAtMs: number
}

/** `[month, 1 once warned, the cap that was told as reached or 0]`; zeros at the end are left off. */
export type CapTold = readonly number[]

/** Number of the period of an instant: UTC minutes since 1970, or UTC year x 12 + month. */
export function periodOf(unit: PeriodUnit, nowMs: number): number {
  return unit === 'minute' ? Math.floor(nowMs / MINUTE_MS) : computeMonth(nowMs)
}

/** When that period ends, in milliseconds. */
export function resetsAtMs(unit: PeriodUnit, nowMs: number): number {
  return unit === 'minute' ? (Math.floor(nowMs / MINUTE_MS) + 1) * MINUTE_MS : monthStartMs(computeMonth(nowMs) + 1)
}

/** The use of the period numbered `now`. */
export function used(counter: Period | null | undefined, now: number): number {
  if (counter === null || counter === undefined) return 0
  const latest = counter[0] ?? 0
  if (now === latest) return counter[1] ?? 0
  return now < latest && latest - now === (counter[3] ?? 1) ? (counter[2] ?? 0) : 0
}

/** The counter once the period numbered `now` has taken `count` more. */
export function take(counter: Period | null | undefined, now: number, count: number): Period {
  if (counter === null || counter === undefined) return [now, count]
  const latest = counter[0] ?? 0
  const taken = counter[1] ?? 0
  if (now > latest) return trim(now, count, taken, now - latest)
  if (now === latest) return trim(latest, taken + count, counter[2] ?? 0, counter[3] ?? 1)
  return trim(latest, taken, used(counter, now) + count, latest - now)
}

/**
 * The limit that refuses `requested` more, null when all hold. If several refuse, the one that lasts longest is named;
 * of two that end together, the server's before the account's.
 */
export function firstRefusal(limits: readonly Limit[], requested: number): Limit | null {
  let named: Limit | null = null
  for (const limit of limits) {
    if (limit.used + requested <= limit.limit) continue
    if (named === null || isNamedBefore(limit, named)) named = limit
  }
  return named
}

function isNamedBefore(limit: Limit, other: Limit): boolean {
  if (limit.resetsAtMs !== other.resetsAtMs) return limit.resetsAtMs > other.resetsAtMs
  return limit.scope === 'server' && other.scope === 'account'
}

function trim(latest: number, taken: number, before: number, gap: number): Period {
  if (before === 0) return [latest, taken]
  return gap === 1 ? [latest, taken, before] : [latest, taken, before, gap]
}
