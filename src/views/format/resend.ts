/**
 * resend - an event as Resend's webhooks carry it: `{type, created_at, data}`
 */

import { msOf } from '../../../cluster/id.ts'
import type { ReceivedMessage } from '../../../schemas/inbound.ts'
import type { EventBody } from '../../../schemas/webhook.ts'
import { formatInstant } from '../instant.ts'
import type { BounceEvent } from './bounce.ts'
import type { EventSource } from './source.ts'

interface MessageEvent extends BounceEvent {
  readonly broadcastId: string | null
  readonly metadata: Readonly<Record<string, string>>
}

type Received = Partial<Omit<ReceivedMessage, 'contentAvailable' | 'contentExpiresAt'>>

const TYPES: Readonly<Record<string, string>> = {
  delivered: 'email.delivered',
  deferred: 'email.delivery_delayed',
  bounced: 'email.bounced',
  spam_complaint: 'email.complained',
}
/** The class that we give a recipient suppressed at acceptance. */
const SUPPRESSED = 'Suppressed'
/** Kinds of Resend's bounces by our classes. */
const SUB_TYPES: Readonly<Record<string, string>> = {
  InvalidRecipient: 'NoEmail',
  InactiveMailbox: 'NoEmail',
  QuotaIssues: 'MailboxFull',
  SpamContent: 'ContentRejected',
  ContentRelated: 'ContentRejected',
  ProhibitedAttachment: 'AttachmentRejected',
}

/** The body of a webhook. */
export function resendBody(event: EventBody, source: EventSource): object {
  if (event.event === 'inbound') return receivedBody(event as unknown as Received)
  return messageBody(event as unknown as MessageEvent, source)
}

function messageBody(event: MessageEvent, { from, subject }: EventSource): object {
  const { messageId, recipient, occurredAt, broadcastId, metadata, details } = event
  const isSuppressed = event.event === 'bounced' && details.classification === SUPPRESSED
  return {
    type: isSuppressed ? 'email.suppressed' : TYPES[event.event],
    created_at: occurredAt,
    data: {
      email_id: messageId,
      created_at: formatInstant(msOf(messageId)),
      from: from.name === null ? from.email : `${from.name} <${from.email}>`,
      // The event's own recipient only, because each recipient has separate events.
      to: [recipient],
      subject: subject ?? '',
      tags: metadata,
      ...(broadcastId !== null && { broadcast_id: broadcastId }),
      ...(event.event === 'bounced' && !isSuppressed && { bounce: formatBounce(details) }),
      ...(isSuppressed && { suppressed: { type: 'OnAccountSuppressionList', message: details.response ?? '' } }),
    },
  }
}

function formatBounce({ hard, classification, response }: BounceEvent['details']): object {
  const kind = classification ?? ''
  return {
    type: hard === true ? 'Permanent' : kind === 'Uncategorized' ? 'Undetermined' : 'Transient',
    subType: SUB_TYPES[kind] ?? 'General',
    message: response ?? '',
  }
}

function receivedBody(event: Received): object {
  const { inboundMessageId, receivedAt, envelopeRecipient, from, subject, messageIdHeader, attachments = [] } = event
  const addressesOf = (people: ReceivedMessage['to'] = []) => people.map(({ address }) => address)
  return {
    type: 'email.received',
    created_at: receivedAt,
    data: {
      email_id: inboundMessageId,
      created_at: receivedAt,
      from: from?.address ?? '',
      to: event.to === undefined ? [envelopeRecipient] : addressesOf(event.to),
      cc: addressesOf(event.cc),
      bcc: [],
      message_id: messageIdHeader ?? '',
      subject: subject ?? '',
      attachments: attachments.map(({ position, name, contentType, contentId, inline }) => ({
        id: String(position),
        filename: name,
        content_type: contentType,
        content_disposition: inline ? 'inline' : 'attachment',
        content_id: contentId,
      })),
    },
  }
}
