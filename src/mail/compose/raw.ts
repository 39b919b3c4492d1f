/**
 * raw - a message that came whole goes out as it came: missing fields are put before it, and its bytes are not changed
 *
 * Adds Date, Message-ID and MIME-Version if they are missing (RFC 6409 8). Our own fields are X-Sendwright-Id, and
 * Feedback-ID if the message has none. Received (RFC 5321 4.4) is made separately, because it is not part of the built
 * message; it does not name the client. Guarantees that the same input gives the same bytes; at most
 * `RAW_ADDED_BYTES_MAX` bytes are added.
 */

import { cutFields, readHeaderFields } from '../header-fields.ts'
import { type ComposeAddress, type ComposeInput, formatMessageId } from './compose.ts'
import { isListField, type ListField } from './list-fields.ts'

/** A message that came whole, as an attempt needs it. */
export interface RawInput {
  readonly messageId: string
  readonly acceptedAtMs: number
  readonly from: ComposeAddress
  /** Value of the Feedback-ID if the message has none; null for a message of the service itself. */
  readonly feedbackId: string | null
  /**
   * Everything the service writes on a broadcast stream, for one recipient, in place of the message's own fields;
   * absent elsewhere.
   */
  readonly list?: readonly ListField[]
  /** Name of the host that took it; null for a message of the service itself. */
  readonly receivedBy: string | null
  readonly raw: Buffer
}

/** A message to be sent: composed, or as it came. */
export type MailInput = ComposeInput | RawInput

/** The message as built. */
export function composeRaw(input: RawInput): Buffer {
  const { messageId, acceptedAtMs, feedbackId, list = [], raw } = input
  const read = readHeaderFields(raw)
  const fields = read.ok ? read.fields : []
  const own = list.length > 0 ? fields.filter(({ name }) => isListField(name)) : []
  const present = new Set(fields.filter((field) => !own.includes(field)).map(({ name }) => name))
  let added = `X-Sendwright-Id: ${messageId}\r\n`
  if (feedbackId !== null && !present.has('feedback-id')) added += `Feedback-ID: ${feedbackId}\r\n`
  for (const { name, value } of list) added += `${name}: ${value}\r\n`
  if (!present.has('date')) added += `Date: ${formatDate(acceptedAtMs)}\r\n`
  if (!present.has('message-id')) added += `Message-ID: ${formatMessageId(input)}\r\n`
  if (!present.has('mime-version')) added += 'MIME-Version: 1.0\r\n'
  return Buffer.concat([Buffer.from(added, 'latin1'), cutFields(raw, own)])
}

/** The trace field of a message received whole, with its line end; empty for a composed one. RFC 5321 4.4, RFC 3848 */
export function formatReceived(input: MailInput): string {
  if (!('raw' in input) || input.receivedBy === null) return ''
  const { receivedBy, messageId, acceptedAtMs } = input
  return `Received: by ${receivedBy} (Sendwright) with ESMTPSA\r\n id ${messageId}; ${formatDate(acceptedAtMs)}\r\n`
}

function formatDate(ms: number): string {
  return new Date(ms).toUTCString().replace('GMT', '+0000')
}
