/**
 * dkim - the signed data and the signature field of a DKIM signature (RFC 6376, RFC 8301). No key here.
 *
 * relaxed/relaxed, rsa-sha256, `t=`, no `x=`, no `l=`. Visible fields are named once more than they occur (RFC 6376
 * 8.15), so that adding a second Subject or From in transit breaks the signature.
 *
 * Guarantees: linear in the message, with any content; the same message, name and time give the same bytes, and with
 * RSASSA-PKCS1-v1_5 the same signature.
 *
 * Spec dkim.signed
 */

import { createHash } from 'node:crypto'

/** Named once more than present. RFC 8058 wants both List-Unsubscribe fields covered, Gmail the Feedback-ID. */
const OVERSIGNED = [
  'from',
  'to',
  'cc',
  'subject',
  'date',
  'message-id',
  'reply-to',
  'mime-version',
  'content-type',
  'content-transfer-encoding',
  'list-unsubscribe',
  'list-unsubscribe-post',
  'feedback-id',
]
/** Named as often as present: servers on the way may add to them. */
const SIGNED = ['in-reply-to', 'references', 'list-id', 'x-sendwright-id']
/** Octets of a line of the field. */
const LINE_OCTETS_MAX = 76
/** Bytes of the body gathered before they are hashed. */
const STAGED_BYTES_MAX = 65_536
/** A loop copies fewer bytes faster than a call does. */
const LOOPED_BYTES_MAX = 32

const TAB = 0x09
const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20

/** Whose signature it is and when it was made. */
export interface DkimName {
  readonly domain: string
  readonly selector: string
  readonly signedAtMs: number
}

/** A message as it is signed, once for all its signatures. */
export interface DkimSubject {
  /** The signed fields in canonical form, each with its CRLF. */
  readonly fields: string
  /** Their names as `h=` lists them. */
  readonly names: readonly string[]
  /** SHA-256 of the canonical body, base64. */
  readonly bodyHash: string
}

/** A field that lacks only its signature. */
export interface DkimDraft {
  /** Data to be signed with RSA and SHA-256. */
  readonly data: Buffer
  /** The field up to `b=`. */
  readonly field: string
}

/** Reads a message (CRLF line ends, seven-bit header) for signing. */
export function makeSubject(message: Buffer): DkimSubject {
  const headerEnd = message.indexOf('\r\n\r\n')
  const header = headerEnd < 0 ? message.toString('latin1') : message.toString('latin1', 0, headerEnd)
  const byName = fieldsByName(header)
  const names: string[] = []
  let fields = ''
  const sign = (name: string) => {
    const present = byName.get(name) ?? []
    // If a field occurs several times, the last one is signed first (RFC 6376 5.4.2).
    for (let index = present.length - 1; index >= 0; index -= 1) {
      names.push(name)
      fields += `${name}:${canonicalValue(present[index]!)}\r\n`
    }
  }
  for (const name of OVERSIGNED) {
    sign(name)
    names.push(name)
  }
  for (const name of SIGNED) sign(name)
  const bodyAt = headerEnd < 0 ? message.length : headerEnd + 4
  return { fields, names, bodyHash: hashBody(message, bodyAt) }
}

/** The signature field, and the data that it signs. */
export function draftSignature(
  { fields, names, bodyHash }: DkimSubject,
  { domain, selector, signedAtMs }: DkimName,
): DkimDraft {
  const lines = [
    `DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=${domain};`,
    ` s=${selector}; t=${Math.floor(signedAtMs / 1000)};`,
    ...foldNames(names),
    ` bh=${bodyHash};`,
    ' b=',
  ]
  const field = lines.join('\r\n')
  const own = canonicalValue(field.slice(field.indexOf(':') + 1))
  // The field itself comes last, with an empty b= and without a line end (RFC 6376 3.7).
  return { data: Buffer.from(`${fields}dkim-signature:${own}`, 'latin1'), field }
}

/** The complete field with its line end, to put before the message. Takes the signature's bytes. */
export function finishSignature({ field }: DkimDraft, signature: Buffer): string {
  const base64 = signature.toString('base64')
  const lines = [base64.slice(0, LINE_OCTETS_MAX - ' b='.length)]
  for (let at = lines[0]!.length; at < base64.length; at += LINE_OCTETS_MAX - 1)
    lines.push(base64.slice(at, at + LINE_OCTETS_MAX - 1))
  return `${field}${lines.join('\r\n ')}\r\n`
}

