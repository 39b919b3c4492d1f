/**
 * outcome - what one attempt to hand a message over to a receiving server came to.
 *
 * Guarantees: `bounced` is only returned for an answer that is certainly permanent; unclear ones are `deferred`.
 * `returned` is not final, because nothing was learnt about the recipient; the attempt is repeated without an event.
 * `response` is one line of at most 512 characters and may still contain the recipient's address (see `reply.ts`).
 */

/**
 * The phase in which an attempt ended. `compose`: the message cannot be built. `dns`, `conn`: before the transaction.
 * `mail`, `rcpt`, `data`: at that command. `dot`: after the message was sent whole. `fence`: held back right before
 * the final dot because this process could no longer prove its claim. `abort`: cut off by its caller. `site` means
 * that the site is paused or full.
 */
export type Phase = 'compose' | 'dns' | 'conn' | 'mail' | 'rcpt' | 'data' | 'dot' | 'fence' | 'abort' | 'site'

export interface Outcome {
  readonly result: 'delivered' | 'deferred' | 'bounced' | 'returned'
  /** The reply code of the receiving server, null when the decision was made without a reply. */
  readonly code: number | null
  /**
   * The whole reply in one line with its code; without a reply, a text that begins with a fitting enhanced code.
   */
  readonly response: string | null
  /** Bounce class; null on delivery. */
  readonly classification: string | null
  /** True if the address is dead for good; the caller then suppresses it. */
  readonly hard: boolean
  /**
   * True if the attempt itself decides that the time is over (simulated expiry only; otherwise the schedule decides).
   */
  readonly expired: boolean
  readonly phase: Phase
}

/** The outcome of a delivery: `response` is the reply to the final dot in one line. */
export function makeDelivered(code: number, response: string): Outcome {
  return { result: 'delivered', code, response, classification: null, hard: false, expired: false, phase: 'dot' }
}

/** A temporary outcome that no receiving server spoke for: `response` is our own text. */
export function makeDeferred(phase: Phase, classification: string, response: string): Outcome {
  return { result: 'deferred', code: null, response, classification, hard: false, expired: false, phase }
}

/** An attempt that was not made, or was interrupted: it returns to its queue. */
export function makeReturned(phase: 'fence' | 'abort' | 'site' | 'compose', text: string): Outcome {
  return {
    result: 'returned',
    code: null,
    response: text,
    classification: null,
    hard: false,
    expired: false,
    phase,
  }
}
