/**
 * content - the texts and recipients of a broadcast: parts of content under one id, all erasable.
 *
 * `body` is text and html with their placeholders, `a<k>` attachment k, `head` a head (`message/head.ts`) of no
 * recipient; each bucket of recipients is `r<k>`, JSON `[[hmac, address, name or 0, substitutions, metadata, own
 * subject]…]` sorted by HMAC. k is the first bits of the HMAC, so one person is in one bucket. A bucket goes when it is
 * released.
 *
 * Instead of a body, a released message has a chunk of encoding 3: JSON `[contentId of the broadcast, substitutions]`.
 *
 * Spec broadcast.release, retention.content
 */

import type { Op } from '../../../cluster/behaviour.ts'
import { withoutSum, withSum } from '../../../cluster/sum.ts'
import { DAY_MS, HOUR_MS } from '../calendar.ts'
import { bucketOfHmac } from '../hash-fraction.ts'
import { contentKey } from '../keys.ts'
import type { InlinePart } from '../message/content-part.ts'
import { headerBytesOf, PART_HEADER_BYTES, partEncoding, writePartHeader } from '../message/part-header.ts'
import { type BroadcastState, broadcastEndsAtMs, type SharedPart } from './broadcast.ts'

export const HEAD_PART = 'head'
/** The most that a broadcast has: 50,000 recipients are some 100 in each. */
export const BUCKETS_MAX = 512
/** Average recipients and bytes of a bucket; a step of the release parses one. */
const BUCKET_RECIPIENTS = 200
const BUCKET_BYTES = 128 * 1024

const ENCODING_LISTED = 3
const BUCKET_BITS = 9
const SIX_BITS = 6
const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
/** How long the content shared by all messages stays after the last one was released. */
const LIVE_CONTENT_DAYS = 30
const TEST_CONTENT_DAYS = 7
/** Attempts end within 48 hours. */
const ATTACHMENT_MS = 49 * HOUR_MS

/** A recipient that waits to be released. */
export interface BucketRow {
  readonly hmac: string
  /** Local part as written, domain in lower case. */
  readonly address: string
  readonly name: string | null
  readonly substitutions: Readonly<Record<string, string>>
  /** Its own, which goes over the broadcast's. */
  readonly metadata: Readonly<Record<string, string>>
  /** The subject for this recipient; null if the subject has no placeholder. */
  readonly subject: string | null
}

/** The content of a released message: the broadcast's content with individual values. */
export interface OwnContent {
  readonly contentId: string
  readonly substitutions: Readonly<Record<string, string>>
}

/** The number of buckets for a number of recipients and bytes, a power of two. */
export function bucketCount(recipients: number, bytes: number): number {
  const wanted = Math.max(recipients / BUCKET_RECIPIENTS, bytes / BUCKET_BYTES)
  let count = 1
  while (count < wanted && count < BUCKETS_MAX) count *= 2
  return count
}

/** The bucket of a person among `count`. */
export function bucketOf(hmac: string, count: number): number {
  const nineBits = (bucketOfHmac(hmac) << 1) | ((BASE64URL.indexOf(hmac[1] as string) >> (SIX_BITS - 3)) & 1)
  return Math.floor((nineBits * count) / (1 << BUCKET_BITS))
}

/** Name of a bucket among the parts. */
export function bucketPart(bucket: number): string {
  return `r${bucket}`
}

/** Packs the recipients of a bucket. */
export function packBucket(rows: readonly BucketRow[]): string {
  const sorted = [...rows].sort((a, b) => (a.hmac < b.hmac ? -1 : 1))
  const packed = sorted.map(({ hmac, address, name, substitutions, metadata, subject }) => {
    const row = [hmac, address, name ?? 0, substitutions, metadata]
    return subject === null ? row : [...row, subject]
  })
  return withSum(JSON.stringify(packed))
}

