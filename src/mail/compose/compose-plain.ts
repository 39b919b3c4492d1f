/**
 * compose-plain - builds the most usual kind of message without a tree: plain headers, text or html or both, all ASCII
 *
 * It writes byte for byte what `composeMessage` writes, at a fifth of its cost, and answers null wherever it would have
 * to know more than that: other characters, long names, fields of the client's own, attachments. The test compares
 * both.
 *
 * RFC 5322, RFC 2045 6.7, RFC 2046 5.1.4
 */

import { type ComposeAddress, type ComposeInput, formatMessageId } from './compose.ts'
import { encodePlain } from './qp-plain.ts'

/** A body of more is not the usual kind. */
const BODY_CHARS_MAX = 64 * 1024
/** Octets of a line of header or body before it is folded or encoded. */
const LINE_OCTETS_MAX = 76
/** A longer one is no longer a plain parameter of Content-Type. */
const SEED_CHARS_MAX = 40
const TOKEN = /^[\w-]+$/
/** Short enough for one line. */
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

/** The bytes of a message, as `composeMessage` builds them; null if only that can. Never throws. */
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

/** The fields before those of MIME; null if one is not plain. */
function formatFields(input: ComposeInput): string | null {
  const { messageId, acceptedAtMs, from, to, cc, subject, headers, feedbackId, list, attachments, boundarySeed } = input
  if (attachments.length > 0 || !TOKEN.test(messageId) || !isPlainText(subject)) return null
  for (const _name in headers) return null
  if (feedbackId !== undefined && !FEEDBACK_ID.test(feedbackId)) return null
  if (!TOKEN.test(boundarySeed) || boundarySeed.length > SEED_CHARS_MAX) return null
  if (subject.includes('"') || subject.includes('=?')) return null
  const [sender, shown, copied] = [formatAddresses([from]), formatAddresses(to), formatAddresses(cc)]
  if (sender === null || shown === null || copied === null) return null
  let fields = `X-Sendwright-Id: ${messageId}`
  if (feedbackId !== undefined) fields += `\r\nFeedback-ID: ${feedbackId}`
  for (const { name, value } of list ?? []) fields += `\r\n${name}: ${value}`
  fields += `\r\n${fold(`From: ${sender}`)}`
  if (shown !== '') fields += `\r\n${fold(`To: ${shown}`)}`
  if (copied !== '') fields += `\r\n${fold(`Cc: ${copied}`)}`
  fields += `\r\n${fold(`Subject: ${subject}`)}\r\n${fold(`Message-ID: ${formatMessageId(input)}`)}`
  return `${fields}\r\nDate: ${formatDate(acceptedAtMs)}`
}

function formatBoth({ boundarySeed }: ComposeInput, fields: string, parts: readonly Part[]): string {
  const boundary = `--_NmP-${boundarySeed}-Part_1`
  const type = fold(`Content-Type: multipart/alternative; boundary="${boundary}"`)
  let bodies = ''
  for (const one of parts) bodies += `--${boundary}\r\n${one.type}\r\n${one.encoding}\r\n\r\n${one.content}\r\n`
  return `${fields}\r\nMIME-Version: 1.0\r\n${type}\r\n\r\n${bodies}--${boundary}--\r\n`
}

/** Addresses of one field, '' for none; null if one is not plain. */
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

/** A part with its fields; null if it is not plain. */
function formatPart(type: string, body: string | null): Part | null {
  if (body === null || body === '') return NO_PART
  if (body.length > BODY_CHARS_MAX || !PLAIN_BODY.test(body)) return null
  const hasEnds = body.includes('\n') || body.includes('\r')
  const content = hasEnds ? body.replace(LINE_ENDS, '\r\n') : body
  const isLong = hasEnds ? LONG_LINE.test(content) : content.length > LINE_OCTETS_MAX
  // Without a letter it would become base64.
  if (isLong && !LETTER.test(content)) return null
  return {
    type: `Content-Type: ${type}; charset=utf-8`,
    encoding: `Content-Transfer-Encoding: ${isLong ? 'quoted-printable' : '7bit'}`,
    content: isLong ? encodePlain(content) : content,
  }
}

/** Short words only, because a run that cannot be folded below a line's limit is not plain. */
function isPlainText(text: string): boolean {
  return text.length <= 200 && PLAIN_TEXT.test(text)
}

/** A field in lines, each cut before the last blanks that keep it short, or behind a word that is longer. */
function fold(line: string): string {
  let folded = ''
  let rest = line
  while (rest.length >= LINE_OCTETS_MAX) {
    const end = foldAt(rest)
    if (end === rest.length) break
    folded += `${rest.slice(0, end)}\r\n`
    rest = rest.slice(end)
  }
  return folded + rest
}

/** Where a line that is too long ends. */
function foldAt(line: string): number {
  let end = line.lastIndexOf(' ', LINE_OCTETS_MAX - 1)
  while (end > 0 && line[end - 1] === ' ') end -= 1
  if (end > 0) return end
  end = LINE_OCTETS_MAX
  while (end < line.length && line[end] !== ' ') end += 1
  return end
}

/** The date of the last message: many are composed within its second. */
let lastDate = { second: -1, text: '' }

function formatDate(ms: number): string {
  const second = Math.floor(ms / 1000)
  if (lastDate.second !== second) lastDate = { second, text: new Date(ms).toUTCString().replace('GMT', '+0000') }
  return lastDate.text
}
