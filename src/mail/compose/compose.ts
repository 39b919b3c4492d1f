/**
 * compose - builds the bytes of one message from a client's input (RFC 5322, RFC 2045 to 2049, RFC 2231, RFC 2392).
 *
 * Guarantees: every byte is 7-bit, every line ends in CRLF and has at most 998 octets (RFC 5322 2.1.1); the same input
 * gives the same bytes; an address of a blind copy cannot appear, because the input has none; no file or URL is read.
 * The structure is that of nodemailer. It is written here in one synchronous pass, because its own stream serializer
 * costs several times the CPU for the same bytes (the test compares both, byte by byte).
 */

import { encode as encodeBase64, wrap as wrapBase64 } from 'nodemailer/lib/base64'
import MailComposer from 'nodemailer/lib/mail-composer'
import { detectMimeType, encodeWord } from 'nodemailer/lib/mime-funcs'
import type MimeNode from 'nodemailer/lib/mime-node'
import { encode as encodeQp, wrap as wrapQp } from 'nodemailer/lib/qp'
import type { ListField } from './list-fields.ts'

/** Octets of one encoded line of a body (RFC 2045 6.7 and 6.8). */
const LINE_OCTETS_MAX = 76
/** Octets of a line that is not encoded, without its end (RFC 5322 2.1.1). */
const MAIL_LINE_OCTETS_MAX = 998
/** Size of a byte in base64, which bounds the size of a message before it is built. */
const BASE64_GROWTH = 4 / 3
/** Octets of one encoded word with its frame; the value that nodemailer uses for header values. */
const WORD_OCTETS_MAX = 52
/**
 * A value that no fold can bring under 998 octets a line (RFC 5322 2.1.1), or that would fold into a line of blanks
 * only, which RFC 5322 3.2.2 calls obsolete and some servers take for the end of the header.
 */
const UNFOLDABLE = /\S{991}|\s{60}/
/** Fields with addresses or ids, where an encoded word would change the meaning. */
const STRUCTURED_FIELDS = new Set(['reply-to', 'references', 'in-reply-to', 'sender'])
/** NUL, and lone surrogates. */
const UNSENDABLE = /\0|\p{Surrogate}/u
const CONTROLS = /[\u0001-\u001f\u007f-\u009f]/g
const LINE_ENDS = /\r\n|\r|\n/g

export interface ComposeAddress {
  readonly address: string
  readonly name: string | null
}

export interface ComposeAttachment {
  readonly name: string
  /** `type/subtype` in lower case; null = determined by the name. */
  readonly contentType: string | null
  /** Makes the part related to the html (RFC 2392), and inline unless readers would merge it into the body. */
  readonly contentId: string | null
  readonly content: Buffer
}

export interface ComposeInput {
  readonly messageId: string
  readonly acceptedAtMs: number
  readonly from: ComposeAddress
  readonly to: readonly ComposeAddress[]
  readonly cc: readonly ComposeAddress[]
  readonly subject: string
  readonly text: string | null
  readonly html: string | null
  readonly headers: Readonly<Record<string, string>>
  /** Value of the Feedback-ID that the service adds; absent if the client gave one, or none is needed. */
  readonly feedbackId?: string
  /** Fields that the service adds on a broadcast stream, for one recipient; absent elsewhere. */
  readonly list?: readonly ListField[]
  readonly attachments: readonly ComposeAttachment[]
  /** Goes into the multipart boundaries; must not be guessable by the author of the content. */
  readonly boundarySeed: string
}

/** A field in nodemailer's terms; a prepared one is written unchanged. */
interface HeaderField {
  readonly key: string
  readonly value: string | { readonly value: string; readonly prepared: true; readonly foldLines: boolean }
}

export type MailOptions = NonNullable<ConstructorParameters<typeof MailComposer>[0]>

