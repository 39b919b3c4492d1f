/** attempt-outcome - the end of an attempt as its performer reports it: without the recipient's address */

import { type AttemptRoute, packRoute } from '../../mail/attempt-route.ts'
import type { Outcome } from '../../mail/outcome.ts'
import { capText, maskAddress } from '../../mail/reply.ts'

/** The reported outcome of an attempt, without any address. */
export interface AttemptOutcome {
  readonly result: Outcome['result']
  readonly code: number | null
  /** One line, the recipient's address masked. */
  readonly response: string | null
  readonly classification: string | null
  readonly hard: boolean
  readonly expired: boolean
  /** Packed route (`mail/attempt-route.ts`); absent if no mail server was tried. */
  readonly route?: string
  /** Stream of the message; absent if the reporter does not know it. */
  readonly streamId?: string
  /** Keyed hash of the message's tag; absent if it has none, or if `streamId` is absent. */
  readonly tagHash?: string
  /** The message cannot be built, so the recipient fails instead of bouncing. */
  readonly unbuildable: boolean
  /** Size of the message as built; null if it was not built. */
  readonly sizeBytes: number | null
  /** When to try again, in place of the schedule; null = by the schedule. */
  readonly retryAfterMs: number | null
  /** No attempt was made, because the operator ended the recipient, or its address is suppressed. */
  readonly uncounted?: true
  /** The address is on the stream's list, so the scheduled message is not sent to it. */
  readonly suppressed?: true
  /** HMAC of the recipient's address if the outcome suppresses it, otherwise null. */
  readonly hmac: string | null
  /** Feedback type of a complaint that follows at once (simulated only); absent: none. */
  readonly complaint?: string
  /** Whether a click on one-click unsubscribe follows at once (simulated only). */
  readonly clicks?: true
}

interface ReportInput {
  readonly address: string
  /** Stream of the message. */
  readonly streamId?: string
  readonly tagHash?: string | null
  readonly sizeBytes: number | null
  readonly retryAfterMs: number | null
  /** Feedback type of a simulated complaint; absent: none. */
  readonly complaint?: string
  /** Whether a simulated click follows. */
  readonly clicks?: true
  /** HMAC of the address within its account. */
  hmac(): string
}

/** A performer's report of an attempt, without the recipient's address. */
export function reportOutcome(
  outcome: Outcome & { readonly route?: AttemptRoute | null },
  { address, streamId, tagHash, sizeBytes, retryAfterMs, complaint, clicks, hmac }: ReportInput,
): AttemptOutcome {
  const { result, code, response, classification, hard, expired, phase, route } = outcome
  return {
    result,
    code,
    response: response === null ? null : capText(maskAddress(response, address)),
    classification,
    hard,
    expired,
    unbuildable: phase === 'compose' && result === 'bounced',
    sizeBytes,
    retryAfterMs,
    hmac: (result === 'bounced' && hard) || complaint !== undefined || clicks ? hmac() : null,
    ...(route && { route: packRoute(route) }),
    ...(streamId !== undefined && { streamId, ...(tagHash != null && { tagHash }) }),
    ...(complaint !== undefined && { complaint }),
    ...(clicks && { clicks }),
  }
}

/** The packed route of an outcome, for its event. */
export function routeOf({ route }: AttemptOutcome): { readonly route?: string } {
  return route === undefined ? {} : { route }
}
