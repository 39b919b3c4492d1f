/**
 * prepare - converts a valid broadcast into stored data and the input of the decision: content, buckets of recipients,
 * sizes, hashes
 *
 * Size: the shared content counts once, as an upper bound of a message or, if that exceeds the maximum, as built; then
 * the UTF-8 bytes of every recipient's own data. Messages whose own bound exceeds the maximum are built, the largest
 * ones.
 *
 * Guarantees: linear in the body; at most 17 messages are built.
 *
 * Spec broadcast.size, broadcast.create, request.idempotency
 */

import { createHash, randomUUID } from 'node:crypto'
import type { BroadcastBody, BroadcastMessage } from '../../../schemas/broadcast.ts'
import { MESSAGE_BYTES_MAX } from '../../../schemas/limits.ts'
import { type ComposeInput, composeMessage } from '../../mail/compose/compose.ts'
import { fillListed, type ListedTexts, readListedTexts, UNFILLED_LINK } from '../../mail/compose/listed.ts'
import { upperBoundBytes } from '../../mail/compose/size.ts'
import { escapeHtml, fillText, parseTemplate, type Template } from '../../mail/compose/template.ts'
import { type BucketRow, bucketCount, bucketOf, packBucket } from '../../state/broadcast/content.ts'
import { collectSpellings, type HeadAttachment, packHead } from '../../state/message/head.ts'
import { canonicalJson, type FromAddress, readAddress, readAttachment, withoutControl } from '../email-form.ts'

/** Keyed hashes of the installation. */
export interface BroadcastHashes {
  addressHmac(address: string): string
  tagHash(tag: string): string
}

/** Stored data, and the input of the decision. */
export interface PreparedBroadcast {
  readonly sender: FromAddress & { readonly hmac: string }
  readonly tagHash: string | null
  readonly head: string
  readonly text: string | null
  readonly html: string | null
  /** Bytes of each attachment, decoded. */
  readonly attachments: readonly Uint8Array[]
  /** Packed, in their order. */
  readonly buckets: readonly string[]
  /** HMACs of all recipients, in no order. */
  readonly hmacs: readonly string[]
  /** Size of the whole; and size as built of its largest message, or null if none can be too large. */
  readonly sizeBytes: number
  readonly largestBytes: number | null
  /** When it begins, ms; absent: at once. */
  readonly sendAtMs?: number
  /** SHA-256 of route and body with its defaults, hex. */
  readonly fingerprint: string
}

/** Messages that are built because their bound is too large. */
const BUILT_MAX = 16
/**
 * A value in HTML is at most six times as long (`&quot;`), and quoted-printable makes it as much longer as any text.
 */
const ESCAPED_TIMES = 6
const ENCODED_TIMES = 3.2
/** As long as a real one. */
const SOME_LINK = `https://${'x'.repeat(100)}/u/${'x'.repeat(128)}`

/** The parsed texts of a broadcast. */
interface Texts {
  readonly subject: Template
  readonly listed: ListedTexts
}

/** Prepares a broadcast that `checkBroadcast` found nothing wrong with. Throws TypeError for another. */
export function prepareBroadcast(body: BroadcastBody, hashes: BroadcastHashes): PreparedBroadcast {
  const { from, attachments, files, texts } = readShared(body)
  const { subject } = texts
  const [text, html] = [body.text ?? null, body.html ?? null]
  const rows = body.messages.map((message) => makeRow(message, subject, hashes))
  let ownBytes = 0
  for (const row of rows) ownBytes += bytesOfRow(row)
  const count = bucketCount(rows.length, ownBytes)
  const buckets = Array.from({ length: count }, (): BucketRow[] => [])
  for (const row of rows) buckets[bucketOf(row.hmac, count)]?.push(row)
  const shared = sharedInput(body, { from, attachments, files })
  const sharedBytes = computeBound({ text, html, files }, () => builtBytes(shared, texts, null))
  const headOf = { subject: subject.names.length > 0 ? body.subject : withoutControl(body.subject), tag: body.tag }
  return {
    sender: { ...from, hmac: hashes.addressHmac(from.address) },
    tagHash: body.tag === null ? null : hashes.tagHash(body.tag),
    head: packHead({
      ...headOf,
      senderName: from.name,
      recipientNames: [],
      metadata: body.metadata,
      headers: body.headers,
      attachments: attachments.map(({ name, contentType, contentId, size }): HeadAttachment => {
        return { name, contentType, contentId, size, inline: contentId !== null }
      }),
      stored: null,
      spellings: collectSpellings(from.address, []),
      raw: null,
      broadcast: null,
      ...(body.unsubscribe === 'sender' && { ownsList: true as const }),
    }),
    text,
    html,
    attachments: files,
    buckets: buckets.map(packBucket),
    hmacs: rows.map(({ hmac }) => hmac),
    sizeBytes: sharedBytes + ownBytes,
    largestBytes: largestBytes({ rows, texts, shared, sharedBytes }),
    ...(body.sendAt !== undefined && { sendAtMs: Date.parse(body.sendAt) }),
    fingerprint: computeFingerprint(body),
  }
}

