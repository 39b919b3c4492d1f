/**
 * parse - received mail taken apart, as far as reports need it.
 *
 * Guarantees: what comes out is bounded whatever goes in; nothing is fetched, no HTML is turned into text by a parser
 * that can be made slow. It runs in a thread with a time limit (`parse-room.ts`).
 */

import { type ParsedMail, simpleParser } from 'mailparser'
import type { ReportMail, ReportPart } from '../mail/report/report-mail.ts'

const HEADERS_MAX = 300
const HEADER_CHARS_MAX = 2000
const TEXT_CHARS_MAX = 64 * 1024
const PARTS_MAX = 20
/** Types of parts that tell something. */
const REPORT_TYPES = /^(message\/|text\/rfc822-headers)/
const OPTIONS = {
  skipHtmlToText: true,
  skipTextToHtml: true,
  skipTextLinks: true,
  skipImageLinks: true,
  keepCidLinks: true,
  // Else the report would be merged into the text.
  keepDeliveryStatus: true,
} as const
const ENTITIES: Readonly<Record<string, string>> = {
  '&nbsp;': ' ',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&amp;': '&',
}

/** Takes received bytes apart. Rejects where the parser gives up. */
export async function parseMail(bytes: Uint8Array): Promise<ReportMail> {
  const mail = await simpleParser(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), OPTIONS)
  const parts = partsOf(mail)
  const isReport = parts.some(({ contentType }) => contentType.endsWith('delivery-status'))
  const raw = isReport ? {} : { raw: Buffer.from(bytes.subarray(0, TEXT_CHARS_MAX)).toString() }
  return { headers: headersOf(mail), text: textOf(mail), parts, ...raw }
}

/** Subject and From are decoded (RFC 2047); all else is as it was written. */
function headersOf({ headerLines, subject, from }: ParsedMail): ReportMail['headers'] {
  return headerLines.slice(0, HEADERS_MAX).map(({ key, line }) => {
    const decoded = key === 'subject' ? subject : key === 'from' ? from?.text : undefined
    return [key, (decoded ?? unfold(line)).trim().slice(0, HEADER_CHARS_MAX)] as const
  })
}

/** The value of a field on one line (RFC 5322 2.2.3). A pattern over both blanks and line ends would be quadratic. */
function unfold(line: string): string {
  const begin = line.indexOf(':') + 1
  const lines = line.slice(begin, begin + HEADER_CHARS_MAX).split(/[\r\n]+/)
  return lines.map((one) => one.trim()).join(' ')
}

function textOf({ text, html }: ParsedMail): string {
  if (text !== undefined && text.trim() !== '') return text.slice(0, TEXT_CHARS_MAX)
  const tagged = (html || '').slice(0, TEXT_CHARS_MAX)
  return tagged
    .replace(/<(br|\/p|\/div|\/tr)\b[^<>]*>/gi, '\n')
    .replace(/<[^<>]*>/g, '')
    .replace(/&(nbsp|lt|gt|quot|amp);/g, (entity) => ENTITIES[entity] as string)
}

function partsOf({ attachments }: ParsedMail): ReportPart[] {
  return attachments
    .map(({ contentType, content }) => ({ contentType: contentType.toLowerCase(), content }))
    .filter(({ contentType }) => REPORT_TYPES.test(contentType))
    .slice(0, PARTS_MAX)
    .map(({ contentType, content }) => ({ contentType, text: content.subarray(0, TEXT_CHARS_MAX).toString() }))
}
