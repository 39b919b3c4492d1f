/**
 * postmark - an event as Postmark's webhooks carry it
 */

import type { ReceivedMessage } from '../../../schemas/inbound.ts'
import type { EventBody } from '../../../schemas/webhook.ts'
import { type BounceEvent, bounceDetails, bounceNumber, classifyBounce, numberOfId } from './bounce.ts'
import type { EventSource } from './source.ts'

/** An event of a message. */
interface MessageEvent extends BounceEvent {
  readonly serverId: string
  readonly tag: string | null
  readonly metadata: Readonly<Record<string, string>>
}

type Received = Omit<ReceivedMessage, 'contentAvailable' | 'contentExpiresAt'> & { readonly serverId: string }
type Person = ReceivedMessage['to'][number]

/** The body of a webhook. */
export function postmarkBody(event: EventBody, source: EventSource): object {
  if (event.event === 'inbound') return inboundBody(event as unknown as Partial<Received>, source)
  return messageBody(event as unknown as MessageEvent, source)
}

function messageBody(event: MessageEvent, { from, subject, stream }: EventSource): object {
  const { messageId, recipient, occurredAt, tag, metadata, serverId, details } = event
  const of = {
    MessageID: messageId,
    ServerID: numberOfId(serverId),
    MessageStream: stream,
    Tag: tag ?? '',
    Metadata: metadata,
  }
  if (event.event === 'delivered')
    return {
      RecordType: 'Delivery',
      ...of,
      Recipient: recipient,
      DeliveredAt: occurredAt,
      Details: bounceDetails(event),
    }
  if (event.event === 'unsubscribed')
    return {
      RecordType: 'SubscriptionChange',
      ...of,
      Recipient: recipient,
      ChangedAt: occurredAt,
      Origin: 'Recipient',
      SuppressSending: true,
      SuppressionReason: 'ManualSuppression',
    }
  const { Type, TypeCode, Name, Description } = classifyBounce(event)
  const isInactive = event.event !== 'bounced' || details.hard === true
  return {
    RecordType: event.event === 'spam_complaint' ? 'SpamComplaint' : 'Bounce',
    ...of,
    ID: bounceNumber(event),
    Type,
    TypeCode,
    Name,
    Description,
    Details: bounceDetails(event),
    Email: recipient,
    From: from.email,
    BouncedAt: occurredAt,
    DumpAvailable: false,
    Inactive: isInactive,
    CanActivate: event.event === 'bounced' && isInactive,
    Subject: subject ?? '',
    Content: '',
  }
}

/** Received mail. A webhook that gets references has no content in it. */
function inboundBody(event: Partial<Received>, { stream, raw }: EventSource): object {
  const { from, to = [], cc = [], replyTo = [], headers = [], attachments = [] } = event
  return {
    From: from?.address ?? '',
    FromName: from?.name ?? '',
    FromFull: fullOf(from ?? { address: '', name: null }),
    To: listOf(to),
    ToFull: to.map(fullOf),
    Cc: listOf(cc),
    CcFull: cc.map(fullOf),
    Bcc: '',
    BccFull: [],
    ReplyTo: listOf(replyTo),
    OriginalRecipient: event.envelopeRecipient,
    Subject: event.subject ?? '',
    Date: event.date ?? event.receivedAt,
    MailboxHash: event.mailboxHash ?? '',
    Tag: '',
    MessageID: event.inboundMessageId,
    MessageStream: stream,
    TextBody: event.text ?? '',
    HtmlBody: event.html ?? '',
    StrippedTextReply: '',
    ...(raw !== undefined && { RawEmail: raw }),
    Headers: headers.map(({ name, value }) => ({ Name: name, Value: value })),
    Attachments: attachments.map(({ name, contentType, contentId, size, position }) => ({
      Name: name ?? `attachment-${position}`,
      ContentType: contentType,
      ContentLength: size,
      ContentID: contentId === null ? '' : `cid:${contentId}`,
    })),
  }
}

function fullOf({ address, name }: Person): object {
  return { Email: address, Name: name ?? '', MailboxHash: '' }
}

function listOf(people: readonly Person[]): string {
  return people.map(({ address }) => address).join(', ')
}