/** SHA-256 in base64 of the body from `from` on in relaxed form (RFC 6376 3.4.4), in one pass. */
export function hashBody(message: Buffer, from: number): string {
  const canonical = new HashedBytes(message)
  const end = message.length
  let runAt = from
  let at = from
  while (at < end) {
    const byte = message[at]!
    if (byte > SPACE || isKept(message, at, byte)) {
      at += 1
      continue
    }
    canonical.copy(runAt, at)
    // Blanks and line ends in a row: only the number of line ends matters, and whether the last line begins with a
    // blank.
    let lines = 0
    let isBlank = false
    for (; at < end; at += 1) {
      const next = message[at]!
      if (next === SPACE || next === TAB) isBlank = true
      else if (next === CR && message[at + 1] === LF) {
        lines += 1
        isBlank = false
        at += 1
      } else break
    }
    runAt = at
    if (at >= end) break
    canonical.lines(lines)
    if (isBlank) canonical.text(' ')
  }
  canonical.copy(runAt, at)
  // Empty lines at the end do not count; the last line that does has an end, in any case.
  if (canonical.bytes > 0) canonical.text('\r\n')
  return canonical.digest()
}

/** Whether a byte up to the space is unchanged in the canonical body, whatever comes before it. */
function isKept(message: Buffer, at: number, byte: number): boolean {
  if (byte === TAB) return false
  if (byte !== SPACE && byte !== CR) return true
  const next = message[at + 1]
  if (byte === SPACE) return next !== undefined && next !== SPACE && next !== TAB && next !== CR
  if (next !== LF) return true
  const after = message[at + 2]
  return after !== undefined && after > SPACE
}

/** Pieces of a message on their way into a hash; small ones are gathered, because each call costs more than they do. */
class HashedBytes {
  bytes = 0
  private readonly message: Buffer
  private readonly hash = createHash('sha256')
  private readonly staged: Buffer
  private stagedBytes = 0

  constructor(message: Buffer) {
    this.message = message
    this.staged = Buffer.allocUnsafe(Math.min(STAGED_BYTES_MAX, message.length + 2))
  }

  copy(from: number, to: number): void {
    const bytes = to - from
    if (bytes > this.staged.length - this.stagedBytes) this.flush()
    if (bytes > this.staged.length) this.hash.update(this.message.subarray(from, to))
    else if (bytes > LOOPED_BYTES_MAX) this.stagedBytes += this.message.copy(this.staged, this.stagedBytes, from, to)
    else
      for (let at = from; at < to; at += 1) {
        this.staged[this.stagedBytes] = this.message[at]!
        this.stagedBytes += 1
      }
    this.bytes += bytes
  }

  lines(count: number): void {
    for (let line = 0; line < count; line += 1) this.text('\r\n')
  }

  text(text: string): void {
    if (text.length > this.staged.length - this.stagedBytes) this.flush()
    for (let at = 0; at < text.length; at += 1) this.staged[this.stagedBytes + at] = text.charCodeAt(at)
    this.stagedBytes += text.length
    this.bytes += text.length
  }

  digest(): string {
    this.flush()
    return this.hash.digest('base64')
  }

  private flush(): void {
    this.hash.update(this.staged.subarray(0, this.stagedBytes))
    this.stagedBytes = 0
  }
}

/** Values of the fields by name in lower case, in the order of the header, folds and all. */
function fieldsByName(header: string): Map<string, string[]> {
  const byName = new Map<string, string[]>()
  let current: string[] | null = null
  for (const line of header.split('\r\n')) {
    const first = line.charCodeAt(0)
    if ((first === SPACE || first === TAB) && current !== null) {
      current.push(`${current.pop()}\r\n${line}`)
      continue
    }
    const colon = line.indexOf(':')
    if (colon <= 0) continue
    const name = line.slice(0, colon).trimEnd().toLowerCase()
    current = byName.get(name) ?? []
    byName.set(name, current)
    current.push(line.slice(colon + 1))
  }
  return byName
}

/** A field's value in relaxed form (RFC 6376 3.4.2): unfolded, blanks as one space, none at the ends. */
function canonicalValue(value: string): string {
  return value
    .split(/[\t\r\n ]+/)
    .filter((word) => word !== '')
    .join(' ')
}

/** `h=` in lines that are broken after a colon only: some verifiers know no other place. */
function foldNames(names: readonly string[]): string[] {
  const lines: string[] = []
  let line = ' h='
  for (const [index, name] of names.entries()) {
    const part = index === names.length - 1 ? `${name};` : `${name}:`
    if (line.length + part.length > LINE_OCTETS_MAX) {
      lines.push(line)
      line = ' '
    }
    line += part
  }
  return [...lines, line]
}
