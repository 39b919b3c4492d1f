/**
 * messages - GET /messages/outbound and GET /messages/outbound/{id}/details
 */

import type { Message, MessageEvent, MessageSummary } from '../../../schemas/message.ts'
import { bounceNumber } from '../../views/format/bounce.ts'
import type { DoorHandler } from '../common/door-table.ts'
import { formatMailbox } from '../common/mailbox.ts'
import { answerWith, refuseFields } from '../common/own-api.ts'
import { pageFrom, readOwnPages } from '../common/pages.ts'
import { instant, parseListPart, parseSpan, readParameters } from './query.ts'
import { findStream, streamNames } from './streams.ts'

const PAGE_SIZE = 100
/** Pages that one request reads. */
const PAGES_MAX = 100
const KNOWN = [
  'count',
  'offset',
  'recipient',
  'fromemail',
  'tag',
  'status',
  'fromdate',
  'todate',
  'subject',
  'messagestream',
]
const METADATA = 'metadata_'

/** GET /messages/outbound */
export const postmarkListMessages: DoorHandler = async (request, own) => {
  const { parameters, issues } = readParameters(request, KNOWN)
  const { count, offset } = parseListPart(parameters, issues)
  const { fromMs, toMs } = parseSpan(parameters, issues)
  const metadata = Object.entries(request.query).filter(([name]) => name.toLowerCase().startsWith(METADATA))
  if (metadata.length > 1) issues.push({ path: metadata[1]?.[0] ?? '', message: 'Only one metadata field is searched' })
  if (issues.length > 0) return refuseFields(issues)
  const names = await streamNames(request, own)
  if ('answer' in names) return names.answer
  const { recipient, fromemail: from, tag, status, subject, messagestream } = parameters
  const stream = messagestream === undefined ? null : await findStream(request, own, messagestream)
  if (stream !== null && 'answer' in stream) return stream.answer
  const filter = {
    ...(stream !== null && { streamId: stream.streamId }),
    ...(recipient !== undefined && { recipient }),
    ...(from !== undefined && { from }),
    ...(tag !== undefined && { tag }),
    ...(metadata[0] !== undefined && { metadata: { [metadata[0][0].slice(METADATA.length)]: metadata[0][1] } }),
    ...(fromMs !== null && { submittedFrom: instant(fromMs) }),
    ...(toMs !== null && { submittedTo: instant(toMs) }),
  }
  const keep = (message: MessageSummary) =>
    (status === undefined || convertStatus(message).toLowerCase() === status.toLowerCase()) &&
    (subject === undefined || (message.subject ?? '').toLowerCase().includes(subject.toLowerCase()))
  const read = async (after: string | null) => {
    const body = { ...filter, limit: PAGE_SIZE, ...(after !== null && { after }) }
    return pageFrom<MessageSummary>(
      await own.call('searchMessages', request, { body, rename: (path: string) => FIELDS[path] ?? path }),
      'messages',
    )
  }
  const seen = await readOwnPages(read, { pagesMax: PAGES_MAX, enough: count + offset + 1, keep })
  if ('answer' in seen) return seen.answer
  const { items: found } = seen
  const Messages = found.slice(offset, offset + count).map((message) => shown(message, names))
  return { status: 200, json: { TotalCount: found.length, Messages } }
}

const FIELDS: Readonly<Record<string, string>> = { from: 'fromemail' }

/** GET /messages/outbound/{id}/details */
export const postmarkReadMessage: DoorHandler = async (request, own) => {
  const names = await streamNames(request, own)
  if ('answer' in names) return names.answer
  const answer = await own.call('readMessage', request, { params: request.params })
  return answerWith<Message>(answer, (message) => ({
    json: {
      ...shown(message, names),
      TextBody: message.text,
      HtmlBody: message.html,
      // The source of a message is not kept.
      Body: '',
      Attachments: message.attachments.map(({ name }) => name),
      MessageEvents: message.events.map((event) => convertEvent(event, message.messageId)),
    },
  }))
}

function shown(message: MessageSummary, names: ReadonlyMap<string, string>): object {
  const { messageId, from, subject, submittedAt, tag, metadata, recipients, streamId, test } = message
  const of = (kind: 'to' | 'cc' | 'bcc') =>
    recipients.filter((one) => one.kind === kind).map(({ recipient, name }) => ({ Email: recipient, Name: name }))
  return {
    MessageID: messageId,
    Tag: tag,
    To: of('to'),
    Cc: of('cc'),
    Bcc: of('bcc'),
    Recipients: recipients.map(({ recipient }) => recipient),
    ReceivedAt: submittedAt,
    From: formatMailbox(from),
    Subject: subject,
    Attachments: [],
    Status: convertStatus(message),
    TrackOpens: false,
    TrackLinks: 'None',
    Metadata: metadata,
    MessageStream: names.get(streamId) ?? '',
    Sandboxed: test,
  }
}

/** Queued until the first attempt of any recipient. */
function convertStatus({ recipients }: MessageSummary): string {
  return recipients.every(({ status }) => status === 'accepted' || status === 'scheduled') ? 'Queued' : 'Sent'
}

/** Names of Postmark's events; an event that it does not have keeps no place in the list of its types. */
const TYPES: Readonly<Record<MessageEvent['event'], string>> = {
  delivered: 'Delivered',
  deferred: 'Transient',
  bounced: 'Bounced',
  spam_complaint: 'SpamComplaint',
  unsubscribed: 'SubscriptionChanged',
}

function convertEvent(event: MessageEvent, messageId: string): object {
  const { recipient, occurredAt, details, route } = event
  const words = details.response ?? ''
  const isEnd = event.event === 'bounced' || event.event === 'spam_complaint'
  return {
    Recipient: recipient,
    Type: TYPES[event.event],
    ReceivedAt: occurredAt,
    Details: isEnd
      ? { Summary: words, BounceID: String(bounceNumber({ occurredAt, messageId, recipient })) }
      : { DeliveryMessage: words, DestinationServer: route?.host ?? '', DestinationIP: route?.address ?? '' },
  }
}
