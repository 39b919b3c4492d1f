/**
 * named-in-header - every address in the fields of a mail's header that name people, however many there are
 *
 * The parser keeps what a reader can use; here no address may be missed: fields, values and lists have no bound,
 * repeated fields count, and in an unparsable value everything that looks like an address counts. Takes the header's
 * bytes; bytes after its empty line are ignored.
 */

import addressparser from 'nodemailer/lib/addressparser'
import { decodeWords, stripValue } from './header-text.ts'

const FIELDS: ReadonlySet<string> = new Set(['from', 'to', 'cc', 'bcc', 'reply-to', 'sender'])
/** It starts at the beginning of a local part, so that no place within a long word is tried separately. */
const ADDRESS_LIKE = /(?<![^\s<>"(),:;@\\[\]])[^\s<>"(),:;@\\[\]]+@[^\s<>"(),:;@\\]+/g
const LINE = /\r\n|\n/

/** The end of the header, before its first empty line; -1 if these bytes do not contain it. */
export function endOfHeader(raw: Buffer): number {
  const ends = [raw.indexOf('\n\n', 0, 'latin1'), raw.indexOf('\n\r\n', 0, 'latin1')].filter((at) => at >= 0)
  return ends.length === 0 ? -1 : Math.min(...ends)
}

/** The addresses, each once. */
export function namedInHeader(raw: Buffer): ReadonlySet<string> {
  const end = endOfHeader(raw)
  const text = raw.toString('utf8', 0, end < 0 ? raw.length : end)
  const named = new Set<string>()
  for (const value of valuesOf(text)) for (const address of addressesOf(value)) named.add(address)
  return named
}

/** The unfolded values of the fields that name people. */
function* valuesOf(text: string): Generator<string> {
  let value: string | null = null
  for (const line of text.split(LINE)) {
    if (line.startsWith(' ') || line.startsWith('\t')) {
      if (value !== null) value += ` ${line.trim()}`
      continue
    }
    if (value !== null) yield value
    const colon = line.indexOf(':')
    value = colon > 0 && FIELDS.has(line.slice(0, colon).trim().toLowerCase()) ? line.slice(colon + 1) : null
  }
  if (value !== null) yield value
}

function* addressesOf(value: string): Generator<string> {
  for (const { address } of addressparser(value, { flatten: true })) {
    const { text } = stripValue(address)
    if (text !== '') yield text
  }
  for (const [address] of value.matchAll(ADDRESS_LIKE)) yield address
  const decoded = decodeWords(value)
  if (decoded !== value) for (const [address] of decoded.matchAll(ADDRESS_LIKE)) yield address
}