/** Thrown by `composeMessage` for content that no valid message can carry; `field` names it, never its value. */
export class ComposeFailure extends Error {
  override readonly name = 'ComposeFailure'
  readonly field: string
  constructor(field: string) {
    super(`Cannot compose the message: NUL or a lone surrogate in ${field}`)
    this.field = field
  }
}

/**
 * Builds the message as it is sent, without signatures and trace fields. Throws ComposeFailure for NUL or a lone
 * surrogate outside of attachments: a server may interpret `CRLF NUL . CRLF` as the end of the message.
 */
export function composeMessage(input: ComposeInput): Buffer {
  refuseUnsendable(input)
  const parts: (string | Buffer)[] = []
  writeNode(new MailComposer(makeMailOptions(input)).compile(), parts)
  return joinParts(parts)
}

/** The tree's description in nodemailer's terms; pure data, no stream, path or URL in it. */
export function makeMailOptions(input: ComposeInput): MailOptions {
  return {
    disableFileAccess: true,
    disableUrlAccess: true,
    baseBoundary: input.boundarySeed,
    from: [formatAddress(input.from)],
    to: input.to.map(formatAddress),
    ...(input.cc.length > 0 && { cc: input.cc.map(formatAddress) }),
    subject: formatValue(input.subject.replace(CONTROLS, ' ')) as string,
    messageId: formatMessageId(input),
    date: new Date(input.acceptedAtMs),
    headers: formatHeaders(input) as { key: string; value: string }[],
    normalizeHeaderKey: makeNamer(input),
    ...(input.text !== null && { text: input.text.replace(LINE_ENDS, '\r\n') }),
    ...(input.html !== null && { html: input.html.replace(LINE_ENDS, '\r\n') }),
    attachments: input.attachments.map(formatAttachment),
  }
}

/** The Message-ID field of a message, with angle brackets (RFC 5322 3.6.4). */
export function formatMessageId(input: Pick<ComposeInput, 'messageId' | 'from'>): string {
  return `<${input.messageId}@${input.from.address.slice(input.from.address.lastIndexOf('@') + 1)}>`
}

function refuseUnsendable(input: ComposeInput): void {
  const check = (field: string, value: string | null) => {
    if (value !== null && UNSENDABLE.test(value)) throw new ComposeFailure(field)
  }
  check('text', input.text)
  check('html', input.html)
  check('subject', input.subject)
  for (const one of [input.from, ...input.to, ...input.cc]) {
    check('name', one.name)
    check('address', one.address)
  }
  for (const [name, value] of Object.entries(input.headers)) check('headers', name + value)
  for (const one of input.attachments) check('attachments', `${one.name}${one.contentId}${one.contentType}`)
}

function formatAddress({ address, name }: ComposeAddress): { address: string; name: string } {
  return { address, name: (name ?? '').replace(CONTROLS, ' ').replace(/\s{60,}/g, ' ') }
}

/** Custom fields as a list, because an object with the names `key` and `value` would be read as one field. */
function formatHeaders(input: ComposeInput): HeaderField[] {
  const fields: HeaderField[] = [{ key: 'X-Sendwright-Id', value: input.messageId }]
  if (input.feedbackId !== undefined) fields.push({ key: 'Feedback-ID', value: input.feedbackId })
  for (const { name, value } of input.list ?? [])
    fields.push({ key: name, value: { value, prepared: true, foldLines: false } })
  for (const [key, value] of Object.entries(input.headers)) {
    // A structured field that does not fit into a legal line cannot be written, so the message is sent without it.
    if (STRUCTURED_FIELDS.has(key.toLowerCase()) && UNFOLDABLE.test(value)) continue
    fields.push({ key, value: formatValue(value) })
  }
  return fields
}

/** Names as they were given: left alone, nodemailer writes `X-My-Id` as `X-My-ID`. */
function makeNamer(input: ComposeInput): (key: string) => string {
  const names = new Map(
    ['X-Sendwright-Id', 'Feedback-ID', ...Object.keys(input.headers)].map((name) => [name.toLowerCase(), name]),
  )
  return (key) => names.get(key.toLowerCase()) ?? key
}

