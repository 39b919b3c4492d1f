/**
 * submitted-header - the header of a message received over SMTP: its sender, its control fields, and the fields that
 * are never sent
 *
 * The message is kept as its client wrote it. Only whole fields are removed: Bcc, trace and authentication fields of
 * earlier hops, and the control fields `X-Sendwright-*`, which correspond to fields of an API request. Missing required
 * fields are added when the message is sent (`mail/compose/raw.ts`).
 *
 * Guarantees: fields are not folded again, and the body is not changed; a header that readers could interpret in two
 * ways is refused.
 *
 * Spec submission.header, submission.control, send.tag, send.metadata, request.idempotency
 */

import {
  ADDRESS_NAME_CHARS_MAX,
  IDEMPOTENCY_KEY_CHARS_MAX,
  METADATA_KEY_CHARS_MAX,
  METADATA_MAX,
  METADATA_VALUE_CHARS_MAX,
  TAG_CHARS_MAX,
} from '../../schemas/limits.ts'
import { parseAddress } from '../mail/address.ts'
import { cutFields, type FieldRange, type HeaderFault, readHeaderFields } from '../mail/header-fields.ts'
import { readAddressList } from '../mail/mime/address-list.ts'
import { cutValue, decodeWords, unfold, VALUE_CHARS_MAX } from '../mail/mime/header-text.ts'
import { isInstant } from '../views/instant.ts'
import type { FromAddress } from './email-form.ts'

/** Values of the control fields. */
export interface SubmissionControl {
  /** In lower case; null if none. */
  readonly streamId: string | null
  readonly tag: string | null
  readonly metadata: Readonly<Record<string, string>>
  readonly idempotencyKey: string | null
  /** When the message is sent, ms; null: at once. */
  readonly sendAtMs: number | null
}

/** The parsed header, and the message without the fields that are never sent. */
export interface SubmittedHeader {
  readonly edited: Buffer
  readonly from: FromAddress
  /** Domain of the Sender field (RFC 5322 3.6.2); null if there is none, or it is that of From. */
  readonly senderDomain: string | null
  /** With angle brackets; null if the message has none to keep. */
  readonly messageId: string | null
  readonly control: SubmissionControl
}

/** `loop`: the message has passed too many servers. `invalid`: with a sentence. */
export type ReadSubmission =
  | { readonly ok: true; readonly header: SubmittedHeader }
  | { readonly ok: false; readonly problem: 'loop' | 'invalid'; readonly text: string }

/** Servers that a message has passed (RFC 5321 6.3). */
const RECEIVED_MAX = 50
const CONTROL_PREFIX = 'x-sendwright-'
const METADATA = `${CONTROL_PREFIX}metadata`
const METADATA_PREFIX = `${METADATA}-`
/** Written by servers on the way, or for them alone. */
const DROPPED: ReadonlySet<string> = new Set([
  ...['bcc', 'return-path', 'received', 'received-spf', 'dkim-signature', 'domainkey-signature'],
  'authentication-results',
])
const DROPPED_PREFIX = /^(?:arc|resent)-/
const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i
const CONTROLS = /[\u0000-\u001f\u007f-\u009f]/
const LONE_SURROGATE = /\p{Surrogate}/u
const PRINTABLE_ASCII = /^[\x20-\x7e]+$/
const MESSAGE_ID = /^<[^<>\s]+>$/
/**
 * One mailbox (RFC 5322 3.4) after removing quoted strings and comments: an address in angle brackets, or alone.
 */
const ONE_MAILBOX = /^(?:[^<>,;:]*<[^<>\s,;:]+>|[^<>\s,;:]+)$/
const QUOTED = /"(?:\\.|[^"\\])*"/g
const COMMENT = /\((?:\\.|[^()\\])*\)/g

const FAULTS: Readonly<Record<HeaderFault, string>> = {
  too_large: 'Header has more than 256 KiB',
  too_many_fields: 'Header has more than 1,000 fields',
  long_line: 'Header has a line of more than 998 octets',
  no_field: 'Header has a line that is not a field',
}

