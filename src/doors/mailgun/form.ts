/**
 * form - the form of a request: multipart/form-data, or application/x-www-form-urlencoded
 *
 * RFC 7578; https://url.spec.whatwg.org/#urlencoded-parsing
 */

import type { EdgeRequest } from '../../http/request.ts'

/** The fields of a form; one of a URL has no files. */
export type Form = Iterable<[string, string | File]>

/** Names the headers that a form is read by. */
export const FORM_HEADER = 'content-type'

/** Fields of a form of a URL, and occurrences of the text that divides parts: text files may have it too. */
const FIELDS_MAX = 2_000
const PART_ENDS_MAX = 10_000
const [AMPERSAND, EQUALS, PLUS, PERCENT, SPACE] = [0x26, 0x3d, 0x2b, 0x25, 0x20]

/** The body is at most 10 MiB; null for one with too many fields as well. */
export async function readForm({ body, named }: EdgeRequest): Promise<Form | null> {
  const bytes = body as Buffer
  const headers = { [FORM_HEADER]: named[FORM_HEADER] ?? '' }
  const isMultipart = /^\s*multipart\//i.test(headers[FORM_HEADER])
  if (!isMultipart) return parsePairs(bytes)
  if (hasMore(bytes, '\r\n--', PART_ENDS_MAX)) return null
  try {
    return await new Response(new Uint8Array(bytes), { headers }).formData()
  } catch {
    return null
  }
}

/** The pairs of a form in a URL's encoding, as URLSearchParams has them, in a third of its time; null: too many. */
export function parsePairs(bytes: Buffer): [string, string][] | null {
  const pairs: [string, string][] = []
  const decoded = Buffer.allocUnsafe(bytes.length)
  for (let start = 0; start < bytes.length; ) {
    const end = findByte(bytes, AMPERSAND, { start, end: bytes.length })
    if (end > start) {
      if (pairs.length === FIELDS_MAX) return null
      const nameEnd = findByte(bytes, EQUALS, { start, end })
      const name = decode(bytes, decoded, { start, end: nameEnd })
      pairs.push([name, decode(bytes, decoded, { start: nameEnd + 1, end })])
    }
    start = end + 1
  }
  return pairs
}

interface Span {
  readonly start: number
  readonly end: number
}

/** Where a byte is first; the end of the span if it is not in it. */
function findByte(bytes: Buffer, byte: number, { start, end }: Span): number {
  let at = start
  while (at < end && bytes[at] !== byte) at += 1
  return at
}

/** Decodes a part of a body by way of a buffer: `+` is a blank, and `%` without two digits stays as it is. */
function decode(bytes: Buffer, decoded: Buffer, { start, end }: Span): string {
  let to = 0
  for (let at = start; at < end; at += 1) {
    let byte = bytes[at] as number
    if (byte === PLUS) byte = SPACE
    else if (byte === PERCENT && at + 2 < end) {
      const high = hexOf(bytes[at + 1] as number)
      const low = hexOf(bytes[at + 2] as number)
      if (high >= 0 && low >= 0) {
        byte = high * 16 + low
        at += 2
      }
    }
    decoded[to] = byte
    to += 1
  }
  return decoded.toString('utf8', 0, to)
}

/** The value of a hexadecimal digit; -1 for any other byte. */
function hexOf(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}

function hasMore(bytes: Buffer, text: string, max: number): boolean {
  let count = 0
  for (let at = bytes.indexOf(text); at >= 0 && count <= max; at = bytes.indexOf(text, at + text.length)) count += 1
  return count > max
}
