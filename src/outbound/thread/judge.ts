/** judge - turns the report of a session into the outcome of the attempt. No socket, no clock: only the mapping. */

import { makeRefused, makeUnasked } from '../../mail/classify.ts'
import type { Outcome } from '../../mail/outcome.ts'
import { makeDeferred, makeDelivered, makeReturned } from '../../mail/outcome.ts'
import { capText, formatReply, parseReply } from '../../mail/reply.ts'
import type { Sent, SessionFailure } from './converse.ts'

/** The outcome of a transaction; `where` names the server in the text of a failure without a reply. */
export function judgeSent(sent: Sent, where: string): Outcome {
  if (!sent.ok) return judgeFailure(sent.failure, where)
  const response = formatReply(sent.reply)
  return makeDelivered(parseReply(response).code ?? 250, response)
}

/**
 * Whether another connection may have the message: 421 closes this one only; a loss before the server wanted the
 * message has done nothing yet.
 */
export function isElsewhere(sent: Sent, { code }: Pick<Outcome, 'code'>): boolean {
  if (code === 421) return true
  return !sent.ok && sent.failure.kind === 'lost' && sent.failure.phase === 'mail'
}

/**
 * The outcome for a server reached over IPv6 that also has IPv4 addresses. A refusal because of our address does not
 * apply to those, so it is temporary.
 */
export function asOfFamily(outcome: Outcome): Outcome {
  const isOfAddress =
    outcome.result === 'bounced' && !outcome.hard && /^5\d\d 5\.7\.\d{1,3}(?: |$)/.test(outcome.response ?? '')
  return isOfAddress ? { ...outcome, result: 'deferred' } : outcome
}

/**
 * The outcome of a failure. A session that could not be opened is always temporary, even with a 5xx greeting: it is
 * about us or the server, not about the recipient.
 */
export function judgeFailure(failure: SessionFailure, where: string): Outcome {
  if (failure.kind === 'abort' || failure.kind === 'fence') {
    return makeReturned(failure.kind, `4.3.2 ${failure.text}`)
  }
  if (failure.kind === 'too-large') return makeUnasked('too-large')
  if (failure.kind !== 'reply') return makeDeferred(failure.phase, 'BadConnection', capText(`${failure.text} ${where}`))
  const refused = makeRefused({ phase: failure.phase, response: formatReply(failure.text) })
  return failure.phase === 'conn' ? { ...refused, result: 'deferred', hard: false } : refused
}
