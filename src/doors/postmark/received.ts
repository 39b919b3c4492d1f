/**
 * received - GET /messages/inbound and GET /messages/inbound/{id}/details
 */

import type { ReceivedMessage, ReceivedSummary } from '../../../schemas/inbound.ts'
import type { DoorHandler } from '../common/door-table.ts'
import { formatMailbox } from '../common/mailbox.ts'
import { answerWith, refuseFields } from '../common/own-api.ts'
import { pageFrom, readOwnPages } from '../common/pages.ts'
import { instant, parseListPart, parseSpan, readParameters } from './query.ts'
import { streamNames } from './streams.ts'

const PAGE_SIZE = 100
/** Pages that one request reads. */
const PAGES_MAX = 100
const KNOWN = ['count', 'offset', 'recipient', 'fromemail', 'mailboxhash', 'subject', 'status', 'fromdate', 'todate']

type Person = ReceivedMessage['to'][number]

/** GET /messages/inbound */
export const postmarkListReceived: DoorHandler = async (request, own) => {
  const { parameters, issues } = readParameters(request, KNOWN)
  const { count, offset } = parseListPart(parameters, issues)
  const { fromMs, toMs } = parseSpan(parameters, issues)
  if (issues.length > 0) return refuseFields(issues)
  const names = await streamNames(request, own)
  if ('answer' in names) return names.answer
  const { recipient, fromemail: from, mailboxhash: mailboxHash, subject, status = 'processed' } = parameters
  const filter = {
    ...(recipient !== undefined && { recipient }),
    ...(from !== undefined && { from }),
    ...(mailboxHash !== undefined && { mailboxHash }),
    ...(fromMs !== null && { receivedFrom: instant(fromMs) }),
    ...(toMs !== null && { receivedTo: instant(toMs) }),
  }
  // Received mail has the one status of mail that was processed.
  const keep = (message: ReceivedSummary) =>
    status.toLowerCase() === 'processed' &&
    (subject === undefined || (message.subject ?? '').toLowerCase().includes(subject.toLowerCase()))
  const read = async (after: string | null) => {
    const body = { ...filter, limit: PAGE_SIZE, ...(after !== null && { after }) }
    return pageFrom<ReceivedSummary>(await own.call('searchReceived', request, { body }), 'messages')
  }
  const seen = await readOwnPages(read, { pagesMax: PAGES_MAX, enough: count + offset + 1, keep })
  if ('answer' in seen) return seen.answer
  const { items: found } = seen
  const InboundMessages = found.slice(offset, offset + count).map((message) => ({
    ...shown(message, names),
    To: message.envelopeRecipient,
    ToFull: [{ Email: message.envelopeRecipient, Name: '', MailboxHash: message.mailboxHash ?? '' }],
    Cc: '',
    CcFull: [],
    ReplyTo: '',
    Attachments: [],
  }))
  return { status: 200, json: { TotalCount: found.length, InboundMessages } }
}

/** GET /messages/inbound/{id}/details */
export const postmarkReadReceived: DoorHandler = async (request, own) => {
  const names = await streamNames(request, own)
  if ('answer' in names) return names.answer
  const answer = await own.call('readReceived', request, { params: request.params })
  return answerWith<ReceivedMessage>(answer, (message) => ({
    json: {
      ...shown(message, names),
      To: listOf(message.to),
      ToFull: message.to.map(fullOf),
      Cc: listOf(message.cc),
      CcFull: message.cc.map(fullOf),
      ReplyTo: listOf(message.replyTo),
      TextBody: message.text ?? '',
      HtmlBody: message.html ?? '',
      StrippedTextReply: '',
      Headers: message.headers.map(({ name, value }) => ({ Name: name, Value: value })),
      BlockedReason: null,
      // The bytes of an attachment are those of our own route.
      Attachments: message.attachments.map(({ name, contentType, contentId, size, position }) => ({
        Name: name ?? `attachment-${position}`,
        ContentType: contentType,
        ContentLength: size,
        ContentID: contentId === null ? '' : `cid:${contentId}`,
      })),
    },
  }))
}

function shown(message: ReceivedSummary, names: ReadonlyMap<string, string>): object {
  const { inboundMessageId, streamId, from, subject, date, receivedAt, envelopeRecipient, mailboxHash } = message
  return {
    From: from?.address ?? '',
    FromName: from?.name ?? '',
    FromFull: fullOf(from ?? { address: '', name: null }),
    Bcc: '',
    BccFull: [],
    OriginalRecipient: envelopeRecipient,
    Subject: subject ?? '',
    Date: date ?? receivedAt,
    MailboxHash: mailboxHash ?? '',
    Tag: '',
    MessageID: inboundMessageId,
    MessageStream: names.get(streamId) ?? '',
    Status: 'Processed',
  }
}

function fullOf({ address, name }: Person) {
  return { Email: address, Name: name ?? '', MailboxHash: '' }
}

function listOf(people: readonly Person[]): string {
  return people.map(({ address, name }) => formatMailbox({ email: address, name })).join(', ')
}
