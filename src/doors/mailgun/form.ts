/**
 * form - the form of a request: multipart/form-data, or application/x-www-form-urlencoded
 *
 * RFC 7578; https://url.spec.whatwg.org/#urlencoded-parsing
 */

import { isAscii } from 'node:buffer'

import type { EdgeRequest } from '../../http/request.ts'

/** The fields of a form; one of a URL has no files. */
export type FormFields = Iterable<[string, string | File]>

export interface Form {
  readonly fields: FormFields
  /** Whether a text may hold U+0000, the only forbidden character that decoded UTF-8 can have. */
  readonly mayHoldNul: boolean
}

/** Names the headers that a form is read by. */
export const FORM_HEADER = 'content-type'

/** Fields of a form of a URL, and occurrences of the text that divides parts: text files may have it too. */
const FIELDS_MAX = 2_000
const ENDS_MAX = FIELDS_MAX * 2
const PART_ENDS_MAX = 10_000
const NUL = 0
const EQUALS = 0x3d
const PLUS = 0x2b
const PERCENT = 0x25
const SPACE = 0x20
/** 1 for the bytes that are not taken as they are. */
const IS_MARK = Uint8Array.from({ length: 256 }, (_, byte) => ('&=+%'.includes(String.fromCharCode(byte)) ? 1 : 0))
const MULTIPART = 'multipart/'
const DIGITS = '0123456789abcdef'
/** The values of hexadecimal digits by their byte; -1 for any other byte. */
const HEX = Int8Array.from({ length: 256 }, (_, byte) => DIGITS.indexOf(String.fromCharCode(byte).toLowerCase()))

/** The body is at most 10 MiB; null for one with too many fields as well. */
export function readForm({ body, named }: EdgeRequest): Form | null | Promise<Form | null> {
  const bytes = body as Buffer
  const type = named[FORM_HEADER] ?? ''
  const isMultipart = type.trimStart().slice(0, MULTIPART.length).toLowerCase() === MULTIPART
  return isMultipart ? readMultipart(bytes, type) : parsePairs(bytes)
}

async function readMultipart(bytes: Buffer, type: string): Promise<Form | null> {
  if (hasMore(bytes, '\r\n--', PART_ENDS_MAX)) return null
  try {
    const response = new Response(new Uint8Array(bytes), { headers: { [FORM_HEADER]: type } })
    // A part may be encoded in base64, so the bytes do not show it.
    return { fields: await response.formData(), mayHoldNul: true }
  } catch {
    return null
  }
}

/**
 * The pairs of a form in a URL's encoding, as URLSearchParams has them, in a quarter of its time; null: too many.
 *
 * One pass decodes the body into one buffer and notes where names and values end in it.
 */
export function parsePairs(bytes: Buffer): (Form & { readonly fields: [string, string][] }) | null {
  const decoded = Buffer.allocUnsafe(bytes.length)
  const ends: number[] = []
  let isName = true
  let to = 0
  for (let at = 0; at < bytes.length && ends.length <= ENDS_MAX; at += 1) {
    const byte = bytes[at] as number
    if (IS_MARK[byte] === 0 || (byte === EQUALS && !isName)) decoded[to++] = byte
    else if (byte === PLUS) decoded[to++] = SPACE
    else if (byte === PERCENT) {
      const escaped = readEscape(bytes, at + 1)
      decoded[to++] = escaped < 0 ? byte : escaped
      if (escaped >= 0) at += 2
    } else if (byte === EQUALS) {
      ends.push(to)
      isName = false
    } else {
      endPair(ends, to, isName)
      isName = true
    }
  }
  endPair(ends, to, isName)
  if (ends.length > ENDS_MAX) return null
  const texts = decoded.subarray(0, to)
  return { fields: pairsOf(texts, ends), mayHoldNul: texts.includes(NUL) }
}

/** Nothing between two separators is no pair. */
function endPair(ends: number[], to: number, isName: boolean): void {
  if (!isName) ends.push(to)
  else if (to > (ends.at(-1) ?? 0)) ends.push(to, to)
}

/** The byte that two hexadecimal digits stand for; -1 if they are not two. */
function readEscape(bytes: Buffer, at: number): number {
  if (at + 1 >= bytes.length) return -1
  return ((HEX[bytes[at] as number] as number) << 4) | (HEX[bytes[at + 1] as number] as number)
}

/** Texts of a buffer, by the places where they end. Plain ASCII becomes one string, of which they are parts. */
function pairsOf(decoded: Buffer, ends: readonly number[]): [string, string][] {
  const isPlain = isAscii(decoded)
  const text = isPlain ? decoded.toString('latin1') : ''
  const textOf = (start: number, end: number) =>
    isPlain ? text.slice(start, end) : decoded.toString('utf8', start, end)
  const pairs: [string, string][] = []
  let start = 0
  for (let at = 0; at < ends.length; at += 2) {
    const [nameEnd, end] = [ends[at] as number, ends[at + 1] as number]
    pairs.push([textOf(start, nameEnd), textOf(nameEnd, end)])
    start = end
  }
  return pairs
}

function hasMore(bytes: Buffer, text: string, max: number): boolean {
  let count = 0
  for (let at = bytes.indexOf(text); at >= 0 && count <= max; at = bytes.indexOf(text, at + text.length)) count += 1
  return count > max
}
