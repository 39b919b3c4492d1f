/**
 * site-pace - how fast a site is served: connections at once, messages a second, and the pauses that it or its silence
 * asks for.
 *
 * States: unproven (no answer yet, or none since it was unreachable) -> proven; also throttled (on its request: one
 * connection, one message a second) and paused (nothing until an instant).
 *
 * Guarantees that a site never has more places than its limits allow; each pause after another without a calm time
 * between is longer, up to a bound. No clock and no randomness: both come with the call.
 *
 * Spec delivery.site.growth, delivery.site.throttle, delivery.site.breaker
 */

import type { Outcome } from './outcome.ts'
import type { SiteLimits } from './site.ts'

/** A throttled site is left alone this long, twice as long each time, up to the maximum. */
const THROTTLE_PAUSE_MS = 60_000
const THROTTLE_PAUSE_MAX_MS = 30 * 60_000
/** Successes in a row that end the memory of a throttling. */
const CALM_SUCCESSES = 20
/** Pause after no address accepted a connection; the longer one if there was no answer at all. */
const REFUSED_PAUSE_MS = 2 * 60_000
const SILENT_PAUSE_MS = 15 * 60_000
/** Pauses are shifted by up to this fraction, so that sites that failed together do not resume together. */
const JITTER = 0.1
/** Attempts that wait beside those under way, so that a place which becomes free is taken at once. */
const AHEAD_MAX = 32
/**
 * The same at an unreachable site: they share the result of the next try. It doubles with each failure, so that a long
 * queue is walked through, and its old mail found, with few tries.
 */
const WAVE_START = 8
const WAVE_MAX = 512
/** How much of a second's messages may go at once. */
const BURST_SECONDS = 0.2

/** Words by which servers report throttling (RFC 5321 has none; providers write these). */
const THROTTLE_TEXT = /\brate\b|too many|throttl|unexpected volume|\bTSS04\b|\b4\.7\.28\b/i

/**
 * The state of the site, from an attempt. `answered` means that a server replied. `refused` means that no address
 * could be connected to, or that it hung up before its greeting. `silent` is the same by timeout. `none`: it was not
 * tried.
 */
export type Contact = 'answered' | 'refused' | 'silent' | 'none'

export interface SitePace {
  /** Connections at once while it is proven and not throttled. */
  readonly window: number
  /** Successes since the window grew. */
  readonly round: number
  readonly isProven: boolean
  readonly isThrottled: boolean
  /** Length of the last pause for throttling; 0 after a calm time. */
  readonly throttlePauseMs: number
  /** Successes since the last throttling. */
  readonly calm: number
  /** Failures to reach it, one after the other. */
  readonly failures: number
  readonly pausedUntilMs: number
  /** When the next message would be due if none went early (the theoretical arrival time of GCRA). */
  readonly nextMessageAtMs: number
}

/** A site that nothing is known of. */
export function makeSitePace(limits: SiteLimits): SitePace {
  return {
    window: limits.connectionsStart,
    round: 0,
    isProven: false,
    isThrottled: false,
    throttlePauseMs: 0,
    calm: 0,
    failures: 0,
    pausedUntilMs: 0,
    nextMessageAtMs: 0,
  }
}

/** Maximum concurrent attempts at the site. `isTight` means that the process has few places left. */
export function computePlaces(pace: SitePace, limits: SiteLimits, isTight: boolean): number {
  if (pace.isThrottled || pace.failures > 0) return 1
  // The limits may have become less since the window grew.
  return isTight && !pace.isProven ? 1 : Math.min(limits.connections, Math.floor(pace.window))
}

/** Attempts that may wait for a place beside those that have one. */
export function waitingMax(pace: SitePace): number {
  if (pace.throttlePauseMs > THROTTLE_PAUSE_MS) return WAVE_MAX
  if (pace.failures === 0) return AHEAD_MAX
  return Math.min(WAVE_MAX, WAVE_START * 2 ** Math.min(pace.failures - 1, 16))
}

