/**
 * parameter - values of the form `value; name=value` (RFC 2045 5.1), continued and in other charsets (RFC 2231).
 *
 * Lenient as mail needs it: a value without quotes may contain blanks; a backslash in quotes is literal unless it
 * escapes a quote or a backslash, so that `"C:\file.txt"` keeps its path; a comment (RFC 822) counts after a blank or
 * at the beginning. Guarantees: never throws; time linear in the value; the first of equal names counts.
 */

import { decodeCharset } from './charset.ts'

/** A parsed value. */
export interface Parameterised {
  /** Without parameters and comments, as it was written. */
  readonly value: string
  /** By name in lower case. */
  readonly parameters: ReadonlyMap<string, string>
}

/** `name*`, `name*0`, `name*0*` (RFC 2231 3, 4). */
const EXTENDED = /^([^*]+)\*(?:(\d{1,4})(\*)?)?$/
const COMMENT_AT_END = /^([^\s()"]*)\s+\([^()]*\)$/

interface Section {
  readonly number: number
  readonly isEncoded: boolean
  readonly text: string
}

/** Parses a value in one line. */
export function parseParameterised(text: string): Parameterised {
  const [first = '', ...rest] = splitAtSemicolons(text)
  const plain = new Map<string, string>()
  const extended = new Map<string, Section[]>()
  for (const piece of rest) {
    const equals = piece.indexOf('=')
    if (equals < 0) continue
    const name = piece.slice(0, equals).trim().toLowerCase()
    const value = parseText(piece.slice(equals + 1).trim())
    const match = EXTENDED.exec(name)
    if (match === null) {
      if (!plain.has(name)) plain.set(name, value)
      continue
    }
    const [, base = '', number, star] = match
    const sections = extended.get(base) ?? []
    sections.push({ number: Number(number ?? 0), isEncoded: number === undefined || star === '*', text: value })
    extended.set(base, sections)
  }
  // RFC 2231 takes precedence over a plain value, which is a fallback for older readers.
  for (const [name, sections] of extended) plain.set(name, joinSections(sections))
  return { value: withoutComment(first), parameters: plain }
}

function splitAtSemicolons(text: string): string[] {
  const pieces: string[] = []
  let from = 0
  let isQuoted = false
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at]
    if (isQuoted && char === '\\') at += 1
    else if (char === '"') isQuoted = !isQuoted
    else if (char === ';' && !isQuoted) {
      pieces.push(text.slice(from, at))
      from = at + 1
    }
  }
  // An unclosed quote extends to the end.
  return [...pieces, text.slice(from)]
}

function parseText(text: string): string {
  if (text.startsWith('"')) return quotedValue(text)
  return withoutComment(text)
}

/** A quoted string; text after it is a comment or a mistake. */
function quotedValue(text: string): string {
  let out = ''
  let from = 1
  for (let at = 1; at < text.length; at += 1) {
    const char = text[at]
    if (char === '"') return (out + text.slice(from, at)).trim()
    if (char === '\\' && (text[at + 1] === '"' || text[at + 1] === '\\')) {
      out += text.slice(from, at)
      from = at + 1
      at += 1
    }
  }
  return (out + text.slice(from)).trim()
}

function withoutComment(text: string): string {
  const trimmed = text.trim()
  return COMMENT_AT_END.exec(trimmed)?.[1] ?? trimmed
}

/** RFC 2231 3: sections in the order of their numbers; the first names the charset. */
function joinSections(sections: readonly Section[]): string {
  const ordered = [...sections].sort((left, right) => left.number - right.number)
  let charset: string | null = null
  const bytes = ordered.map((section, index) => {
    if (!section.isEncoded) return Buffer.from(section.text)
    const [, label, encoded] = (index === 0 ? /^([^']*)'[^']*'(.*)$/s.exec(section.text) : null) ?? []
    if (label !== undefined) charset = label
    return unescapePercents(encoded ?? section.text)
  })
  return decodeCharset(Buffer.concat(bytes), charset)
}

function unescapePercents(text: string): Buffer {
  const bytes = Buffer.from(text)
  const out = Buffer.allocUnsafe(bytes.length)
  let at = 0
  for (let index = 0; index < bytes.length; index += 1) {
    const digits = bytes[index] === 0x25 ? bytes.toString('latin1', index + 1, index + 3) : ''
    const isEscape = /^[0-9a-f]{2}$/i.test(digits)
    out[at] = isEscape ? Number.parseInt(digits, 16) : (bytes[index] as number)
    if (isEscape) index += 2
    at += 1
  }
  return out.subarray(0, at)
}