/** Unpacks the recipients of a bucket that come after `after`, in their order. Throws DamagedValue. */
export function unpackBucket(packed: string, after = ''): BucketRow[] {
  type Packed = [string, string, string | 0, Record<string, string>, Record<string, string>, string?]
  const text = withoutSum(packed, 'bucket')
  const rows: BucketRow[] = []
  for (const [hmac, address, name, substitutions, metadata, subject] of JSON.parse(text) as Packed[]) {
    if (hmac <= after) continue
    rows.push({ hmac, address, name: name === 0 ? null : name, substitutions, metadata, subject: subject ?? null })
  }
  return rows
}

/** Packs the content of a released message into one chunk. */
export function packListed({ contentId, substitutions }: OwnContent): Uint8Array {
  const json = JSON.stringify([contentId, substitutions])
  const chunk = Buffer.alloc(PART_HEADER_BYTES + Buffer.byteLength(json))
  chunk.write(json, PART_HEADER_BYTES)
  writePartHeader(chunk, ENCODING_LISTED, 1)
  return chunk
}

/** The content of a released message, from its only chunk; null if that is a body of another kind. */
export function readListed([chunk]: InlinePart['chunks']): OwnContent | null {
  if (chunk === undefined || partEncoding(chunk) !== ENCODING_LISTED) return null
  const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
  const [contentId, substitutions] = JSON.parse(bytes.toString('utf8', headerBytesOf(chunk))) as [
    string,
    OwnContent['substitutions'],
  ]
  return { contentId, substitutions }
}

/**
 * Writes that keep the shared content for as long as messages released at `nowMs` need it, and attachments for as long
 * as any message may be released, because a broadcast can be held back for an unknown time.
 */
export function keepSharedOps(
  shard: number,
  { contentId, parts, test, submittedAtMs }: Pick<BroadcastState, 'contentId' | 'parts' | 'test' | 'submittedAtMs'>,
  nowMs: number,
): Op[] {
  const bodyEndsAtMs = nowMs + (test ? TEST_CONTENT_DAYS : LIVE_CONTENT_DAYS) * DAY_MS
  const filesEndAtMs = Math.max(broadcastEndsAtMs({ test, submittedAtMs }) + ATTACHMENT_MS, test ? bodyEndsAtMs : 0)
  return parts.flatMap(({ part, chunks }) => {
    const atMs = isAttachment(part) ? filesEndAtMs : part === HEAD_PART ? nowMs + HEAD_DAYS * DAY_MS : bodyEndsAtMs
    return expiryOps({ shard, contentId }, { part, chunks }, atMs)
  })
}

/**
 * Writes that let the attachments go once the last attempt of a broadcast that ended at `nowMs` is over, on a test
 * server with the text of its last message.
 */
export function endFilesOps(shard: number, broadcast: BroadcastState, nowMs: number): Op[] {
  const { contentId, parts } = broadcast
  // After this time they have expired, or nearly, and PEXPIREAT on a missing key has no effect.
  if (nowMs >= broadcastEndsAtMs(broadcast)) return []
  const files = parts.filter(({ part }) => isAttachment(part))
  const lifeMs = broadcast.test ? TEST_CONTENT_DAYS * DAY_MS : ATTACHMENT_MS
  return files.flatMap((part) => expiryOps({ shard, contentId }, part, nowMs + lifeMs))
}

/** The head is read as long as any message of the broadcast is in the log: 13 months, and a few days. */
const HEAD_DAYS = 410

/** Writes that give a part of content its expiry; it must be there. */
export function expiryOps(
  { shard, contentId }: { readonly shard: number; readonly contentId: string },
  { part, chunks }: SharedPart,
  atMs: number,
): Op[] {
  return Array.from({ length: chunks }, (_, chunk): Op => {
    return { key: contentKey(shard, contentId, part, chunk), write: 'PEXPIREAT', args: [String(atMs)] }
  })
}

/** Chunks of all attachments. */
export function fileChunksOf(parts: readonly SharedPart[]): number {
  return parts.reduce((sum, { part, chunks }) => (isAttachment(part) ? sum + chunks : sum), 0)
}

/** Whether a part is an attachment. */
export function isAttachment(part: string): boolean {
  return part.startsWith('a')
}