/** Reads a message as DATA brought it, its lines checked. Never throws. */
export function readSubmittedHeader(mail: Buffer): ReadSubmission {
  const read = readHeaderFields(mail)
  if (!read.ok) return invalid(FAULTS[read.fault])
  const { fields } = read
  if (fields.filter(({ name }) => name === 'received').length > RECEIVED_MAX)
    return { ok: false, problem: 'loop', text: 'Too many hops: mail loops' }
  const from = readFrom(mail, fields)
  if (typeof from === 'string') return invalid(from)
  const sender = readSender(mail, fields)
  if (typeof sender === 'string') return invalid(sender)
  const control = readControl(mail, fields)
  if (typeof control === 'string') return invalid(control)
  const own = fields.find((field) => field.name === 'message-id' && MESSAGE_ID.test(lineOf(mail, field)))
  const isCut = (field: FieldRange) => neverLeaves(field.name) || isUseless(mail, field, own)
  const header = {
    edited: cutFields(mail, fields.filter(isCut)),
    from,
    senderDomain: sender === null || sender.domain === from.domain ? null : sender.domain,
    messageId: own === undefined ? null : lineOf(mail, own),
    control,
  }
  return { ok: true, header }
}

function invalid(text: string): ReadSubmission {
  return { ok: false, problem: 'invalid', text }
}

function neverLeaves(name: string): boolean {
  return DROPPED.has(name) || name.startsWith(CONTROL_PREFIX) || DROPPED_PREFIX.test(name)
}

/** An empty Date, and any Message-ID except the one that counts, because the added one would be a duplicate. */
function isUseless(mail: Buffer, field: FieldRange, messageId: FieldRange | undefined): boolean {
  if (field.name === 'message-id') return field !== messageId
  return field.name === 'date' && lineOf(mail, field) === ''
}

/** The sender; a sentence if it is not one address. */
function readFrom(mail: Buffer, fields: readonly FieldRange[]): FromAddress | string {
  const [only, ...others] = fields.filter(({ name }) => name === 'from')
  if (only === undefined) return 'From is missing'
  if (others.length > 0) return 'From occurs more than once'
  return readMailbox('From', lineOf(mail, only))
}

/** The domain of the Sender field; null if there is none; a sentence if it is not one address. */
function readSender(mail: Buffer, fields: readonly FieldRange[]): FromAddress | string | null {
  const [only, ...others] = fields.filter(({ name }) => name === 'sender')
  if (only === undefined) return null
  return others.length > 0 ? 'Sender occurs more than once' : readMailbox('Sender', lineOf(mail, only))
}

/** The one address of a field; a sentence if it holds anything else. */
function readMailbox(field: string, line: string): FromAddress | string {
  // The search below takes time quadratic in the length.
  if (line.length > VALUE_CHARS_MAX) return `${field} has more than ${VALUE_CHARS_MAX} characters`
  const bare = line.replace(QUOTED, '""').replace(COMMENT, ' ').trim()
  const { addresses, count } = readAddressList([line])
  const [mailbox] = addresses
  if (mailbox === undefined || count !== 1 || !ONE_MAILBOX.test(bare)) return `${field} must have one address`
  const parsed = parseAddress(mailbox.address)
  if (!parsed.ok) return `${field} has no valid sender address`
  const name = mailbox.name === null ? null : cutValue(mailbox.name, ADDRESS_NAME_CHARS_MAX).text
  return { address: parsed.address, domain: parsed.domain, name }
}

/** The control values; a sentence if a field is wrong. */
function readControl(mail: Buffer, fields: readonly FieldRange[]): SubmissionControl | string {
  const given = fields.filter(({ name }) => name.startsWith(CONTROL_PREFIX))
  if (given.length === 0) return NO_CONTROL
  const metadata = readMetadata(mail, given)
  if (typeof metadata === 'string') return metadata
  const values: Record<string, string | null> = {}
  for (const { name, check, wanted } of SINGLE) {
    const [field, ...others] = given.filter((one) => one.name === `${CONTROL_PREFIX}${name}`)
    if (others.length > 0) return `X-Sendwright-${name} occurs more than once`
    values[name] = field === undefined ? null : check(lineOf(mail, field))
    if (field !== undefined && values[name] === null) return `X-Sendwright-${name} must be ${wanted}`
  }
  const { stream = null, tag = null, 'idempotency-key': idempotencyKey = null } = values
  const sendAt = values['send-at'] ?? null
  const sendAtMs = sendAt === null ? null : Date.parse(sendAt)
  return { streamId: stream, tag, metadata, idempotencyKey, sendAtMs }
}

