/**
 * outgoing - the bytes of a message as they go out: built, measured, signed, and kept while it has other recipients
 *
 * Guarantees: the size is that of the message as built, before signatures and trace fields; a message with several
 * recipients is built and signed once for all attempts in flight together; no call rejects.
 *
 * Spec send.size, dkim.signed
 */

import { formatReceived, type MailInput } from '../../mail/compose/raw.ts'
import { makeDeferred } from '../../mail/outcome.ts'
import { buildMessage, refuseBuilt } from './build.ts'
import { makeSigner, type SigningKey } from './sign.ts'
import type { MailOutcome } from './thread-job.ts'

/** Messages that are kept for their other recipients. */
const KEPT_MAX = 4

export interface OutgoingInput {
  readonly message: MailInput
  /** In the order of the signatures. */
  readonly keys: readonly SigningKey[]
  /** Recipients of the message in all. */
  readonly copies: number
}

/** The bytes to transmit, and the size as built. */
export interface Outgoing {
  readonly bytes: Buffer
  readonly sizeBytes: number
}

/**
 * Makes the function that prepares messages; an outcome in place of bytes means that the message cannot be sent (now).
 */
export function makeOutgoing(): (input: OutgoingInput) => Promise<Outgoing | MailOutcome> {
  const sign = makeSigner()
  const kept = new Map<string, Promise<Outgoing | MailOutcome>>()
  const prepare = async ({ message, keys }: OutgoingInput): Promise<Outgoing | MailOutcome> => {
    const built = buildMessage(message)
    const refusal = refuseBuilt(built, message)
    if (built === null || refusal !== null) return refusal as MailOutcome
    const sizeBytes = built.length
    return sign(built, { keys, signedAtMs: message.acceptedAtMs }).then(
      (bytes) => ({ bytes: traced(bytes, formatReceived(message)), sizeBytes }),
      () => ({ ...makeDeferred('compose', 'TransientFailure', '4.7.5 message could not be signed'), sizeBytes }),
    )
  }
  return (input) => {
    if (input.copies === 1) return prepare(input)
    const { messageId } = input.message
    const known = kept.get(messageId)
    if (known !== undefined) return known
    if (kept.size >= KEPT_MAX) kept.delete(kept.keys().next().value as string)
    const prepared = prepare(input)
    kept.set(messageId, prepared)
    // A failed build may succeed at the next attempt.
    return prepared.then((outgoing) => {
      if ('result' in outgoing && kept.get(messageId) === prepared) kept.delete(messageId)
      return outgoing
    })
  }
}

/** A trace field precedes all other fields (RFC 5321 4.4). */
function traced(bytes: Buffer, received: string): Buffer {
  return received === '' ? bytes : Buffer.concat([Buffer.from(received, 'latin1'), bytes])
}
