/**
 * sum - a checksum at the end of a stored value, so that a value which the disk or the memory has changed is an error
 *
 * Stored: `<text>~~<CRC32 of the text, 6 letters of base64url>`. A row stays readable in redis-cli. A value without a
 * sum is one of an earlier release and is returned as it is: no single changed bit takes both marks away.
 */

import { crc32 } from 'node:zlib'
import { Fault } from './fault.ts'

const MARK = '~~'
const MARK_CODE = 0x7e
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const SUM_CHARS = 6
const SUFFIX_CHARS = MARK.length + SUM_CHARS
const SHORT_CHARS_MAX = 128
const ASCII_MAX = 0x7f
/** Two letters for each 12 bits. */
const PAIRS = Array.from({ length: 4_096 }, (_, bits) => `${LETTERS[bits >> 6]}${LETTERS[bits & 63]}`)
/** The CRC32 of each byte, as in zlib. */
const BYTES = Int32Array.from({ length: 256 }, (_, byte) => {
  let sum = byte
  for (let bit = 0; bit < 8; bit += 1) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1
  return sum
})

/** How many values of each kind were found damaged since the start of this process. */
const found = new Map<string, number>()

/** A stored value that is not what was written. Views answer 503 `data_damaged`; a turn fails alone. */
export class DamagedValue extends Fault {}

/** Counts a damaged value and returns the error. `name`: the kind of the row, for the log. */
export function damagedValue(name: string): DamagedValue {
  found.set(name, (found.get(name) ?? 0) + 1)
  return new DamagedValue('A stored value is damaged', { value: name })
}

/** Damaged values that were read since the start, by kind. */
export function damagedValues(): ReadonlyMap<string, number> {
  return found
}

/** The value as it is stored. */
export function withSum(text: string): string {
  return text + formatSuffix(text)
}

/**
 * The value that was stored. `name`: the kind of the row, for the log.
 * @throws DamagedValue if it is not what was stored
 */
export function withoutSum(stored: string, name: string): string {
  const at = stored.length - SUFFIX_CHARS
  if (at < 0 || (stored.charCodeAt(at) !== MARK_CODE && stored.charCodeAt(at + 1) !== MARK_CODE)) return stored
  const text = stored.slice(0, at)
  if (stored.endsWith(formatSuffix(text))) return text
  if (endsWithoutSum(stored.slice(-SUM_CHARS))) return stored
  throw damagedValue(name)
}

/**
 * Whether a value is one of an earlier release whose text has a mark by chance: JSON, or an address. No single changed
 * bit makes such an end out of a sum.
 */
function endsWithoutSum(end: string): boolean {
  return end.endsWith(']') || end.endsWith('}') || (end.includes('@') && end.includes('.'))
}

/** Reads a value for a sweep, which removes old data even if it is unreadable. Null if the value is damaged. */
export function unlessDamaged<Value>(read: () => Value): Value | null {
  try {
    return read()
  } catch (error) {
    if (error instanceof DamagedValue) return null
    throw error
  }
}

function formatSuffix(text: string): string {
  const sum = computeSum(text)
  return MARK + PAIRS[sum >>> 20]! + PAIRS[(sum >>> 8) & 0xfff]! + PAIRS[(sum & 0xff) << 4]!
}

/** CRC32 of a text in UTF-8. A call of zlib costs more than a short text. */
function computeSum(text: string): number {
  const { length } = text
  if (length > SHORT_CHARS_MAX) return crc32(text)
  let sum = -1
  for (let at = 0; at < length; at += 1) {
    const code = text.charCodeAt(at)
    if (code > ASCII_MAX) return crc32(text)
    sum = BYTES[(sum ^ code) & 0xff]! ^ (sum >>> 8)
  }
  return ~sum >>> 0
}
