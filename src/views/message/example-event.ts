/**
 * example-event - an event that has not happened, for testing a receiver
 *
 * Spec webhook.example, event.catalogue
 */

import { MONTHLY_CAP_DEFAULT } from '../../../schemas/limits.ts'
import type { EventBody, InboundContent, MessageEventName } from '../../../schemas/webhook.ts'
import { SIMULATOR_DOMAIN } from '../../mail/simulator.ts'
import { computeMonth, monthStartMs } from '../../state/calendar.ts'
import type { ServerState } from '../../state/server.ts'
import type { ExampleReference } from '../../state/webhook/item.ts'
import { formatInstant } from '../instant.ts'

const RECIPIENT = `recipient@${SIMULATOR_DOMAIN}`
const CAP_WARNING_USED = 0.8

/** The server of an example, and the form in which its webhook gets received mail. */
type ExampleServer = Pick<ServerState, 'serverId' | 'defaultStreamId'> & { readonly inboundContent: InboundContent }

const DETAILS: Readonly<Record<MessageEventName, object>> = {
  delivered: { code: 250, response: '250 2.0.0 OK (test)' },
  deferred: { code: 451, response: '451 4.3.0 Try again later' },
  bounced: {
    code: 550,
    response: '550 5.1.1 No such user',
    classification: 'InvalidRecipient',
    hard: true,
    expired: false,
  },
  spam_complaint: { feedbackType: 'abuse' },
  unsubscribed: { source: 'one_click' },
}

/** An example of an event, as of `atMs`. */
export function exampleEvent(server: ExampleServer, { event, madeUpId }: ExampleReference, atMs: number): EventBody {
  if (event === 'cap_warning' || event === 'cap_reached') return exampleCap(event, atMs)
  if (event === 'inbound') return exampleInbound(server, madeUpId, atMs)
  return {
    messageId: madeUpId,
    recipient: RECIPIENT,
    occurredAt: formatInstant(atMs),
    serverId: server.serverId,
    streamId: server.defaultStreamId,
    broadcastId: null,
    tag: null,
    metadata: {},
    test: true,
    event,
    details: DETAILS[event],
  }
}

function exampleCap(event: 'cap_warning' | 'cap_reached', atMs: number): EventBody {
  const month = computeMonth(atMs)
  return {
    event,
    scope: 'account',
    serverId: null,
    cap: MONTHLY_CAP_DEFAULT,
    used: event === 'cap_reached' ? MONTHLY_CAP_DEFAULT : MONTHLY_CAP_DEFAULT * CAP_WARNING_USED,
    periodStart: formatInstant(monthStartMs(month)),
    periodEnd: formatInstant(monthStartMs(month + 1)),
    occurredAt: formatInstant(atMs),
  }
}

const UNCHECKED = {
  spf: 'unchecked',
  spfHelo: 'unchecked',
  dkim: 'unchecked',
  dmarc: 'unchecked',
  dmarcPolicy: null,
  arc: 'unchecked',
  checkedAt: null,
} as const
const INBOUND_TEXT = 'Hello\n'
const INBOUND_SUBJECT = 'Hello'
const INBOUND_SENDER = `sender@${SIMULATOR_DOMAIN}`
/** Source of the same message. */
export const EXAMPLE_MAIL = `From: ${INBOUND_SENDER}\r\nTo: ${RECIPIENT}\r\nSubject: ${INBOUND_SUBJECT}\r\n\r\n${INBOUND_TEXT}`

/** A small message of text; the short form is the reference alone. */
function exampleInbound(
  { serverId, defaultStreamId, inboundContent }: ExampleServer,
  inboundMessageId: string,
  atMs: number,
): EventBody {
  const reference = {
    event: 'inbound',
    inboundMessageId,
    serverId,
    streamId: defaultStreamId,
    receivedAt: formatInstant(atMs),
    envelopeRecipient: RECIPIENT,
    mailboxHash: null,
    sizeBytes: 1024,
    attachmentCount: 0,
    hasText: true,
    hasHtml: false,
    authentication: UNCHECKED,
    parseIssue: null,
  } as const
  if (inboundContent === 'reference') return reference
  const messageIdHeader = `<${inboundMessageId}@${SIMULATOR_DOMAIN}>`
  return {
    ...reference,
    envelope: { sender: INBOUND_SENDER },
    from: { address: INBOUND_SENDER, name: null },
    replyTo: [],
    to: [{ address: RECIPIENT, name: null }],
    toCount: 1,
    cc: [],
    ccCount: 0,
    subject: INBOUND_SUBJECT,
    date: reference.receivedAt,
    messageIdHeader,
    inReplyTo: null,
    references: [],
    headers: [
      { name: 'From', value: INBOUND_SENDER },
      { name: 'To', value: RECIPIENT },
      { name: 'Subject', value: INBOUND_SUBJECT },
      { name: 'Message-ID', value: messageIdHeader },
    ],
    text: INBOUND_TEXT,
    html: null,
    attachments: [],
    contentOmitted: null,
  }
}
