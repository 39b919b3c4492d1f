/**
 * compose-plain - builds the most usual kind of message without a tree: plain headers, text or html or both, all ASCII
 *
 * It writes byte for byte what `composeMessage` writes, at a fifth of its cost, and answers null wherever it would have
 * to know more than that: other characters, long names, fields of the client's own, attachments. The test compares both.
 *
 * RFC 5322, RFC 2045 6.7, RFC 2046 5.1.4
 */

import { foldLines } from 'nodemailer/lib/mime-funcs'
import { encode as encodeQp, wrap as wrapQp } from 'nodemailer/lib/qp'
import { type ComposeAddress, type ComposeInput, formatMessageId } from './compose.ts'

/** A body of more is not the usual kind. */
const BODY_CHARS_MAX = 64 * 1024
/** Octets of a line of header or body before it is folded or encoded. */
const LINE_OCTETS_MAX = 76
/** A longer one is no plain parameter of Content-Type any more. */
const SEED_CHARS_MAX = 40
const TOKEN = /^[\w-]+$/
/** Short enough to stand in one line. */
const FEEDBACK_ID = /^[\w:-]{1,60}$/
/** Printable ASCII that neither begins nor ends with a blank, without runs of them. */
const PLAIN_TEXT = /^(?:[\x21-\x7e]+(?: {1,9}[\x21-\x7e]+){0,200})$/
const BARE_NAME = /^[\w ]*$/
/** Written as it is in every header; its last label has only letters, so that no domain is taken for a number. */
const PLAIN_ADDRESS = /^[\w+-]+(?:\.[\w+-]+)*@(?:[a-z0-9]+(?:-[a-z0-9]+)*\.)+[a-z]{2,}$/
const PLAIN_BODY = /^[\t\n\r\x20-\x7e]*$/
const LETTER = /[A-Za-z]/
const LONG_LINE = /^.{77,}/m
const LINE_ENDS = /\r\n|\r|\n/g

/** The bytes of a message, as `composeMessage` builds them; null where only that can. Never throws. */
export function composePlain(input: ComposeInput): Buffer | null {
  const fields = formatFields(input)
  if (fields === null) return null
  const text = formatPart('text/plain', input.text)
  const html = formatPart('text/html', input.html)
  if (text === null || html === null) return null
  if (text !== NO_PART && html !== NO_PART) return Buffer.from(formatBoth(input, fields, [text, html]), 'latin1')
  const only = text === NO_PART ? html : text
  if (only === NO_PART) return null
  const message = `${fields}\r\n${only.encoding}\r\nMIME-Version: 1.0\r\n${only.type}\r\n\r\n${only.content}`
  return Buffer.from(message.endsWith('\n') ? message : `${message}\r\n`, 'latin1')
}

/** A body part, ready to be written. */
interface Part {
  readonly type: string
  readonly encoding: string
  readonly content: string
}

const NO_PART: Part = { type: '', encoding: '', content: '' }

/** The fields before those of MIME; null where one of them is not plain. */
function formatFields(input: ComposeInput): string | null {
  const { messageId, acceptedAtMs, from, to, cc, subject, headers, feedbackId, attachments, boundarySeed } = input
  if (attachments.length > 0 || !TOKEN.test(messageId) || !isPlainText(subject)) return null
  for (const _name in headers) return null
  if (feedbackId !== undefined && !FEEDBACK_ID.test(feedbackId)) return null
  if (!TOKEN.test(boundarySeed) || boundarySeed.length > SEED_CHARS_MAX) return null
  if (subject.includes('"') || subject.includes('=?')) return null
  const [sender, shown, copied] = [formatAddresses([from]), formatAddresses(to), formatAddresses(cc)]
  if (sender === null || shown === null || copied === null) return null
  const lines = [`X-Sendwright-Id: ${messageId}`]
  if (feedbackId !== undefined) lines.push(`Feedback-ID: ${feedbackId}`)
  lines.push(fold(`From: ${sender}`))
  if (shown !== '') lines.push(fold(`To: ${shown}`))
  if (copied !== '') lines.push(fold(`Cc: ${copied}`))
  const date = new Date(acceptedAtMs).toUTCString().replace('GMT', '+0000')
  lines.push(fold(`Subject: ${subject}`), fold(`Message-ID: ${formatMessageId(input)}`), `Date: ${date}`)
  return lines.join('\r\n')
}

function formatBoth({ boundarySeed }: ComposeInput, fields: string, parts: readonly Part[]): string {
  const boundary = `--_NmP-${boundarySeed}-Part_1`
  const type = fold(`Content-Type: multipart/alternative; boundary="${boundary}"`)
  const bodies = parts.map((one) => `--${boundary}\r\n${one.type}\r\n${one.encoding}\r\n\r\n${one.content}\r\n`)
  return `${fields}\r\nMIME-Version: 1.0\r\n${type}\r\n\r\n${bodies.join('')}--${boundary}--\r\n`
}

/** Addresses of one field, '' for none; null where one is not plain. */
function formatAddresses(addresses: readonly ComposeAddress[]): string | null {
  let field = ''
  for (const { address, name } of addresses) {
    if (!PLAIN_ADDRESS.test(address) || address.includes('xn--')) return null
    if (field !== '') field += ', '
    if (name === null || name === '') field += address
    else if (!isPlainText(name)) return null
    else field += `${BARE_NAME.test(name) ? name : `"${name.replace(/["\\]/g, '\\$&')}"`} <${address}>`
  }
  return field
}

/** A part with its fields; null where it is not plain. */
function formatPart(type: string, body: string | null): Part | null {
  if (body === null || body === '') return NO_PART
  if (body.length > BODY_CHARS_MAX || !PLAIN_BODY.test(body)) return null
  const content = body.replace(LINE_ENDS, '\r\n')
  const isLong = LONG_LINE.test(content)
  // Without a letter it would become base64.
  if (isLong && !LETTER.test(content)) return null
  return {
    type: `Content-Type: ${type}; charset=utf-8`,
    encoding: `Content-Transfer-Encoding: ${isLong ? 'quoted-printable' : '7bit'}`,
    content: isLong ? wrapQp(encodeQp(content), LINE_OCTETS_MAX) : content,
  }
}

/** Short words only: a run that no fold can bring under a line's limit is not plain. */
function isPlainText(text: string): boolean {
  return text.length <= 200 && PLAIN_TEXT.test(text)
}

function fold(line: string): string {
  return line.length < LINE_OCTETS_MAX ? line : foldLines(line, LINE_OCTETS_MAX)
}
