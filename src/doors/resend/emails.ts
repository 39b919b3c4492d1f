/**
 * emails - GET /emails/{id} and GET /emails
 */

import type { Message, MessageSummary } from '../../../schemas/message.ts'
import { formatMessageId } from '../../mail/compose/compose.ts'
import type { DoorHandler } from '../common/door-table.ts'
import { formatMailbox, parseMailboxes } from '../common/mailbox.ts'
import { answerWith } from '../common/own-api.ts'
import { pageFrom, readClientPage } from '../common/pages.ts'
import { parsePageAsked } from './lists.ts'

/** Resend's words for the status of a recipient. */
const LAST_EVENTS: Readonly<Record<MessageSummary['recipients'][number]['status'], string>> = {
  accepted: 'queued',
  scheduled: 'scheduled',
  suppressed: 'suppressed',
  deferred: 'delivery_delayed',
  delivered: 'delivered',
  bounced: 'bounced',
  cancelled: 'canceled',
  failed: 'failed',
}

/** GET /emails/{id} */
export const resendReadEmail: DoorHandler = async (request, own) => {
  const answer = await own.call('readMessage', request, { params: request.params })
  return answerWith<Message>(answer, (message) => {
    const replyTo = Object.entries(message.headers).find(([name]) => name.toLowerCase() === 'reply-to')?.[1]
    return {
      json: {
        object: 'email',
        ...shown(message),
        message_id: message.messageIdHeader,
        reply_to: replyTo === undefined ? [] : parseMailboxes(replyTo).map(formatMailbox),
        html: message.html,
        text: message.text,
        tags: Object.entries(message.metadata).map(([name, value]) => ({ name, value })),
      },
    }
  })
}

/** GET /emails */
export const resendListEmails: DoorHandler = async (request, own) => {
  const page = await readClientPage<MessageSummary>(
    async (after, limit) => {
      const body = { limit, ...(after !== null && { after }) }
      return pageFrom(await own.call('searchMessages', request, { body }), 'messages')
    },
    parsePageAsked(request),
    { idOf: ({ messageId }) => messageId },
  )
  if ('answer' in page) return page.answer
  const data = page.items.map((message) => {
    const { source, messageId, from } = message
    const made = formatMessageId({ messageId, from: { address: from.email, name: null } })
    // A message that came over SMTP may have brought its own. The addresses of Reply-To are read with the message only.
    return { ...shown(message), message_id: source === 'smtp' ? null : made, reply_to: null }
  })
  return { status: 200, json: { object: 'list', has_more: page.hasMore, data } }
}

function shown(message: MessageSummary) {
  const { messageId, from, subject, submittedAt, sendAt, recipients } = message
  const of = (kind: 'to' | 'cc' | 'bcc') => recipients.filter((one) => one.kind === kind)
  const listed = (kind: 'to' | 'cc' | 'bcc') =>
    of(kind).map(({ recipient, name }) => formatMailbox({ email: recipient, name }))
  return {
    id: messageId,
    from: formatMailbox(from),
    to: listed('to'),
    cc: listed('cc'),
    bcc: listed('bcc'),
    created_at: submittedAt,
    subject,
    last_event: convertLastEvent(message),
    scheduled_at: sendAt,
  }
}

/** The last event of any recipient; a complaint is later than all others. */
function convertLastEvent({ recipients }: MessageSummary): string {
  if (recipients.some(({ complainedAt }) => complainedAt !== null)) return 'complained'
  const [first, ...others] = recipients
  if (first === undefined) return 'queued'
  const last = others.reduce((latest, one) => (one.statusAt > latest.statusAt ? one : latest), first)
  return LAST_EVENTS[last.status]
}
