/**
 * transfer - the transfer encodings of RFC 2045 6, undone piece by piece.
 *
 * Lenient as mail needs it: base64 skips other characters and starts again after each padding; in quoted-printable a
 * `=` that begins no octet represents itself, and blanks at the end of a line are dropped (6.7 (3)). Guarantees: time
 * and memory linear in the input; the borders of pieces do not matter.
 */

/** How a body is encoded; `identity` for 7bit, 8bit, binary and for unknown encodings. */
export type TransferEncoding = 'identity' | 'base64' | 'quoted-printable'

/** Undoes an encoding. */
export interface TransferDecoder {
  /** The next bytes, decoded as far as they can be. */
  push(bytes: Uint8Array): Buffer
  /** Octets held back. */
  end(): Buffer
}

const EMPTY = Buffer.alloc(0)
const NAMES: Readonly<Record<string, TransferEncoding>> = {
  '': 'identity',
  '7bit': 'identity',
  '8bit': 'identity',
  binary: 'identity',
  base64: 'base64',
  'quoted-printable': 'quoted-printable',
}

/** The encoding of a Content-Transfer-Encoding field; null if its value is not in RFC 2045 6.1. */
export function parseTransferEncoding(value: string): TransferEncoding | null {
  const name = value
    .replace(/\([^()]*\)/g, '')
    .trim()
    .toLowerCase()
  return Object.hasOwn(NAMES, name) ? (NAMES[name] as TransferEncoding) : null
}

/** A decoder for one body. */
export function makeTransferDecoder(encoding: TransferEncoding): TransferDecoder {
  if (encoding === 'base64') return new Base64Decoder()
  if (encoding === 'quoted-printable') return new QuotedPrintableDecoder()
  return { push: (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), end: () => EMPTY }
}

/** A whole body, decoded. With `identity` the result shares the memory of the input. */
export function decodeTransfer(encoding: TransferEncoding, bytes: Uint8Array): Buffer {
  const decoder = makeTransferDecoder(encoding)
  const first = decoder.push(bytes)
  const rest = decoder.end()
  return rest.length === 0 ? first : Buffer.concat([first, rest])
}

/**
 * Sextet of each octet; 64 for padding, 255 for other characters. The URL alphabet (RFC 4648 5) counts too.
 */
const SEXTETS = new Uint8Array(256).fill(255)
for (const [value, char] of [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/='].entries())
  SEXTETS[char.charCodeAt(0)] = value
SEXTETS[0x2d] = 62
SEXTETS[0x5f] = 63
const PADDING = 64

class Base64Decoder implements TransferDecoder {
  #bits = 0
  #count = 0

  push(bytes: Uint8Array): Buffer {
    const out = Buffer.allocUnsafe(Math.floor((bytes.length * 3) / 4) + 3)
    let at = 0
    let bits = this.#bits
    let count = this.#count
    for (let index = 0; index < bytes.length; index += 1) {
      const value = SEXTETS[bytes[index] as number] as number
      if (value < 64) {
        bits = ((bits << 6) | value) & 0xffff
        count += 6
        if (count >= 8) {
          count -= 8
          out[at] = (bits >> count) & 0xff
          at += 1
        }
      } else if (value === PADDING) {
        count = 0
      }
    }
    this.#bits = bits
    this.#count = count
    return out.subarray(0, at)
  }

  end(): Buffer {
    return EMPTY
  }
}

const LF = 0x0a
const CR = 0x0d
const EQUALS = 0x3d

/** Value of a hexadecimal digit in either case, -1 for none. */
function decodeHex(octet: number): number {
  if (octet >= 0x30 && octet <= 0x39) return octet - 0x30
  const lower = octet | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}

/**
 * Undecided octets are in `#held`: a `=` with its possible continuation, or blanks that the end of the line would
 * drop. The list of pieces is joined once, when it is decided.
 */
class QuotedPrintableDecoder implements TransferDecoder {
  #held: Buffer[] = []

  push(bytes: Uint8Array): Buffer {
    const input = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    // Blanks decide nothing.
    if (this.#held.length > 0 && isBlank(input)) {
      this.#held.push(Buffer.from(input))
      return EMPTY
    }
    const whole = this.#held.length === 0 ? input : Buffer.concat([...this.#held, input])
    const hold = holdFrom(whole)
    // The input may be a buffer that is reused.
    this.#held = hold < whole.length ? [Buffer.from(whole.subarray(hold))] : []
    return decodeLines(whole, hold)
  }

  end(): Buffer {
    const held = Buffer.concat(this.#held)
    const rest = decodeLines(held, held.length)
    this.#held = []
    return rest
  }
}

function isBlank(bytes: Uint8Array): boolean {
  for (let index = 0; index < bytes.length; index += 1) {
    const octet = bytes[index]
    if (octet !== 0x20 && octet !== 0x09) return false
  }
  return true
}

/** Start of undecidable octets: blanks at the end, a `=` and its continuation, or a CR. */
function holdFrom(bytes: Uint8Array): number {
  let end = bytes.length
  if (end > 0 && bytes[end - 1] === CR) end -= 1
  while (end > 0 && isSpace(bytes[end - 1])) end -= 1
  if (end > 0 && bytes[end - 1] === EQUALS) end -= 1
  else if (end > 1 && end === bytes.length && bytes[end - 2] === EQUALS) end -= 2
  else return end
  // Blanks before it stay, unlike those at the end of a line: they are decoded together.
  while (end > 0 && isSpace(bytes[end - 1])) end -= 1
  return end
}

/** Decodes up to `end`, which is followed by blanks or a `=`, or is the end of the body. */
function decodeLines(bytes: Uint8Array, end: number): Buffer {
  const out = Buffer.allocUnsafe(end)
  let at = 0
  /** The start of the blanks at the end of `out`, which an end of line drops. */
  let solid = 0
  for (let index = 0; index < end; index += 1) {
    const octet = bytes[index] as number
    if (octet !== EQUALS) {
      if (isLineEnd(bytes, index)) at = solid
      out[at] = octet
      at += 1
      if (!isSpace(octet)) solid = at
      continue
    }
    const escaped = escapedOctet(bytes, index + 1)
    const next = escaped < 0 ? skipSoftBreak(bytes, index + 1) : index + 3
    if (escaped >= 0 || next < 0) {
      out[at] = escaped < 0 ? EQUALS : escaped
      at += 1
    }
    solid = at
    if (next >= 0) index = next - 1
  }
  return out.subarray(0, solid)
}

function isSpace(octet: number | undefined): boolean {
  return octet === 0x20 || octet === 0x09
}

function isLineEnd(bytes: Uint8Array, index: number): boolean {
  return bytes[index] === LF || (bytes[index] === CR && bytes[index + 1] === LF)
}

/** The octet of two hexadecimal digits, or -1. */
function escapedOctet(bytes: Uint8Array, from: number): number {
  const high = decodeHex(bytes[from] ?? 0)
  const low = decodeHex(bytes[from + 1] ?? 0)
  return high < 0 || low < 0 ? -1 : high * 16 + low
}

/**
 * The start of the line after a soft break, after blanks and an end of line or of the body; -1 if it is not a soft
 * break.
 */
function skipSoftBreak(bytes: Uint8Array, from: number): number {
  let index = from
  while (index < bytes.length && isSpace(bytes[index])) index += 1
  if (index >= bytes.length) return index
  if (bytes[index] === LF) return index + 1
  return bytes[index] === CR && bytes[index + 1] === LF ? index + 2 : -1
}
