/**
 * send-each - a partial send: every message is accepted or refused on its own, in one decision and one commit
 *
 * Messages that have no valid form are refused without a command; the others are one command. The outcomes are in the
 * order of the request.
 *
 * Spec batch.partial
 */

import type { Refused } from '../actors/authorization/refusal.ts'
import type { Accepted, AcceptedMessage, RefusedMessage } from '../actors/message/send.ts'
import type { SendMessage } from './email-form.ts'
import { type SendDeps, type SendResult, sendAll } from './send.ts'
import type { SendOrder } from './send-command.ts'

/** A partial send. A null replaces a message without a valid form. */
export interface EachOrder extends Omit<SendOrder, 'messages' | 'batch' | 'partial'> {
  readonly messages: readonly (SendMessage | null)[]
}

/** The outcome of a message; null if it had no valid form. */
export type EachOutcome = AcceptedMessage | Pick<RefusedMessage, 'code' | 'extra'> | null

export type EachResult =
  | ({ readonly kind: 'each'; readonly outcomes: readonly EachOutcome[] } & Pick<
      Accepted,
      'test' | 'replayed' | 'rate'
    >)
  /** The request as a whole is refused. */
  | Refused
  | Exclude<SendResult, { readonly kind: 'answer' }>

/** Sends the messages that pass. Never rejects for a reply of the store or of the decision. */
export async function sendEach(deps: SendDeps, order: EachOrder): Promise<EachResult> {
  const places: number[] = []
  const messages: SendMessage[] = []
  for (const [place, message] of order.messages.entries()) {
    if (message === null) continue
    places.push(place)
    messages.push(message)
  }
  const outcomes: EachOutcome[] = order.messages.map(() => null)
  // Even without a valid message the account is asked, because refusals of its state come first.
  const result = await sendAll(deps, { ...order, messages, batch: false, partial: true })
  if (result.kind !== 'answer') return result
  const { reply } = result
  if (reply.kind === 'refused') return reply
  for (const { place, code, extra } of reply.refused ?? []) outcomes[places[place] as number] = { code, extra }
  let next = 0
  for (const place of places) if (outcomes[place] === null) outcomes[place] = reply.messages[next++] as AcceptedMessage
  const { test, replayed, rate } = reply
  return { kind: 'each', outcomes, test, replayed, rate }
}
