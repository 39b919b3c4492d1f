/** explain - why a message did or did not arrive, in sentences about each state and each reply */
import type { Message } from '../../../schemas/message.ts'

type Recipient = Message['recipients'][number]
type Event = Message['events'][number]

/** By class of the reply, for permanent refusals. */
const BOUNCES: Readonly<Record<string, string>> = {
  InvalidRecipient: 'The mailbox does not exist.',
  InactiveMailbox: 'The mailbox is no longer in use.',
  BadDomain: 'The domain does not exist or accepts no mail.',
  QuotaIssues: 'The mailbox is full.',
  SpamBlock: 'The receiving server blocks the sending IP address or domain. Its reply names the list.',
  PolicyRelated: 'A policy of the receiving server rejects the message.',
  ContentRelated: 'The receiving server rejects the content or the size.',
  AuthenticationFailed: 'SPF, DKIM or DMARC failed. Check the DNS records of the sending domain.',
  InvalidSender: 'The receiving server rejects the sender. Check the From address and the records of its domain.',
  RelayDenied: 'The receiving server does not accept mail for this domain. Its MX records may be wrong.',
  RoutingErrors: 'No mail server of the domain could be used. Its DNS records may be wrong.',
  NoAnswerFromHost: 'No mail server of the domain answered.',
  BadConnection: 'The connection to the receiving server failed each time.',
  Suppressed: 'The address is on the suppression list of the stream, so nothing was sent.',
}

const STATES: Readonly<Record<Recipient['status'], string>> = {
  accepted:
    'The message waits for its first attempt. An attempt starts at once unless the account, the stream or the destination is paused.',
  scheduled: 'The message is scheduled and was not sent yet.',
  suppressed: 'The address is on the suppression list of the stream, so nothing was sent.',
  deferred: 'The last attempt failed temporarily. The service tries again by itself, for up to 48 hours.',
  delivered: 'The receiving server accepted the message. It may still be in a spam folder, which no sender can see.',
  bounced: 'The receiving server rejected the message for good, or the attempts ended.',
  cancelled: 'The message was cancelled before it was sent.',
  failed: 'The message could not be sent.',
}

/** The history of each recipient of a message, in our sentences and with the replies. */
export function explain(message: Message): object {
  return {
    messageId: message.messageId,
    status: message.status,
    test: message.test,
    submittedAt: message.submittedAt,
    recipients: message.recipients.map((recipient) => ({
      recipient: recipient.recipient,
      status: recipient.status,
      meaning: STATES[recipient.status],
      attempts: recipient.attempts,
      nextAttemptAt: recipient.nextAttemptAt,
      timeline: message.events.filter((event) => event.recipient === recipient.recipient).map(explainEvent),
    })),
  }
}

function explainEvent({ event, occurredAt, details }: Event): object {
  const { code, response, classification, hard, expired } = details
  return { occurredAt, event, meaning: describeMeaning(event, details), code, response, classification, hard, expired }
}

function describeMeaning(event: Event['event'], { classification, hard, expired, source }: Event['details']): string {
  if (event === 'delivered') return STATES.delivered
  if (event === 'deferred') return STATES.deferred
  if (event === 'spam_complaint') return 'The recipient reported the message as spam. The address is suppressed.'
  if (event === 'unsubscribed') return `The recipient unsubscribed (${source ?? 'link'}). The address is suppressed.`
  const why = expired ? 'All attempts within 48 hours failed.' : (BOUNCES[classification ?? ''] ?? STATES.bounced)
  return hard ? `${why} The address is suppressed now.` : why
}
