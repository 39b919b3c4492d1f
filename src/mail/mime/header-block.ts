/**
 * header-block - the fields of a mail or of a part (RFC 5322 2.2), cut out of its bytes.
 *
 * A line that is neither a field nor the fold of one is dropped with its own folds. Blanks before the colon are allowed
 * (RFC 5322 4.5); a first line `From ...` is an mbox file's and counts as nothing.
 * Guarantees: at most 256 KiB of bytes are looked at, and 1,000 fields come out.
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
  /** What stands behind the colon, folds too, without the end of the last line. */
  readonly value: Buffer
}

/** The fields, and where the body begins. */
export interface HeaderBlock {
  readonly fields: readonly HeaderField[]
  readonly bodyStart: number
  /** Lines that are no fields were dropped. */
  readonly isMalformed: boolean
  /** The block passes a limit: its fields are those before that place, and there is no body. */
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
 * Reads the block that begins at `start`. It ends before its empty line, at the end of the bytes, or where
 * `isDelimiter` says that a line which begins with `--` belongs to a multipart around it.
 */
export function readHeaderBlock(
  raw: Buffer,
  start: number,
  isDelimiter: (lineStart: number) => boolean = () => false,
): HeaderBlock {
  const fields: HeaderField[] = []
  let isMalformed = false
  let open: { name: string; from: number } | null = null
  let openEnd = start
  const seen = raw.subarray(start, start + HEADER_BYTES_MAX + 3)
  const close = (): void => {
    if (open !== null) fields.push({ name: open.name, value: raw.subarray(open.from, openEnd) })
    open = null
  }
  const done = (bodyStart: number, issue: HeaderBlock['issue']): HeaderBlock => ({
    fields,
    bodyStart,
    isMalformed,
    issue,
  })
  let at = start
  while (at < raw.length) {
    const newline = seen.indexOf(LF, at - start)
    const next = newline < 0 ? Math.min(raw.length, start + seen.length) : start + newline + 1
    const end = newline < 0 ? next : raw[next - 2] === CR && next - 2 >= at ? next - 2 : next - 1
    if (newline >= 0 && end === at) break
    if (raw[at] === DASH && raw[at + 1] === DASH && isDelimiter(at)) {
      close()
      return done(at, null)
    }
    if (next - start > HEADER_BYTES_MAX) {
      close()
      return done(raw.length, 'header_block_too_large')
    }
    if (raw[at] === SPACE || raw[at] === TAB) {
      if (open !== null) openEnd = end
      // A fold of nothing is no field; the fold of a line that was dropped is dropped with it.
      else isMalformed = true
    } else {
      close()
      const colon = colonOf(raw, at, end)
      if (colon > at && fields.length === FIELDS_MAX) return done(raw.length, 'too_many_headers')
      if (colon > at) open = { name: raw.toString('latin1', at, colon).trimEnd(), from: raw.indexOf(COLON, colon) + 1 }
      else if (at > start || !MBOX_LINE.test(raw.toString('latin1', at, Math.min(end, at + 5)))) isMalformed = true
      openEnd = end
    }
    at = next
  }
  close()
  return done(at < raw.length ? afterLine(raw, at) : raw.length, null)
}

/** Where the name ends that a line begins with (RFC 5322 2.2: printable, no colon); -1 where the line is no field. */
function colonOf(raw: Buffer, start: number, end: number): number {
  let at = start
  while (at < end && (raw[at] as number) > SPACE && (raw[at] as number) < 0x7f && raw[at] !== COLON) at += 1
  const nameEnd = at
  while (at < end && (raw[at] === SPACE || raw[at] === TAB)) at += 1
  return raw[at] === COLON && at < end ? nameEnd : -1
}

function afterLine(raw: Buffer, at: number): number {
  return raw[at] === CR ? at + 2 : at + 1
}
