/**
 * parse - returned mail taken apart, as far as reports need it.
 *
 * Guarantees: time and memory are linear in the bytes, for any bytes (`mail/mime/`); the result is bounded; no
 * resource is fetched. It runs in a thread with a time limit (`returned-parser.ts`).
 */

import { decodeCharset } from '../../mail/mime/charset.ts'
import { type HeaderBlock, readHeaderBlock } from '../../mail/mime/header-block.ts'
import { decodeWords, stripText, unfold } from '../../mail/mime/header-text.ts'
import { decodeTransfer } from '../../mail/mime/transfer.ts'
import { type MimeNode, walkMail } from '../../mail/mime/walk.ts'
import type { ReportMail, ReportPart } from '../../mail/report/report-mail.ts'

const HEADERS_MAX = 300
const HEADER_CHARS_MAX = 2000
const TEXT_CHARS_MAX = 64 * 1024
/** Bytes of a part that are decoded: three octets of quoted-printable may be one character. */
const ENCODED_BYTES_MAX = 4 * TEXT_CHARS_MAX
const PARTS_MAX = 20
/** Types of parts that contain a report. */
const REPORT_TYPES = /^(message\/|text\/rfc822-headers)/
/** Fields that a person reads: encoded words in them are decoded (RFC 2047). All others stay as they were written. */
const DECODED: ReadonlySet<string> = new Set(['subject', 'from'])
const ENTITIES: Readonly<Record<string, string>> = {
  '&nbsp;': ' ',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&amp;': '&',
}

/** Takes received bytes apart. */
export function parseMail(bytes: Uint8Array): ReportMail {
  const raw = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const top = readHeaderBlock(raw, 0)
  const { nodes } = walkMail(raw, top, new Set())
  const leaves = nodes.filter(({ kind, isInner }) => kind !== 'multipart' && !isInner)
  const parts = readParts(raw, leaves)
  const isReport = parts.some(({ contentType }) => contentType.endsWith('delivery-status'))
  const start = isReport ? {} : { raw: raw.toString('utf8', 0, TEXT_CHARS_MAX) }
  return { headers: readHeaders(top), text: readText(raw, leaves), parts, ...start }
}

function readHeaders({ fields }: HeaderBlock): ReportMail['headers'] {
  return fields.slice(0, HEADERS_MAX).map(({ name, value }) => {
    const key = name.toLowerCase()
    const written = unfold(value.subarray(0, ENCODED_BYTES_MAX))
    const text = DECODED.has(key) ? decodeWords(written) : written
    return [key, text.slice(0, HEADER_CHARS_MAX)] as const
  })
}

function readText(raw: Buffer, leaves: readonly MimeNode[]): string {
  const plain = shownAs('text/plain')
  if (plain.trim() !== '') return plain
  return shownAs('text/html')
    .replace(/<(br|\/p|\/div|\/tr)\b[^<>]*>/gi, '\n')
    .replace(/<[^<>]*>/g, '')
    .replace(/&(nbsp|lt|gt|quot|amp);/g, (entity) => ENTITIES[entity] as string)

  function shownAs(contentType: string): string {
    const shown = leaves.filter(
      ({ header }) => header.contentType === contentType && header.disposition !== 'attachment',
    )
    return shown
      .slice(0, PARTS_MAX)
      .map((leaf) => stripText(decodeCharset(decodeBytes(raw, leaf), leaf.header.charset)).text)
      .join('\n')
      .slice(0, TEXT_CHARS_MAX)
  }
}

function readParts(raw: Buffer, leaves: readonly MimeNode[]): ReportPart[] {
  return leaves
    .filter(({ header }) => REPORT_TYPES.test(header.contentType))
    .slice(0, PARTS_MAX)
    .map((leaf) => ({
      contentType: leaf.header.contentType,
      text: decodeBytes(raw, leaf).subarray(0, TEXT_CHARS_MAX).toString(),
    }))
}

/** The start of a part, decoded. */
function decodeBytes(raw: Buffer, { start, end, header }: MimeNode): Buffer {
  const bytes = raw.subarray(start, Math.min(end, start + ENCODED_BYTES_MAX))
  return decodeTransfer(header.encoding ?? 'identity', bytes)
}