/** One message of a broadcast. */
export interface RenderedMessage {
  readonly from: FromAddress
  readonly to: FromAddress
  readonly subject: string
  readonly text: string | null
  readonly html: string | null
  /**
   * Size as built, without the signature and list fields that are added when it is sent. For one far above the limit,
   * the size of its texts.
   */
  readonly sizeBytes: number
}

/**
 * One message of a broadcast that passed `checkBroadcast`, as its recipient reads it, with a placeholder for its link.
 * Null if the index does not exist. Throws TypeError for an invalid broadcast.
 */
export function renderMessage(body: BroadcastBody, index: number): RenderedMessage | null {
  const message = body.messages[index]
  if (message === undefined) return null
  const { from, files, attachments, texts } = readShared(body)
  const row = makeRow(message, texts.subject, { addressHmac: () => '', tagHash: () => '' })
  const shared = sharedInput(body, { from, attachments, files })
  const least = largestFilledBytes(texts.listed, [row])
  const { substitutions } = row
  const { text, html } =
    least > MESSAGE_BYTES_MAX ? { text: null, html: null } : fillListed(texts.listed, substitutions, UNFILLED_LINK)
  return {
    from,
    to: readAddress(message.to),
    subject: row.subject ?? withoutControl(body.subject),
    text,
    html,
    sizeBytes: least > MESSAGE_BYTES_MAX ? least : builtBytes(shared, texts, row),
  }
}

/** The shared content of all messages of a broadcast, parsed. */
function readShared(body: BroadcastBody) {
  const attachments = (body.attachments ?? []).map(readAttachment)
  const subject = parseTemplate(withoutControl(body.subject))
  if (subject === null) throw new TypeError('Subject was not validated')
  const both = { text: body.text ?? null, html: body.html ?? null }
  const texts: Texts = { subject, listed: readListedTexts(both, body.unsubscribe !== 'sender') }
  const files = attachments.map(({ content }) => Buffer.from(content, 'base64'))
  return { from: readAddress(body.from), attachments, files, texts }
}

function makeRow(
  { to, substitutions, metadata }: BroadcastMessage,
  subject: Template,
  hashes: BroadcastHashes,
): BucketRow {
  const { address, name } = readAddress(to)
  const own = subject.names.length === 0 ? null : withoutControl(fillText(subject, substitutions))
  return { hmac: hashes.addressHmac(address), address, name, substitutions, metadata, subject: own }
}

/** The individual data of a recipient, in bytes. */
function bytesOfRow({ address, name, substitutions, metadata }: BucketRow): number {
  let bytes = Buffer.byteLength(address) + Buffer.byteLength(name ?? '')
  for (const map of [substitutions, metadata])
    for (const key in map) bytes += Buffer.byteLength(key) + Buffer.byteLength(map[key] as string)
  return bytes
}

function computeBound(
  { text, html, files }: { text: string | null; html: string | null; files: readonly Buffer[] },
  build: () => number,
): number {
  const bound = upperBoundBytes({ text, html, attachmentBytes: files.map(({ length }) => length) })
  return bound > MESSAGE_BYTES_MAX ? build() : bound
}

