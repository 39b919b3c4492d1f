/**
 * retry - when a deferred recipient is tried again, and when it is given up.
 *
 * The first delay is one minute because sign-in codes die in minutes; the points at 6 and 16 minutes meet the usual
 * greylists (60, 300, 900 seconds); the whole spans two days.
 */

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

/** Delay after the first, second, … failed attempt; the attempt after the last delay is the last one. */
const DELAYS_MS = [1, 5, 10, 15, 30, 60, 120, 180, 240, 360, 360, 480, 480, 480].map((minutes) => minutes * MINUTE_MS)
/** Every delay is shifted by up to this fraction, so that simultaneous failures are not retried simultaneously. */
const JITTER = 0.1

/** Attempts in all. */
export const ATTEMPTS_MAX = DELAYS_MS.length + 1
/** Age at which a recipient is given up, counted from acceptance. */
export const DELIVERY_AGE_MAX_MS = 48 * HOUR_MS
/** A delay requested by a server is followed up to this, and this much later than requested. */
const HINT_MAX_MS = HOUR_MS
const HINT_MARGIN_MS = 10_000

export interface RetryInput {
  /** The attempt that has just failed, counted from 1. */
  readonly attempt: number
  readonly acceptedAtMs: number
  readonly nowMs: number
  /** A random number, 0 to 1. */
  readonly unit: number
  /** The delay requested by the server (`parseRetryHintMs`), null if none. */
  readonly hintMs?: number | null
}

/** When to try again in milliseconds; null = give up now, with the outcome of the attempt that has just failed. */
export function nextAttemptAtMs(input: RetryInput): number | null {
  const delayMs = DELAYS_MS[input.attempt - 1]
  if (delayMs === undefined) return null
  const hintMs = input.hintMs ? Math.min(input.hintMs, HINT_MAX_MS) + HINT_MARGIN_MS : 0
  const jitteredMs = delayMs * (1 - JITTER + 2 * JITTER * input.unit)
  const nextMs = input.nowMs + Math.max(Math.round(jitteredMs), hintMs)
  return nextMs > input.acceptedAtMs + DELIVERY_AGE_MAX_MS ? null : nextMs
}

/**
 * `try again in 300 seconds` of a temporary reply in milliseconds; null when the line is not temporary or has no hint.
 */
export function parseRetryHintMs(response: string): number | null {
  if (!response.startsWith('4')) return null
  const match = /\b(\d{1,5}) ?(sec|min)/i.exec(response)
  if (!match) return null
  return Number(match[1]) * (match[2]!.toLowerCase() === 'min' ? MINUTE_MS : 1000)
}
