/**
 * header-text - a header value as people read it: unfolded, encoded words decoded (RFC 2047), controls taken out.
 *
 * Guarantees: never throws; time linear in the value.
 */

import { decodeCharset, isShifting } from './charset.ts'
import { decodeTransfer } from './transfer.ts'

/** Spec inbound.parse.value: characters of a value that are kept. */
export const VALUE_CHARS_MAX = 2000

/** RFC 2047 2, with the language of RFC 2231 5; text may hold blanks, which many writers leave in it. */
const WORD = /=\?([^?*\s]+)(?:\*[^?\s]*)?\?([BbQq])\?([^?]*)\?=/g
const CONTROLS_OF_VALUE = /[\x00-\x08\x0a-\x1f\x7f-\x9f]/g
const CONTROLS_OF_TEXT = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g
const NOT_ASCII = /[^\x00-\x7f]/

/** A value that was changed on its way, and whether it was. */
export interface Cleaned {
  readonly text: string
  readonly isChanged: boolean
}

/**
 * The value of a field in one line (RFC 5322 2.2.3), in which each line end with the white space after it is one
 * space.
 */
export function unfold(value: Uint8Array): string {
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  const ascii = bytes.toString('latin1')
  const text = NOT_ASCII.test(ascii) ? decodeCharset(bytes, null) : ascii
  return text.replace(/\r?\n[ \t]/g, ' ').trim()
}

/**
 * Decodes the encoded words of a value. Neighbours of one charset are decoded as one, since writers cut characters in
 * two; but those of a charset with escapes each begin in its first state (RFC 2047 3).
 */
export function decodeWords(text: string): string {
  if (!text.includes('=?')) return text
  let out = ''
  let end = 0
  let pending: Word | null = null
  for (const match of text.matchAll(WORD)) {
    const [all, charset = '', encoding = '', payload = ''] = match
    const gap = text.slice(end, match.index)
    end = match.index + all.length
    const word: Word = { charset: charset.toLowerCase(), encoding: encoding.toLowerCase(), pieces: [payload] }
    const isNeighbour = pending !== null && gap.trim() === ''
    const isOne = isNeighbour && pending?.charset === word.charset && !isShifting(word.charset)
    if (isOne && pending?.encoding === word.encoding) {
      pending.pieces.push(payload)
      continue
    }
    out += decodeWord(pending) + (isNeighbour ? '' : gap)
    pending = word
  }
  return out + decodeWord(pending) + text.slice(end)
}

interface Word {
  readonly charset: string
  readonly encoding: string
  readonly pieces: string[]
}

function decodeWord(word: Word | null): string {
  if (word === null) return ''
  const payload = word.pieces.join('')
  const bytes =
    word.encoding === 'b'
      ? decodeTransfer('base64', Buffer.from(payload, 'latin1'))
      : decodeQ(NOT_ASCII.test(payload) ? Buffer.from(payload) : Buffer.from(payload, 'latin1'))
  return decodeCharset(bytes, word.charset)
}

/** RFC 2047 4.2: quoted-printable in which `_` is a space and no line ends. */
function decodeQ(bytes: Buffer): Buffer {
  const out = Buffer.allocUnsafe(bytes.length)
  let at = 0
  for (let index = 0; index < bytes.length; index += 1) {
    let octet = bytes[index] as number
    if (octet === 0x3d) {
      const digits = bytes.toString('latin1', index + 1, index + 3)
      if (/^[0-9a-f]{2}$/i.test(digits)) {
        octet = Number.parseInt(digits, 16)
        index += 2
      }
    } else if (octet === 0x5f) octet = 0x20
    out[at] = octet
    at += 1
  }
  return out.subarray(0, at)
}

/** A value, a name or an address without controls: C0 but TAB, DEL, C1. Ends of lines that encoded words hid go too. */
export function stripValue(text: string): Cleaned {
  const stripped = text.replace(CONTROLS_OF_VALUE, '')
  return { text: stripped, isChanged: stripped.length !== text.length }
}

/** A body's text with LF at its line ends and without controls: C0 but TAB and LF, DEL, C1. */
export function stripText(text: string): Cleaned {
  const lined = text.includes('\r') ? text.replace(/\r\n?/g, '\n') : text
  const stripped = lined.replace(CONTROLS_OF_TEXT, '')
  return { text: stripped, isChanged: stripped.length !== lined.length }
}

/** The first characters (code points) of a value. */
export function cutValue(text: string, charsMax: number = VALUE_CHARS_MAX): Cleaned {
  if (text.length <= charsMax) return { text, isChanged: false }
  // No character has more than two units.
  const cut = [...text.slice(0, charsMax * 2)].slice(0, charsMax).join('')
  return { text: cut, isChanged: cut.length !== text.length }
}