/** Milliseconds until the next message may begin; 0 = now. */
export function waitMs(pace: SitePace, limits: SiteLimits, nowMs: number): number {
  const perSecond = perSecondOf(pace, limits)
  const earlyMs = pace.isThrottled ? 0 : Math.max(0, BURST_SECONDS * 1000 - 1000 / perSecond)
  return Math.max(0, pace.pausedUntilMs - nowMs, pace.nextMessageAtMs - earlyMs - nowMs)
}

/** A message begins: it counts against the rate. */
export function begun(pace: SitePace, limits: SiteLimits, nowMs: number): SitePace {
  const perSecond = perSecondOf(pace, limits)
  return { ...pace, nextMessageAtMs: Math.max(nowMs, pace.nextMessageAtMs) + 1000 / perSecond }
}

function perSecondOf({ isThrottled }: SitePace, { throttledPerSecond, messagesPerSecond }: SiteLimits): number {
  return isThrottled ? Math.min(throttledPerSecond, messagesPerSecond) : messagesPerSecond
}

export interface Ended {
  readonly outcome: Outcome
  readonly contact: Contact
  readonly nowMs: number
  /** A random number, 0 to 1. */
  readonly unit: number
}

/** The pace after an attempt. */
export function ended(pace: SitePace, limits: SiteLimits, { outcome, contact, nowMs, unit }: Ended): SitePace {
  if (contact === 'refused' || contact === 'silent') {
    const pauseMs = jittered(contact === 'silent' ? SILENT_PAUSE_MS : REFUSED_PAUSE_MS, unit)
    return {
      ...pace,
      isProven: false,
      failures: pace.failures + 1,
      pausedUntilMs: Math.max(pace.pausedUntilMs, nowMs + pauseMs),
    }
  }
  if (contact === 'none') return pace
  if (isThrottling(outcome)) return throttled(pace, { nowMs, unit })
  const reached = { ...pace, failures: 0 }
  // A size limit announced by the server does not reduce the pace; only a lost transaction does.
  if (outcome.code === null) return outcome.result === 'bounced' ? reached : { ...reached, window: halved(pace.window) }
  const isLess = outcome.result === 'deferred' && /^4\d\d 4\.7\./.test(outcome.response ?? '')
  if (isLess) return { ...reached, isProven: true, window: halved(pace.window), round: 0 }
  return succeeded({ ...reached, isProven: true }, limits)
}

/** Whether a reply asks for less mail. */
export function isThrottling({ code, response }: Pick<Outcome, 'code' | 'response'>): boolean {
  if (code === null || code >= 500 || code < 400) return false
  return code === 421 || THROTTLE_TEXT.test(response ?? '')
}

/** One answer more: after as many as there are connections (a round) there may be one connection more. */
function succeeded(pace: SitePace, limits: SiteLimits): SitePace {
  const calm = pace.calm + 1
  const isCalm = calm >= CALM_SUCCESSES
  const isRound = pace.round + 1 >= pace.window
  return {
    ...pace,
    calm,
    isThrottled: pace.isThrottled && !isCalm,
    throttlePauseMs: isCalm ? 0 : pace.throttlePauseMs,
    round: isRound ? 0 : pace.round + 1,
    window: isRound ? Math.min(limits.connections, pace.window + 1) : pace.window,
  }
}

/** Attempts that were under way together are throttled together: that is one throttling. */
function throttled(pace: SitePace, { nowMs, unit }: { nowMs: number; unit: number }): SitePace {
  const asked = { ...pace, failures: 0, isThrottled: true, window: halved(pace.window), round: 0, calm: 0 }
  if (pace.pausedUntilMs > nowMs) return asked
  const throttlePauseMs = Math.min(THROTTLE_PAUSE_MAX_MS, Math.max(THROTTLE_PAUSE_MS, pace.throttlePauseMs * 2))
  return { ...asked, throttlePauseMs, pausedUntilMs: nowMs + jittered(throttlePauseMs, unit) }
}

function halved(window: number): number {
  return Math.max(1, Math.floor(window / 2))
}

function jittered(ms: number, unit: number): number {
  return Math.round(ms * (1 - JITTER + 2 * JITTER * unit))
}
