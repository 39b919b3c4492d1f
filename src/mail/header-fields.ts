/**
 * header-fields - the fields of a mail's header as ranges of its bytes, so that one can be cut out and no other is
 * touched
 *
 * Strict: bytes that readers may interpret differently are not a header (RFC 5322 2.2). In: lines that end in CRLF.
 * Guarantees: linear in the header; at most 256 KiB and 1,000 fields are looked at.
 */

/** Bytes of a header, the empty line after it not counted. */
const HEADER_BYTES_MAX = 262_144
const FIELDS_MAX = 1000
/** Octets of a line without its end. RFC 5322 2.1.1 */
const LINE_OCTETS_MAX = 998

const SPACE = 0x20
const TAB = 0x09
const COLON = 0x3a
const CRLF = '\r\n'

/** One field. */
export interface FieldRange {
  /** In lower case. */
  readonly name: string
  readonly start: number
  /** Behind the colon. */
  readonly valueStart: number
  /** Behind its last line end. */
  readonly end: number
}

/** The fault of a header. */
export type HeaderFault = 'too_large' | 'too_many_fields' | 'long_line' | 'no_field'

/** The fields in their order, and the end of the header: its empty line, or the end of the mail. */
export type HeaderRanges =
  | { readonly ok: true; readonly fields: readonly FieldRange[]; readonly end: number }
  | { readonly ok: false; readonly fault: HeaderFault }

/** Reads the header that a mail begins with. Never throws. */
export function readHeaderFields(mail: Buffer): HeaderRanges {
  const fields: FieldRange[] = []
  let at = 0
  while (at < mail.length) {
    const newline = mail.indexOf(CRLF, at, 'latin1')
    const lineEnd = newline < 0 ? mail.length : newline
    if (lineEnd === at) break
    const end = Math.min(mail.length, lineEnd + CRLF.length)
    if (end > HEADER_BYTES_MAX) return { ok: false, fault: 'too_large' }
    if (lineEnd - at > LINE_OCTETS_MAX) return { ok: false, fault: 'long_line' }
    const isFolded = mail[at] === SPACE || mail[at] === TAB
    const field = isFolded ? longerBy(fields.pop(), end) : readField(mail, { start: at, lineEnd, end })
    if (field === null) return { ok: false, fault: 'no_field' }
    if (fields.length === FIELDS_MAX) return { ok: false, fault: 'too_many_fields' }
    fields.push(field)
    at = end
  }
  return { ok: true, fields, end: at }
}

/** The mail without some fields; the mail itself if there are none to cut. */
export function cutFields(mail: Buffer, cut: readonly FieldRange[]): Buffer {
  if (cut.length === 0) return mail
  const kept: Buffer[] = []
  let at = 0
  for (const { start, end } of cut) {
    if (start > at) kept.push(mail.subarray(at, start))
    at = end
  }
  kept.push(mail.subarray(at))
  return Buffer.concat(kept)
}

/** The field with a folded line (RFC 5322 2.2.3); null if no field precedes it. */
function longerBy(field: FieldRange | undefined, end: number): FieldRange | null {
  return field === undefined ? null : { ...field, end }
}

/** A field's first line; null if it begins none. Blanks before the colon are obsolete and allowed (RFC 5322 4.5). */
function readField(mail: Buffer, line: { start: number; lineEnd: number; end: number }): FieldRange | null {
  const { start, lineEnd, end } = line
  let nameEnd = start
  while (nameEnd < lineEnd && isNameOctet(mail[nameEnd] as number)) nameEnd += 1
  let colon = nameEnd
  while (colon < lineEnd && (mail[colon] === SPACE || mail[colon] === TAB)) colon += 1
  if (nameEnd === start || colon === lineEnd || mail[colon] !== COLON) return null
  return { name: mail.toString('latin1', start, nameEnd).toLowerCase(), start, valueStart: colon + 1, end }
}

function isNameOctet(octet: number): boolean {
  return octet > SPACE && octet < 0x7f && octet !== COLON
}