/**
 * An over-long run becomes encoded words (RFC 2047), which can be folded; nodemailer encodes everything else.
 */
function formatValue(value: string): HeaderField['value'] {
  if (!UNFOLDABLE.test(value)) return value
  return { value: encodeWord(value, 'Q', WORD_OCTETS_MAX), prepared: true, foldLines: true }
}

function formatAttachment({ name, contentType, contentId, content }: ComposeAttachment) {
  const told = contentType ?? detectMimeType(name.split('.').pop() ?? 'bin')
  const message = /^message\//i.test(told) ? asMailLines(content) : null
  // A multipart type would need a boundary that the bytes may not have; RFC 2046 5.2.1 forbids to encode a message.
  const isWhatItIs = message !== null || !/^(multipart|message)\//i.test(told)
  // Readers merge an inline text or message into the body; by its id it is found anywhere.
  const isInline = contentId !== null && !/^(text|message)\//i.test(told)
  return {
    filename: name,
    content: message ?? content,
    contentType: isWhatItIs ? told : 'application/octet-stream',
    contentTransferEncoding: message === null ? 'base64' : '7bit',
    contentDisposition: isInline ? 'inline' : 'attachment',
    ...(contentId !== null && { cid: formatContentId(contentId) }),
  }
}

/**
 * The bytes of a mail that can be embedded without encoding (RFC 2045 2.7): lines of ASCII that end in CRLF. Null if
 * they cannot: other bytes, NUL, lone CR, long lines, nothing at all, or more bytes than base64 would take.
 */
function asMailLines(content: Buffer): Buffer | null {
  const bytes = content.toString('latin1')
  if (bytes === '' || /[\0\u0080-\u00ff]/.test(bytes)) return null
  const text = bytes.replace(/(?<!\r)\n/g, '\r\n')
  const lines = text.split('\r\n')
  if (lines.some((line) => line.length > MAIL_LINE_OCTETS_MAX || line.includes('\r'))) return null
  return text.length <= content.length * BASE64_GROWTH ? Buffer.from(text, 'latin1') : null
}

/**
 * Header bytes are ASCII, so any other character in a content id is percent-encoded, as in the `cid:` URL (RFC 2392).
 */
function formatContentId(contentId: string): string {
  return contentId.replace(/[^\x21-\x7e]+/g, encodeURIComponent)
}

/** Writes a node and all below it; the depth is at most three (mixed, alternative, related). */
function writeNode(node: MimeNode, parts: (string | Buffer)[]): void {
  // The headers come first: building them settles the boundary and the transfer encoding.
  parts.push(node.buildHeaders(), '\r\n\r\n')
  const content = node.content as string | Buffer | undefined
  if (content) parts.push(encodeContent(content, node.getTransferEncoding()))
  if (!node.multipart) return
  for (const [index, child] of node.childNodes.entries()) {
    parts.push(`${index > 0 ? '\r\n' : ''}--${node.boundary}\r\n`)
    writeNode(child, parts)
  }
  parts.push(`\r\n--${node.boundary}--\r\n`)
}

function encodeContent(content: string | Buffer, transferEncoding: string | false): string | Buffer {
  if (transferEncoding === 'base64') return wrapBase64(encodeBase64(content), LINE_OCTETS_MAX)
  if (transferEncoding === 'quoted-printable') return wrapQp(encodeQp(content), LINE_OCTETS_MAX)
  return content
}

function joinParts(parts: readonly (string | Buffer)[]): Buffer {
  const bytes = parts.every((part) => typeof part === 'string')
    ? Buffer.from(parts.join(''))
    : Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)))
  return bytes.at(-1) === 0x0a ? bytes : Buffer.concat([bytes, Buffer.from('\r\n')])
}
