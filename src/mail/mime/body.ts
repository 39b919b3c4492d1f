/**
 * body - text, HTML and attachments of a walked mail.
 *
 * Text and HTML are the inline parts of these types, joined by LF, without those inside attached messages. A part with
 * a file name, a disposition other than inline or another type is an attachment; so is an attached message, whole.
 * Guarantees: text that cannot be within its limit is not decoded; each byte is decoded once at most.
 *
 * Spec inbound.parse.text, inbound.parse.attachments
 */

import type { SoftIssue } from '../../../schemas/inbound.ts'
import { decodeCharset } from './charset.ts'
import { readFileName } from './file-name.ts'
import { unflow } from './flowed.ts'
import { stripText } from './header-text.ts'
import { decodeTransfer, makeTransferDecoder, type TransferEncoding } from './transfer.ts'
import type { MimeNode } from './walk.ts'

/** Bytes of UTF-8 of the text, and of the HTML. */
export const TEXT_BYTES_MAX = 1024 * 1024
export const HTML_BYTES_MAX = 2 * 1024 * 1024
/** Attachments that are kept. */
export const RECEIVED_ATTACHMENTS_MAX = 100
/** Decoded content has at most this many times the size as received. */
export const DECODED_FACTOR_MAX = 4
/** Text of more times its limit before it is decoded is not: three octets of quoted-printable may be one. */
const ENCODED_FACTOR_MAX = 4
/** Bytes decoded at once if only their number is needed. */
const PIECE_BYTES = 65_536

/** The place of an attachment in the raw mail. */
export interface AttachmentPlace {
  readonly start: number
  readonly length: number
  readonly encoding: TransferEncoding
}

/** An attachment without its bytes. */
export interface ReceivedAttachment {
  readonly position: number
  readonly name: string | null
  readonly contentType: string
  readonly contentId: string | null
  /** Bytes once decoded. */
  readonly size: number
  readonly inline: boolean
  readonly place: AttachmentPlace
}

/** Texts and attachments of a mail. */
export interface MailBody {
  /** Null for none, or if it exceeds its limit. */
  readonly text: string | null
  readonly html: string | null
  readonly hasText: boolean
  readonly hasHtml: boolean
  readonly contentOmitted: 'too_large' | null
  readonly attachments: readonly ReceivedAttachment[]
}

/** Whether what is decoded, attached messages counted at each level, passes the limit. */
export function isDecodedTooLarge(raw: Buffer, nodes: readonly MimeNode[]): boolean {
  const max = raw.length * DECODED_FACTOR_MAX
  const counted = nodes.filter(({ kind }) => kind !== 'multipart')
  // Decoding never enlarges, so the exact sizes are needed only if the encoded ones exceed the limit.
  const encoded = counted.reduce((sum, { start, end }) => sum + end - start, 0)
  return encoded > max && counted.reduce((sum, node) => sum + decodedSize(raw, node), 0) > max
}

/** Reads the parts. Adds what is changed or dropped to `soft`. */
export function readMailBody(raw: Buffer, nodes: readonly MimeNode[], soft: Set<SoftIssue>): MailBody {
  const shown = nodes.filter(({ kind, isInner }) => kind !== 'multipart' && !isInner)
  for (const { kind, header } of shown)
    if (kind === 'leaf' && header.encoding === null) soft.add('unknown_transfer_encoding')
  const text = readText(raw, {
    nodes: shown.filter((node) => isInlineText(node, 'text/plain')),
    bytesMax: TEXT_BYTES_MAX,
    soft,
  })
  const html = readText(raw, {
    nodes: shown.filter((node) => isInlineText(node, 'text/html')),
    bytesMax: HTML_BYTES_MAX,
    soft,
  })
  const files = shown.filter((node) => !isInlineText(node, 'text/plain') && !isInlineText(node, 'text/html'))
  if (files.length > RECEIVED_ATTACHMENTS_MAX) soft.add('too_many_attachments')
  return {
    text: text === 'too_large' ? null : text,
    html: html === 'too_large' ? null : html,
    hasText: text !== null,
    hasHtml: html !== null,
    contentOmitted: text === 'too_large' || html === 'too_large' ? 'too_large' : null,
    attachments: files
      .slice(0, RECEIVED_ATTACHMENTS_MAX)
      .map((node, position) => readAttachment(raw, { node, position, soft })),
  }
}

/** The bytes of an attachment, cut out of the raw mail. */
export function attachmentBytes(raw: Buffer, { start, length, encoding }: AttachmentPlace): Buffer {
  return decodeTransfer(encoding, raw.subarray(start, start + length))
}

function isInlineText({ kind, header }: MimeNode, contentType: string): boolean {
  return (
    kind === 'leaf' &&
    header.contentType === contentType &&
    header.fileName === null &&
    header.disposition !== 'attachment'
  )
}

function readText(
  raw: Buffer,
  { nodes, bytesMax, soft }: { nodes: readonly MimeNode[]; bytesMax: number; soft: Set<SoftIssue> },
): string | 'too_large' | null {
  const filled = nodes.filter(({ start, end }) => end > start)
  const encoded = filled.reduce((sum, { start, end }) => sum + end - start, 0)
  if (encoded > bytesMax * ENCODED_FACTOR_MAX) return 'too_large'
  const texts = filled.map(({ start, end, header }) => {
    const bytes = decodeTransfer(header.encoding ?? 'identity', raw.subarray(start, end))
    const { text, isChanged } = stripText(decodeCharset(bytes, header.charset))
    if (isChanged) soft.add('control_chars_stripped')
    return header.isFlowed && header.contentType === 'text/plain' ? unflow(text, header.isSpaceAdded) : text
  })
  const joined = texts.filter((text) => text !== '').join('\n')
  if (Buffer.byteLength(joined) > bytesMax) return 'too_large'
  return joined === '' ? null : joined
}

function readAttachment(
  raw: Buffer,
  { node, position, soft }: { node: MimeNode; position: number; soft: Set<SoftIssue> },
): ReceivedAttachment {
  const { contentType, contentId, disposition, encoding, fileName } = node.header
  const file = readFileName(fileName)
  if (file.isSanitised) soft.add('filename_sanitised')
  if (file.hadControls) soft.add('control_chars_stripped')
  return {
    position,
    name: file.name,
    contentType,
    contentId,
    size: decodedSize(raw, node),
    inline:
      disposition === 'inline' ||
      (disposition === null && contentId !== null && node.parentType === 'multipart/related'),
    place: { start: node.start, length: node.end - node.start, encoding: encodingOf(node, encoding) },
  }
}

/** An attached message is walked only if it is not encoded. */
function encodingOf({ kind }: MimeNode, encoding: TransferEncoding | null): TransferEncoding {
  return kind === 'message' ? 'identity' : (encoding ?? 'identity')
}

function decodedSize(raw: Buffer, node: MimeNode): number {
  const encoding = encodingOf(node, node.header.encoding)
  if (encoding === 'identity') return node.end - node.start
  const decoder = makeTransferDecoder(encoding)
  let size = 0
  for (let at = node.start; at < node.end; at += PIECE_BYTES)
    size += decoder.push(raw.subarray(at, Math.min(at + PIECE_BYTES, node.end))).length
  return size + decoder.end().length
}