const NO_CONTROL: SubmissionControl = { streamId: null, tag: null, metadata: {}, idempotencyKey: null, sendAtMs: null }

/** Fields that may occur once: their required form, and their value; null if invalid. */
const SINGLE: readonly { name: string; wanted: string; check: (value: string) => string | null }[] = [
  { name: 'stream', wanted: 'the id of a stream', check: (value) => (UUID.test(value) ? value.toLowerCase() : null) },
  {
    name: 'tag',
    wanted: `1 to ${TAG_CHARS_MAX} characters without control characters`,
    check: (value) => printable(value, { min: 1, max: TAG_CHARS_MAX }),
  },
  {
    name: 'idempotency-key',
    wanted: `1 to ${IDEMPOTENCY_KEY_CHARS_MAX} printable ASCII characters`,
    check: (value) => (value.length <= IDEMPOTENCY_KEY_CHARS_MAX && PRINTABLE_ASCII.test(value) ? value : null),
  },
  {
    name: 'send-at',
    wanted: 'an ISO 8601 date-time with an offset, such as 2026-12-24T08:00:00+01:00',
    check: (value) => (isInstant(value) ? value : null),
  },
]

/** All metadata: that of the JSON field, and a key from each single field; a sentence if a field is wrong. */
function readMetadata(mail: Buffer, given: readonly FieldRange[]): Record<string, string> | string {
  const metadata = readMetadataObject(given.filter(({ name }) => name === METADATA).map((one) => lineOf(mail, one)))
  if (typeof metadata === 'string') return metadata
  for (const field of given) {
    if (!field.name.startsWith(METADATA_PREFIX)) continue
    const from = field.start + METADATA_PREFIX.length
    // The key as it is written, not in lower case.
    const key = mail.toString('latin1', from, field.start + field.name.length)
    if (key === '' || key.length > METADATA_KEY_CHARS_MAX)
      return `X-Sendwright-Metadata- must be followed by a key of 1 to ${METADATA_KEY_CHARS_MAX} characters`
    if (metadata.has(key)) return `X-Sendwright-Metadata-${key} occurs more than once`
    const value = printable(lineOf(mail, field), { min: 0, max: METADATA_VALUE_CHARS_MAX })
    if (value === null)
      return `X-Sendwright-Metadata-${key} must have up to ${METADATA_VALUE_CHARS_MAX} characters without control characters`
    metadata.set(key, value)
  }
  return metadata.size > METADATA_MAX
    ? `X-Sendwright-Metadata has more than ${METADATA_MAX} keys`
    : Object.fromEntries(metadata)
}

/** The content of the field for all metadata, an object of strings in JSON. Takes the values of its fields. */
function readMetadataObject([line, ...others]: readonly string[]): Map<string, string> | string {
  if (line === undefined) return new Map()
  if (others.length > 0) return 'X-Sendwright-Metadata occurs more than once'
  const value = parseJson(decodeWords(line))
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return 'X-Sendwright-Metadata must be a JSON object of strings, such as {"orderId": "42"}'
  const entries = Object.entries(value)
  for (const [key, one] of entries) {
    if (key === '' || !isPrintable(key, METADATA_KEY_CHARS_MAX))
      return `X-Sendwright-Metadata must have keys of 1 to ${METADATA_KEY_CHARS_MAX} characters without control characters`
    if (typeof one !== 'string' || !isPrintable(one, METADATA_VALUE_CHARS_MAX))
      return `X-Sendwright-Metadata must have strings of up to ${METADATA_VALUE_CHARS_MAX} characters without control characters`
  }
  return new Map(entries)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/**
 * A value with its encoded words decoded; null if it does not have the allowed number of characters (Unicode code
 * points).
 */
function printable(value: string, { min, max }: { min: number; max: number }): string | null {
  const text = decodeWords(value)
  return isPrintable(text, max) && [...text].length >= min ? text : null
}

/** Whether a text has no control character or lone surrogate, and at most `charsMax` characters. */
function isPrintable(text: string, charsMax: number): boolean {
  return (
    !CONTROLS.test(text) && !LONE_SURROGATE.test(text) && text.length <= charsMax * 2 && [...text].length <= charsMax
  )
}

function lineOf(mail: Buffer, { valueStart, end }: FieldRange): string {
  return unfold(mail.subarray(valueStart, end))
}
