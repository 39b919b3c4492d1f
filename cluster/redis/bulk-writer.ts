/**
 * bulk-writer - writes short texts as arguments of the store's protocol: length, then bytes.
 *
 * A commit names dozens of keys. As one text they would be joined, measured and copied; here each is copied once, and
 * measured on the way.
 */

/** A text of more characters is copied outside of JavaScript. */
const LOOP_MAX = 256
/** Maximum bytes of a length with its sign and the ends of both lines. */
const FRAME_BYTES = 24
const [CR, LF, ZERO, DOLLAR, STAR, ASCII_MAX] = [13, 10, 48, 36, 42, 127]

export class BulkWriter {
  private buffer = Buffer.allocUnsafe(16_384)
  private at = 0

  /** Begins again; the last result of `written` is overwritten. */
  reset(): void {
    this.at = 0
    if (this.buffer.length > 1_048_576) this.buffer = Buffer.allocUnsafe(16_384)
  }

  /** Bytes since `reset`. */
  get length(): number {
    return this.at
  }

  /** Data written since `reset`, valid until the next one. */
  written(): Buffer {
    return this.buffer.subarray(0, this.at)
  }

  /** Begins a command of `count` arguments. */
  command(count: number): void {
    this.room(FRAME_BYTES)
    this.head(STAR, count)
  }

  /** Begins an argument of `bytes` bytes. The caller then writes them and calls `end`. */
  begin(bytes: number): void {
    this.room(FRAME_BYTES)
    this.head(DOLLAR, bytes)
  }

  /** Ends an argument. */
  end(): void {
    this.room(FRAME_BYTES)
    this.line()
  }

  /** One argument. */
  text(value: string): void {
    this.room(value.length * 3 + FRAME_BYTES)
    if (value.length > LOOP_MAX || !this.ascii(value)) this.utf8(value)
    this.line()
  }

  /** One argument. */
  bytes(value: Uint8Array): void {
    this.room(value.length + FRAME_BYTES)
    this.head(DOLLAR, value.length)
    this.buffer.set(value, this.at)
    this.at += value.length
    this.line()
  }

  /** False, and nothing written, if a character is not of ASCII. */
  private ascii(value: string): boolean {
    const start = this.at
    this.head(DOLLAR, value.length)
    const { buffer } = this
    let at = this.at
    for (let i = 0; i < value.length; i += 1) {
      const code = value.charCodeAt(i)
      if (code > ASCII_MAX) {
        this.at = start
        return false
      }
      buffer[at++] = code
    }
    this.at = at
    return true
  }

  private utf8(value: string): void {
    this.head(DOLLAR, Buffer.byteLength(value))
    this.at += this.buffer.write(value, this.at, 'utf8')
  }

  private head(sign: number, count: number): void {
    this.buffer[this.at++] = sign
    this.digits(count)
    this.line()
  }

  private digits(count: number): void {
    const rest = Math.floor(count / 10)
    if (rest > 0) this.digits(rest)
    this.buffer[this.at++] = ZERO + (count - rest * 10)
  }

  private line(): void {
    this.buffer[this.at++] = CR
    this.buffer[this.at++] = LF
  }

  private room(bytes: number): void {
    if (this.at + bytes <= this.buffer.length) return
    const larger = Buffer.allocUnsafe(Math.max(this.buffer.length * 2, this.at + bytes))
    this.buffer.copy(larger, 0, 0, this.at)
    this.buffer = larger
  }
}

/** The bytes of any command whose arguments are texts. */
export function commandBytes(args: readonly string[]): Buffer {
  let text = `*${args.length}\r\n`
  for (const arg of args) text += bulk(arg)
  return Buffer.from(text)
}

/** A text as the protocol's bulk string. */
export function bulk(text: string): string {
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`
}
