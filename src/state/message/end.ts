/**
 * end - how a recipient ended, as the operator's log tells it: ids and numbers, never an address
 */

import type { Note } from '../../../cluster/behaviour.ts'
import { msOf } from '../../../cluster/id.ts'
import type { AttemptItem } from './item.ts'
import { type RecipientState, type StatusEvent, SUPPRESSED_CLASS } from './status.ts'

/** The end of a recipient, or what came back for it later. */
export interface RecipientEnd extends Note {
  readonly messageId: string
  /** Place among the recipients, from 0. */
  readonly recipientIndex: number
  /** The lane of its attempts; null: none of them ended it. */
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

/** What is told of an event that ended a recipient, or bounced after its end; none where it did neither. */
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

/** What is told of recipients that were on the list when their message was accepted: no attempt was made. */
export function suppressedNotes(
  recipients: readonly { readonly messageId: string; readonly recipient: number }[],
): readonly RecipientEnd[] {
  return recipients.map(({ messageId, recipient }) => {
    const none = { lane: null, code: null, class: SUPPRESSED_CLASS, attempt: 0, ms: 0 }
    return { messageId, recipientIndex: recipient, result: 'suppressed', ...none }
  })
}
