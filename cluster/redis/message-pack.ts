/**
 * message-pack - writes lists, small numbers and strings as MessagePack, for scripts that unpack them.
 *
 * Only what the store's decoder reads faithfully: it knows no bin type, ends a list at nil, and makes doubles of large
 * integers. So every value is a string (bytes too, because the decoder does not interpret strings), and numbers are
 * counts and places below 65,536.
 */

/** A longer text has a head of three bytes, whatever its characters, and is copied outside of JavaScript. */
const ASCII_LOOP_MAX = 48
/** A text up to this length has no more than 65,535 bytes. */
const SHORT_TEXT_MAX = 21_845

export class PackWriter {
  private buffer = Buffer.allocUnsafe(65_536)
  private at = 0

  /** Begins a new value; the last result of `packed` is overwritten by the next writes. */
  reset(): void {
    this.at = 0
    if (this.buffer.length > 1_048_576) this.buffer = Buffer.allocUnsafe(65_536)
  }

  /** Data written since `reset`, valid until the next one. */
  packed(): Buffer {
    return this.buffer.subarray(0, this.at)
  }

  /** A list of `length` values, which must follow. */
  list(length: number): void {
    this.room(5)
    if (length < 16) this.buffer[this.at++] = 0x90 | length
    else if (length < 65_536) this.head16(0xdc, length)
    else this.head32(0xdd, length)
  }

  /** A number from 0 to 65,535. */
  number(value: number): void {
    this.room(3)
    if (value < 128) this.buffer[this.at++] = value
    else this.head16(0xcd, value)
  }

  /** A text, as UTF-8. */
  text(value: string): void {
    const length = value.length
    this.room(length * 3 + 5)
    if (length > ASCII_LOOP_MAX && length <= SHORT_TEXT_MAX) this.middle(value)
    else if (length > ASCII_LOOP_MAX || !this.ascii(value, length)) this.utf8(value)
  }

  /** Writes bytes as a string. */
  bytes(value: Uint8Array): void {
    this.room(value.length + 5)
    this.stringHead(value.length)
    this.buffer.set(value, this.at)
    this.at += value.length
  }

  /** A short text of ASCII alone is copied without leaving JavaScript; false (and nothing written) if it is another. */
  private ascii(value: string, length: number): boolean {
    const start = this.at
    this.stringHead(length)
    const { buffer } = this
    let at = this.at
    for (let i = 0; i < length; i += 1) {
      const code = value.charCodeAt(i)
      if (code > 127) {
        this.at = start
        return false
      }
      buffer[at++] = code
    }
    this.at = at
    return true
  }

  /** Its bytes are counted as they are written. */
  private middle(value: string): void {
    const bytes = this.buffer.write(value, this.at + 3, 'utf8')
    this.head16(0xda, bytes)
    this.at += bytes
  }

  private utf8(value: string): void {
    const bytes = Buffer.byteLength(value)
    this.stringHead(bytes)
    this.buffer.write(value, this.at, 'utf8')
    this.at += bytes
  }

  private stringHead(bytes: number): void {
    if (bytes < 32) this.buffer[this.at++] = 0xa0 | bytes
    else if (bytes < 65_536) this.head16(0xda, bytes)
    else this.head32(0xdb, bytes)
  }

  private head16(type: number, value: number): void {
    this.buffer[this.at++] = type
    this.buffer[this.at++] = value >>> 8
    this.buffer[this.at++] = value & 0xff
  }

  private head32(type: number, value: number): void {
    this.buffer[this.at++] = type
    this.buffer.writeUInt32BE(value, this.at)
    this.at += 4
  }

  private room(bytes: number): void {
    if (this.at + bytes <= this.buffer.length) return
    const larger = Buffer.allocUnsafe(Math.max(this.buffer.length * 2, this.at + bytes))
    this.buffer.copy(larger, 0, 0, this.at)
    this.buffer = larger
  }
}