/** The size of the largest message if one may be too large. */
function largestBytes(of: {
  readonly rows: readonly BucketRow[]
  readonly texts: Texts
  readonly shared: ComposeInput
  readonly sharedBytes: number
}): number | null {
  const { rows, texts, shared, sharedBytes } = of
  if (sharedBytes > MESSAGE_BYTES_MAX) return sharedBytes
  const filled = largestFilledBytes(texts.listed, rows)
  if (filled > MESSAGE_BYTES_MAX) return filled
  const uses = countUses(texts.listed)
  if (uses.size === 0) return null
  const bounds = rows.map((row, index) => {
    let bytes = sharedBytes
    for (const [name, times] of uses) bytes += Buffer.byteLength(row.substitutions[name] ?? '') * times
    return { index, bytes }
  })
  const large = bounds.filter(({ bytes }) => bytes > MESSAGE_BYTES_MAX).sort((a, b) => b.bytes - a.bytes)
  if (large.length === 0) return null
  return Math.max(...large.slice(0, BUILT_MAX).map(({ index }) => builtBytes(shared, texts, rows[index] as BucketRow)))
}

/**
 * The largest size of texts and values of a message before encoding, a lower bound of its built size. Larger messages
 * are not built: a value of 500 characters may occur in a text a million times.
 */
function largestFilledBytes({ text, html }: ListedTexts, rows: readonly BucketRow[]): number {
  let fixed = 0
  const times = new Map<string, { inText: number; inHtml: number }>()
  for (const [template, place] of [
    [text, 'inText'],
    [html, 'inHtml'],
  ] as const) {
    for (const one of template?.texts ?? []) fixed += Buffer.byteLength(one)
    for (const name of template?.names ?? []) {
      const of = times.get(name) ?? { inText: 0, inHtml: 0 }
      of[place] += 1
      times.set(name, of)
    }
  }
  let largest = 0
  for (const { substitutions } of rows) {
    let bytes = fixed
    for (const [name, { inText, inHtml }] of times) {
      const value = Object.hasOwn(substitutions, name) ? (substitutions[name] as string) : ''
      bytes += Buffer.byteLength(value) * inText + Buffer.byteLength(escapeHtml(value)) * inHtml
    }
    largest = Math.max(largest, bytes)
  }
  return largest
}

/** How many bytes each byte of a value can become, by its name. */
function countUses({ text, html }: ListedTexts): Map<string, number> {
  const uses = new Map<string, number>()
  const add = (names: readonly string[], times: number) => {
    for (const name of names) uses.set(name, (uses.get(name) ?? 0) + times)
  }
  add(text?.names ?? [], ENCODED_TIMES)
  add(html?.names ?? [], ENCODED_TIMES * ESCAPED_TIMES)
  return uses
}

function sharedInput(
  body: BroadcastBody,
  of: {
    readonly from: FromAddress
    readonly attachments: ReturnType<typeof readAttachment>[]
    readonly files: readonly Buffer[]
  },
): ComposeInput {
  const { from, attachments, files } = of
  return {
    messageId: randomUUID(),
    acceptedAtMs: 0,
    from,
    to: [],
    cc: [],
    subject: '',
    text: null,
    html: null,
    headers: body.headers,
    attachments: attachments.map(({ name, contentType, contentId }, index) => {
      return { name, contentType, contentId, content: files[index] as Buffer }
    }),
    boundarySeed: randomUUID(),
  }
}

/** Bytes of a message as built; of the shared content alone if there is no recipient. */
function builtBytes(shared: ComposeInput, texts: Texts, row: BucketRow | null): number {
  const values = row?.substitutions ?? {}
  const { text, html } = fillListed(texts.listed, values, SOME_LINK)
  const to = row === null ? [] : [{ address: row.address, name: row.name }]
  return composeMessage({ ...shared, to, subject: row?.subject ?? fillText(texts.subject, values), text, html }).length
}

/** Message by message, because one text would be as long as the body again. */
function computeFingerprint({ messages, ...rest }: BroadcastBody): string {
  const hash = createHash('sha256').update('POST /v1/broadcasts\n').update(canonicalJson(rest))
  for (const message of messages) hash.update('\n').update(canonicalJson(message))
  return hash.digest('hex')
}
