/**
 * charset - bytes of a named charset as a string.
 *
 * Labels are those of the WHATWG Encoding Standard, which mail clients use: "iso-8859-1" means windows-1252 there, so
 * the curly quotes of Outlook survive. A label that no decoder knows is read as windows-1252. Guarantees: never
 * throws; the result is well-formed and costs time linear in the bytes.
 */

import iconv from 'iconv-lite'
import { SHIFTED } from './shifted-charset.ts'

type Decode = (bytes: Uint8Array) => string

const LABEL_CHARS_MAX = 60
/** Labels of hostile mail are many; the few that are in use come back at once. */
const KNOWN_MAX = 100
/** Node's own decoder of windows-1252 makes C1 controls of 0x80 to 0x9F. */
const WINDOWS_1252 = 'windows-1252'
/** Mail uses this label for anything, UTF-8 most of all. */
const SHIFTING = /^(?:(?:cs)?iso-?2022|hz|utf-?7)/i
const SAYS_NOTHING = /^(?:|us-ascii|ascii|ansi_x3\.4-1968|7bit|8bit|binary|default|unknown-8bit|unknown|x-unknown)$/
/** Labels whose byte order mark counts, or which the standard refuses. */
const ICONV_FIRST = /^(?:utf-?16|utf-?32|ucs-?2|ucs-?4)$/
const ISO_2022_JP = 'iso-2022-jp'
/** An escape directly followed by another one. The standard decodes it as U+FFFD, though many writers escape twice. */
const REDUNDANT_ESCAPES = /\x1b(?:\([BIJ]|\$[@B])(?=\x1b(?:\([BIJ]|\$[@B]))/g
const SURROGATES = /\p{Surrogate}/gu

const known = new Map<string, Decode>()
const strictUtf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Whether text of the charset has a state that escapes change, so that its parts must not be joined before decoding.
 */
export function isShifting(label: string): boolean {
  return SHIFTING.test(label)
}

/**
 * Decodes bytes. Takes the label of the mail, or null: UTF-8 if the bytes are valid, otherwise windows-1252.
 */
export function decodeCharset(bytes: Uint8Array, label: string | null): string {
  const name = (label ?? '').trim().toLowerCase()
  const text = SAYS_NOTHING.test(name) ? guess(bytes) : findDecoder(name)(bytes)
  return text.replace(SURROGATES, '\ufffd')
}

function guess(bytes: Uint8Array): string {
  try {
    return strictUtf8.decode(bytes)
  } catch {
    // The only way to learn that bytes are no UTF-8 is this exception.
    return decodeWindows1252(bytes)
  }
}

function decodeWindows1252(bytes: Uint8Array): string {
  return iconv.decode(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), WINDOWS_1252)
}

function findDecoder(name: string): Decode {
  const found = known.get(name)
  if (found !== undefined) return found
  if (known.size >= KNOWN_MAX) known.clear()
  const made = makeDecoder(name)
  known.set(name, made)
  return made
}

function makeDecoder(name: string): Decode {
  if (name.length > LABEL_CHARS_MAX) return decodeWindows1252
  const shifted = SHIFTED.get(name)
  if (shifted !== undefined) return shifted
  const standard = ICONV_FIRST.test(name) ? null : standardDecoder(name)
  if (standard !== null) return standard.encoding === WINDOWS_1252 ? decodeWindows1252 : decoderBy(standard)
  if (!iconv.encodingExists(name)) return decodeWindows1252
  return (bytes) => iconv.decode(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), name)
}

function decoderBy(standard: InstanceType<typeof TextDecoder>): Decode {
  if (standard.encoding !== ISO_2022_JP) return (bytes) => standard.decode(bytes)
  return (bytes) => {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
    return standard.decode(Buffer.from(text.replace(REDUNDANT_ESCAPES, ''), 'latin1'))
  }
}

function standardDecoder(name: string): InstanceType<typeof TextDecoder> | null {
  try {
    return new TextDecoder(name)
  } catch {
    // A RangeError means an unknown label.
    return null
  }
}
