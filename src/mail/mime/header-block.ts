/**
 * header-block - the fields of a mail or of a part (RFC 5322 2.2), cut out of its bytes.
 *
 * A line that is neither a field nor a continuation of one is dropped with its own continuation lines. Blanks before
 * the colon are allowed (RFC 5322 4.5); a first line `From ...` of an mbox file is ignored. Guarantees: at most 256
 * KiB of bytes are looked at, and 1,000 fields come out.
 *
 * Spec inbound.parse.header
 */

/** Bytes of a block of fields, the empty line after them not counted. */
export const HEADER_BYTES_MAX = 262_144
/** Fields of a block. */
export const FIELDS_MAX = 1000

/** One field. */
export interface HeaderField {
  /** As it was written. */
  readonly name: string
  /** The text after the colon, folds too, without the end of the last line. */
  readonly value: Buffer
}

/** The fields, and the start of the body. */
export interface HeaderBlock {
  readonly fields: readonly HeaderField[]
  readonly bodyStart: number
  /** Lines that are no fields were dropped. */
  readonly isMalformed: boolean
  /** The block exceeds a limit. Its fields are those before that place, and there is no body. */
  readonly issue: 'header_block_too_large' | 'too_many_headers' | null
}

const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const TAB = 0x09
const COLON = 0x3a
const DASH = 0x2d
const MBOX_LINE = /^From /

/**
 * Reads the block that begins at `start`. It ends before its empty line, at the end of the bytes, or at a line
 * beginning with `--` that belongs to an outer multipart (`isDelimiter`).
 */
export function readHeaderBlock(
  raw: Buffer,
  start: number,
  isDelimiter: (lineStart: number) => boolean = () => false,
): HeaderBlock {
  const block = new BlockReader(raw, start)
  const seen = raw.subarray(0, start + HEADER_BYTES_MAX + 3)
  for (let at = start; at < raw.length; ) {
    const newline = seen.indexOf(LF, at)
    const next = newline < 0 ? seen.length : newline + 1
    const end = newline < 0 ? next : newline > at && raw[newline - 1] === CR ? newline - 1 : newline
    if (newline >= 0 && end === at) return block.end(next, null)
    if (raw[at] === DASH && raw[at + 1] === DASH && isDelimiter(at)) return block.end(at, null)
    if (next - start > HEADER_BYTES_MAX) return block.end(raw.length, 'header_block_too_large')
    if (!block.add(at, end)) return block.end(raw.length, 'too_many_headers')
    at = next
  }
  return block.end(raw.length, null)
}

/** Makes fields of lines. */
class BlockReader {
  private readonly fields: HeaderField[] = []
  private readonly raw: Buffer
  private readonly start: number
  private isMalformed = false
  /** The field whose folds may follow. */
  private open: { readonly name: string; readonly from: number; end: number } | null = null

  constructor(raw: Buffer, start: number) {
    this.raw = raw
    this.start = start
  }

  /** Adds a line, given by its start and end; false if there are too many fields. */
  add(at: number, end: number): boolean {
    const { raw, open } = this
    if (raw[at] === SPACE || raw[at] === TAB) {
      // A continuation without a field is not a field; the continuation of a dropped line is dropped with it.
      if (open === null) this.isMalformed = true
      else open.end = end
      return true
    }
    this.close()
    const colon = findColon(raw, at, end)
    if (colon > at) {
      if (this.fields.length === FIELDS_MAX) return false
      this.open = { name: raw.toString('latin1', at, colon).trimEnd(), from: raw.indexOf(COLON, colon) + 1, end }
    } else this.isMalformed ||= at > this.start || !MBOX_LINE.test(raw.toString('latin1', at, Math.min(end, at + 5)))
    return true
  }

  end(bodyStart: number, issue: HeaderBlock['issue']): HeaderBlock {
    this.close()
    return { fields: this.fields, bodyStart, isMalformed: this.isMalformed, issue }
  }

  private close(): void {
    if (this.open !== null) {
      const { name, from, end } = this.open
      this.fields.push({ name, value: this.raw.subarray(from, end) })
    }
    this.open = null
  }
}

/** The end of the name at the start of a line (RFC 5322 2.2: printable, no colon); -1 if the line is not a field. */
function findColon(raw: Buffer, start: number, end: number): number {
  let at = start
  while (at < end && (raw[at] as number) > SPACE && (raw[at] as number) < 0x7f && raw[at] !== COLON) at += 1
  const nameEnd = at
  while (at < end && (raw[at] === SPACE || raw[at] === TAB)) at += 1
  return raw[at] === COLON && at < end ? nameEnd : -1
}
