/** end - the final state of a recipient in the operator's log, with ids and numbers but never an address */

import type { Note } from '../../../cluster/behaviour.ts'
import { msOf } from '../../../cluster/id.ts'
import type { AttemptItem } from './item.ts'
import { type RecipientState, type StatusEvent, SUPPRESSED_CLASS } from './status.ts'

/** The final state of a recipient, or a later report about it. */
export interface RecipientEnd extends Note {
  readonly messageId: string
  /** Place among the recipients, from 0. */
  readonly recipientIndex: number
  /** The lane of its attempts; null if no attempt ended it. */
  readonly lane: string | null
  readonly result: 'delivered' | RecipientState['status']
  readonly code: number | null
  /** Class of a bounce. */
  readonly class: string | null
  /** Attempts made. */
  readonly attempt: number
  /** Since the message was accepted. */
  readonly ms: number
}

/** The note of an event that is final for a recipient, or of a bounce after that; empty for other events. */
export function endNotes(
  { messageId, recipient }: Pick<AttemptItem, 'messageId' | 'recipient'>,
  event: StatusEvent,
  { lane, attempts }: { readonly lane: string | null; readonly attempts: number },
): readonly RecipientEnd[] {
  if (event.event !== 'delivered' && event.event !== 'bounced') return []
  const { code, occurredAtMs } = event
  const bounce = event.event === 'bounced' ? event : null
  const at = { messageId, recipientIndex: recipient, lane, attempt: attempts, ms: occurredAtMs - msOf(messageId) }
  return [{ ...at, result: bounce?.status ?? 'delivered', code, class: bounce?.classification ?? null }]
}

/** The notes of recipients that were on the list when their message was accepted, without an attempt. */
export function suppressedNotes(
  recipients: readonly { readonly messageId: string; readonly recipient: number }[],
): readonly RecipientEnd[] {
  return recipients.map(({ messageId, recipient }) => {
    const none = { lane: null, code: null, class: SUPPRESSED_CLASS, attempt: 0, ms: 0 }
    return { messageId, recipientIndex: recipient, result: 'suppressed', ...none }
  })
}
