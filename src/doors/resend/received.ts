/**
 * received - /emails/receiving and below: mail of the server's inbound streams
 *
 * The download URL of an attachment or of the raw mail is that of our own route, and needs the key.
 */

import type { ReceivedMessage, ReceivedSummary } from '../../../schemas/inbound.ts'
import { refusalReply } from '../../http/respond.ts'
import type { DoorHandler } from '../common/door-table.ts'
import { formatMailbox } from '../common/mailbox.ts'
import { answerWith, isAccepted, type OwnApi } from '../common/own-api.ts'
import { pageFrom, readClientPage } from '../common/pages.ts'
import { parsePageAsked } from './lists.ts'

/** Query of GET /emails/receiving/{id}: images within HTML stay references. */
export const RECEIVED_QUERY = {
  type: 'object',
  properties: { html_format: { enum: ['cid'] } },
  additionalProperties: false,
} as const

type Attachment = ReceivedMessage['attachments'][number]
type Person = ReceivedMessage['to'][number]

/** GET /emails/receiving */
export const resendListReceived: DoorHandler = async (request, own) => {
  const page = await readClientPage<ReceivedSummary>(
    async (after, limit) => {
      const body = { limit, ...(after !== null && { after }) }
      return pageFrom(await own.call('searchReceived', request, { body }), 'messages')
    },
    parsePageAsked(request),
    { idOf: ({ inboundMessageId }) => inboundMessageId },
  )
  if ('answer' in page) return page.answer
  const data = page.items.map((message) => {
    const unread = { cc: null, bcc: null, reply_to: null, message_id: null, attachments: null }
    return { ...shown(message), to: [message.envelopeRecipient], ...unread }
  })
  return { status: 200, json: { object: 'list', has_more: page.hasMore, data } }
}

/** GET /emails/receiving/{id} */
export const resendReadReceived: DoorHandler = async (request, own) => {
  const answer = await own.call('readReceived', request, { params: request.params })
  return answerWith<ReceivedMessage>(answer, (message) => {
    const { inboundMessageId: id, headers, text, html, messageIdHeader, contentExpiresAt } = message
    return {
      json: {
        object: 'email',
        ...shown(message),
        to: message.to.map(mailboxOf),
        cc: message.cc.map(mailboxOf),
        bcc: [],
        reply_to: message.replyTo.map(mailboxOf),
        message_id: messageIdHeader,
        html,
        text,
        headers: Object.fromEntries(headers.map(({ name, value }) => [name.toLowerCase(), value])),
        raw: { download_url: `${own.baseUrl}/v1/inbound/${id}/raw`, expires_at: contentExpiresAt },
        attachments: message.attachments.map((one) => ({
          id: String(one.position),
          filename: one.name,
          size: one.size,
          content_type: one.contentType,
          content_id: one.contentId,
          content_disposition: one.inline ? 'inline' : 'attachment',
        })),
      },
    }
  })
}

/** GET /emails/receiving/{id}/attachments */
export const resendListAttachments: DoorHandler = async (request, own) => {
  const answer = await own.call('readReceived', request, { params: request.params })
  return answerWith<ReceivedMessage>(answer, (message) => {
    const data = message.attachments.map((one) => convertAttachment(own, message, one))
    return { json: { object: 'list', has_more: false, data } }
  })
}

/** GET /emails/receiving/{id}/attachments/{attachmentId} */
export const resendReadAttachment: DoorHandler = async (request, own) => {
  const { id = '', attachmentId } = request.params
  const answer = await own.call('readReceived', request, { params: { id } })
  if (!isAccepted(answer)) return answer
  const message = answer.json as ReceivedMessage
  const found = message.attachments.find(({ position }) => String(position) === attachmentId)
  if (found === undefined) return refusalReply('not_found')
  return { status: 200, json: { object: 'attachment', ...convertAttachment(own, message, found) } }
}

function convertAttachment({ baseUrl }: OwnApi, message: ReceivedMessage, one: Attachment): object {
  const { inboundMessageId, contentExpiresAt } = message
  return {
    id: String(one.position),
    ...(one.name !== null && { filename: one.name }),
    size: one.size,
    content_type: one.contentType,
    content_disposition: one.inline ? 'inline' : 'attachment',
    ...(one.contentId !== null && { content_id: one.contentId }),
    download_url: `${baseUrl}/v1/inbound/${inboundMessageId}/attachments/${one.position}`,
    expires_at: contentExpiresAt,
  }
}

function shown({ inboundMessageId, from, subject, receivedAt, envelopeRecipient }: ReceivedSummary) {
  return {
    id: inboundMessageId,
    from: from === null ? '' : mailboxOf(from),
    created_at: receivedAt,
    subject: subject ?? '',
    received_for: [envelopeRecipient],
  }
}

function mailboxOf({ address, name }: Person): string {
  return formatMailbox({ email: address, name })
}
