/**
 * summary - the Message summary: the message and the status of each recipient
 *
 * Spec message.summary, message.recipient, message.states
 */

import type { MessageSummary } from '../../../schemas/message.ts'
import type { Head } from '../../state/message/head.ts'
import type { LogEntry } from '../../state/message/log-entry.ts'
import { sentContentEndsAtMs } from '../../state/message/retention.ts'
import { messageStatus, type RecipientState } from '../../state/message/status.ts'
import { formatInstant, formatInstantOrNull } from '../instant.ts'
import { formatRecipient, type Person } from './recipient.ts'

export const SOURCES = { a: 'api', s: 'smtp', b: 'broadcast' } as const

/** The stored rows of a message, without persons. */
export interface StoredMessage {
  readonly messageId: string
  /** Segment of the server's log. */
  readonly segment: string
  readonly submittedAtMs: number
  readonly test: boolean
  /** Days for which its text and HTML are kept. */
  readonly contentDays: number
  readonly streamId: string
  readonly entry: LogEntry
  readonly head: Head
  readonly recipients: readonly RecipientState[]
}

/** The recipients with their addresses. In: the sender's address, then that of each recipient. */
export function peopleOf({ entry, head, recipients }: StoredMessage, addresses: readonly string[]): Person[] {
  return recipients.map((state, index) => ({
    address: addresses[index + 1] ?? '',
    name: head.recipientNames[index] ?? null,
    kind: entry.kinds[index] ?? 'to',
    state,
  }))
}

/** The summary. `contentAvailable`: whether its text and html can be read now. */
export function formatSummary(
  stored: StoredMessage,
  addresses: readonly string[],
  contentAvailable: boolean,
): MessageSummary {
  const { entry, head, recipients, submittedAtMs, test, contentDays } = stored
  return {
    messageId: stored.messageId,
    streamId: stored.streamId,
    broadcastId: head.broadcast?.broadcastId ?? null,
    source: SOURCES[entry.source],
    status: messageStatus(recipients.map(({ status }) => status)),
    test,
    from: { email: addresses[0] ?? '', name: head.senderName },
    subject: head.subject,
    tag: head.tag,
    metadata: { ...head.metadata },
    submittedAt: formatInstant(submittedAtMs),
    sendAt: formatInstantOrNull(head.sendAtMs ?? null),
    sizeBytes: recipients[0]?.sizeBytes ?? null,
    attachmentCount: head.attachments.length,
    recipients: peopleOf(stored, addresses).map(formatRecipient),
    contentAvailable,
    contentExpiresAt: formatInstant(sentContentEndsAtMs(submittedAtMs, contentDays)),
  }
}
