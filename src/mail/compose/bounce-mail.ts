/**
 * bounce-mail - a report about one recipient of a message, for its sender (RFC 3461 6, RFC 3464, RFC 6522)
 *
 * Three parts: a text, the fields for programs, and the header of the message. Guarantees: the same input gives the
 * same bytes, 7-bit, with lines that have their end.
 */

import { cutFields, readHeaderFields } from '../header-fields.ts'
import { type ComposeInput, composeMessage } from './compose.ts'
import type { RawInput } from './raw.ts'

/** The outcome that is reported, with the words of RFC 3464 2.3.3. */
export type BounceMailAction = 'failed' | 'delayed' | 'relayed'

export interface BounceMailInput {
  /** Of the report; the same each time. */
  readonly reportId: string
  readonly action: BounceMailAction
  /** Of the event. */
  readonly atMs: number
  /** Reply of the receiving server, or our own text; null if there is none. */
  readonly response: string | null
  readonly code: number | null
  readonly expired: boolean
  readonly recipient: string
  /** Whether the client named the recipient as the original one (ORCPT). */
  readonly hasOriginal: boolean
  readonly envid: string | null
  /** The message: its sender gets the report. */
  readonly message: Pick<ComposeInput, 'messageId' | 'acceptedAtMs' | 'from' | 'to' | 'cc' | 'subject' | 'headers'>
  /** Its own Message-ID; null if it has none. */
  readonly ownMessageId: string | null
  readonly serviceDomain: string
  /** The name in EHLO. */
  readonly hostname: string
}

const SUBJECTS: Readonly<Record<BounceMailAction, string>> = {
  failed: 'Undelivered mail: delivery has failed',
  delayed: 'Delayed mail: delivery is still being tried',
  relayed: 'Mail was handed to the receiving server',
}
const STATUS = { failed: '5.0.0', delayed: '4.0.0', relayed: '2.0.0' } as const
/** Status of mail that could not be delivered in time (RFC 3463 3.5). */
const EXPIRED_STATUS = '4.4.7'
const ENHANCED = /^(?:\d{3}[ -])?([245]\.\d{1,3}\.\d{1,3})\b/
/** Fields of the composed message that the original had in another form, or not at all. */
const NOT_ORIGINAL = /^(?:mime-version|content-.*|x-sendwright-.*|feedback-id)$/
/** A field of ids is written as it was given, also in 8-bit letters. */
const NOT_ASCII = /[^\x00-\x7e]/gu
/** Octets of a field's value in one line (RFC 5322 2.1.1), the name left aside. */
const VALUE_CHARS_MAX = 900

/** The mail of a report. */
export function composeBounceMail(input: BounceMailInput): RawInput {
  const { reportId, atMs, serviceDomain } = input
  const from = { address: `postmaster@${serviceDomain}`, name: null }
  const raw = Buffer.from(writeMail(input, from.address))
  return { messageId: reportId, acceptedAtMs: atMs, from, feedbackId: null, receivedBy: null, raw }
}

function writeMail(input: BounceMailInput, from: string): string {
  const { reportId, action, atMs, message, serviceDomain } = input
  const boundary = `report-${reportId}`
  const part = (type: string, text: string) => `--${boundary}\r\nContent-Type: ${type}\r\n\r\n${text}\r\n`
  return [
    `From: Mail Delivery <${from}>\r\n`,
    `To: <${message.from.address}>\r\n`,
    `Subject: ${SUBJECTS[action]}\r\n`,
    `Date: ${formatDate(atMs)}\r\n`,
    `Message-ID: <${reportId}@${serviceDomain}>\r\n`,
    'Auto-Submitted: auto-replied\r\n',
    'MIME-Version: 1.0\r\n',
    `Content-Type: multipart/report; report-type=delivery-status;\r\n boundary="${boundary}"\r\n\r\n`,
    part('text/plain; charset=us-ascii', writeText(input)),
    part('message/delivery-status', writeStatus(input)),
    part('text/rfc822-headers', writeHeader(input)),
    `--${boundary}--\r\n`,
  ].join('')
}

function writeText({ action, recipient, message, response }: BounceMailInput): string {
  const outcomes = {
    failed: `could not be delivered to ${recipient}. It will not be tried again.`,
    delayed: `has not been delivered to ${recipient} yet. It is still being tried; you need not send it again.`,
    relayed: `was handed to the receiving server of ${recipient}. That server may not report its delivery.`,
  }
  const lines = [`Your message of ${formatDate(message.acceptedAtMs)}`, outcomes[action]]
  if (response !== null) lines.push('', 'The reason:', '', `  ${plain(response)}`)
  return `${lines.join('\r\n')}\r\n`
}

/** The fields of the message and of its recipient (RFC 3464 2.2, 2.3). */
function writeStatus(input: BounceMailInput): string {
  const { action, atMs, response, code, envid, recipient, hasOriginal, message, hostname } = input
  const message1 = [
    ...(envid === null ? [] : [`Original-Envelope-Id: ${plain(envid)}`]),
    `Reporting-MTA: dns; ${hostname}`,
    `Arrival-Date: ${formatDate(message.acceptedAtMs)}`,
  ]
  const recipient1 = [
    ...(hasOriginal ? [`Original-Recipient: rfc822; ${recipient}`] : []),
    `Final-Recipient: rfc822; ${recipient}`,
    `Action: ${action}`,
    `Status: ${statusOf(input)}`,
    ...(response === null ? [] : [`Diagnostic-Code: ${code === null ? 'x-sendwright' : 'smtp'}; ${plain(response)}`]),
    `Last-Attempt-Date: ${formatDate(atMs)}`,
  ]
  return [...message1, '', ...recipient1, ''].join('\r\n')
}

function statusOf({ action, response, expired }: BounceMailInput): string {
  if (expired) return EXPIRED_STATUS
  const found = ENHANCED.exec(response ?? '')?.[1]
  // The reply's class must be that of the action (RFC 3464 2.3.4).
  return found?.startsWith(STATUS[action].charAt(0)) ? found : STATUS[action]
}

/** The header of the message, from what the log has. */
function writeHeader({ message, ownMessageId }: BounceMailInput): string {
  const built = composeMessage({ ...message, text: '', html: null, attachments: [], boundarySeed: message.messageId })
  const read = readHeaderFields(built)
  const fields = read.ok ? read.fields : []
  const isCut = (name: string) => NOT_ORIGINAL.test(name) || (ownMessageId !== null && name === 'message-id')
  const cut = cutFields(
    built,
    fields.filter(({ name }) => isCut(name)),
  )
    .toString()
    .replace(NOT_ASCII, '?')
  const own = ownMessageId === null ? '' : `Message-ID: ${plain(ownMessageId)}\r\n`
  return own + cut.slice(0, cut.indexOf('\r\n\r\n') + 2)
}

/** A text as the value of one line. */
function plain(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?').slice(0, VALUE_CHARS_MAX)
}

function formatDate(ms: number): string {
  return new Date(ms).toUTCString().replace('GMT', '+0000')
}
