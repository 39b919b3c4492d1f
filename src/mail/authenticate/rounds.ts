/**
 * rounds - judging a mail again if the DNS could not answer: missing verdicts, the time of the next round, the changes.
 *
 * States: complete; missing some, with rounds to come; missing some for good, after the last round. A round only adds:
 * results are kept, even if the DNS later answers otherwise.
 *
 * Spec inbound.authentication.rounds
 */

import { AUTHENTICATION_ROUNDS_MINUTES } from '../../../schemas/limits.ts'
import type { Authentication } from './authentication.ts'

const MINUTE_MS = 60_000
const PARTS = ['spf', 'spfHelo', 'dkim', 'dmarc', 'arc'] as const

/** A verdict by its field. */
export type AuthenticationPart = (typeof PARTS)[number]

/** The verdicts that are missing because the DNS did not answer. */
export function missingParts(authentication: Authentication): AuthenticationPart[] {
  return PARTS.filter((part) => authentication[part] === (part === 'arc' ? 'unchecked' : 'temperror'))
}

/**
 * When the next round is due, milliseconds; null if nothing is missing, or no round is left. Takes the verdicts so far,
 * the time of the first round and the number of rounds.
 */
export function nextRoundAtMs(
  authentication: Authentication,
  { firstAtMs, rounds }: { firstAtMs: number; rounds: number },
): number | null {
  const minutes = AUTHENTICATION_ROUNDS_MINUTES[rounds - 1]
  if (minutes === undefined || missingParts(authentication).length === 0) return null
  return firstAtMs + minutes * MINUTE_MS
}

/** The verdicts after another round, which fills in the missing ones. */
export function mergeRounds(before: Authentication, after: Authentication): Authentication {
  const missing = new Set(missingParts(before))
  const pick = <Part extends AuthenticationPart>(part: Part): Authentication[Part] =>
    (missing.has(part) ? after : before)[part]
  return {
    spf: pick('spf'),
    spfHelo: pick('spfHelo'),
    dkim: pick('dkim'),
    dmarc: pick('dmarc'),
    dmarcPolicy: (missing.has('dmarc') ? after : before).dmarcPolicy,
    arc: pick('arc'),
  }
}
