/**
 * range - which bytes of an answer a request wants (RFC 9110 14)
 *
 * One range of bytes. Several ranges, another unit, a malformed range and a header of more than 64 characters are
 * ignored, as RFC 9110 14.2 allows, and the whole is sent.
 */

/** Bytes from `from` on. */
export interface ByteRange {
  readonly from: number
  readonly length: number
}

const DIGITS_MAX = 15
/** A longer header is refused before it is matched. */
const HEADER_CHARS_MAX = 64
/** Linear, because no two neighbouring parts match the same character. */
const ONE_RANGE = /^bytes=[ \t]*(?:(\d+)[ \t]*)?-[ \t]*(?:(\d+)[ \t]*)?$/i

/** The range of a `Range` header; null for the whole; `none` if it is outside of `size` bytes. */
export function parseRange(header: string, size: number): ByteRange | 'none' | null {
  if (header.length > HEADER_CHARS_MAX) return null
  const [, first = '', last = ''] = ONE_RANGE.exec(header) ?? []
  if (first.length > DIGITS_MAX || last.length > DIGITS_MAX) return null
  if (first === '') {
    if (last === '') return null
    const length = Math.min(Number(last), size)
    return length === 0 ? 'none' : { from: size - length, length }
  }
  const from = Number(first)
  const end = last === '' ? size - 1 : Number(last)
  if (last !== '' && end < from) return null
  return from >= size ? 'none' : { from, length: Math.min(end, size - 1) - from + 1 }
}
