/**
 * signed-mail - the header of a received mail as it is shown to the verifier of signatures, so that no mail makes that
 * slow.
 *
 * Only the first 10 DKIM-Signature fields are shown, each of up to 16 KiB (RFC 6376 6.1 lets a verifier limit them); a
 * header that passes the parser's limits, or has more than 10,000 lines, is not verified at all. Line ends are CRLF.
 * The body is never shown: `body-hash.ts` makes the hashes that the signatures name.
 */

import { type HeaderField, readHeaderBlock } from '../mime/header-block.ts'

export const SIGNATURES_MAX = 10
const SIGNATURE_BYTES_MAX = 16_384
const HEADER_LINES_MAX = 10_000

const LF = 0x0a
const CR = 0x0d
const LINE_END = Buffer.from('\r\n')

/** Input of the verifier. */
export interface ShownHeader {
  /** With the empty line at its end. */
  readonly header: Buffer
  /** Where the body begins in the bytes as received. */
  readonly bodyStart: number
  /** DKIM-Signature fields that were left out for their size. */
  readonly oversized: number
}

/** Prepares a mail's header; null if it exceeds the limits. */
export function showHeader(raw: Buffer): ShownHeader | null {
  const { fields, bodyStart, issue } = readHeaderBlock(raw, 0)
  if (issue !== null) return null
  const header = raw.subarray(0, headerEnd(raw, bodyStart))
  if (countLines(header) > HEADER_LINES_MAX) return null
  const { shown, oversized } = showFirst(raw, { header, fields })
  return { header: Buffer.concat([endLines(shown), LINE_END]), bodyStart, oversized }
}

/** The header with all its line ends, without the empty line. */
function headerEnd(raw: Buffer, bodyStart: number): number {
  if (raw[bodyStart - 1] !== LF) return bodyStart
  const end = raw[bodyStart - 2] === CR ? bodyStart - 2 : bodyStart - 1
  // If the mail has no empty line, the last field ends before the body.
  return end === 0 || raw[end - 1] === LF ? end : bodyStart
}

function countLines(bytes: Buffer): number {
  let lines = 0
  for (let at = bytes.indexOf(LF); at >= 0; at = bytes.indexOf(LF, at + 1)) lines += 1
  return lines
}

/** The header without the DKIM-Signature fields past the tenth and those that are too large. */
function showFirst(
  raw: Buffer,
  { header, fields }: { header: Buffer; fields: readonly HeaderField[] },
): { shown: Buffer; oversized: number } {
  const own = fields.filter(({ name }) => name.toLowerCase() === 'dkim-signature')
  const fitting = new Set(own.filter(({ value }) => value.length <= SIGNATURE_BYTES_MAX).slice(0, SIGNATURES_MAX))
  const pieces: Buffer[] = []
  let from = 0
  for (const field of own) {
    if (fitting.has(field)) continue
    const valueStart = field.value.byteOffset - raw.byteOffset
    const start = raw.lastIndexOf(LF, valueStart) + 1
    const newline = raw.indexOf(LF, valueStart + field.value.length)
    pieces.push(header.subarray(from, start))
    from = newline < 0 ? header.length : newline + 1
  }
  const oversized = own.filter(({ value }) => value.length > SIGNATURE_BYTES_MAX).length
  return { shown: Buffer.concat([...pieces, header.subarray(from)]), oversized }
}

/** Bytes whose line ends are all CRLF. */
function endLines(bytes: Buffer): Buffer {
  let bare = 0
  for (let at = bytes.indexOf(LF); at >= 0; at = bytes.indexOf(LF, at + 1)) if (bytes[at - 1] !== CR) bare += 1
  if (bare === 0) return bytes
  const out = Buffer.allocUnsafe(bytes.length + bare)
  let at = 0
  for (let index = 0; index < bytes.length; index += 1) {
    if (bytes[index] === LF && bytes[index - 1] !== CR) {
      out[at] = CR
      at += 1
    }
    out[at] = bytes[index] as number
    at += 1
  }
  return out
}
