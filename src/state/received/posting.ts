/**
 * posting - an index of received messages of a busy segment by sender, and by the text after the plus sign of their
 * address.
 *
 * The envelope's sender and the hash are posted with the message, under the rank of its id. The address in From is
 * known after parsing, and messages are parsed out of order, so that posting has its own rank, above the message's, and
 * the distance to it. A bucket is therefore read completely and sorted. If From and the envelope name the same person,
 * there is no second posting.
 *
 * Packed: `<number>` or `<number> <ms below, base 36>.<counter, base 36>`; the unchanged hash. A segment of one bucket
 * has no postings, because its log names the sender, and its standings name From.
 *
 * Keys: `received-by-person:<server>:<segment>:<bucket>` field `p`, `received-by-hash:…` field `h`
 *
 * Spec inbound.search
 */

import type { Context, Entry, Op } from '../../../cluster/behaviour.ts'
import { parseId, rankOf } from '../../../cluster/id.ts'
import { bucketOfHmac } from '../hash-fraction.ts'
import {
  receivedBlocksKey,
  receivedByHashKey,
  receivedByPersonKey,
  receivedKey,
  receivedPostingsKey,
  receivedStateKey,
} from '../keys.ts'
import { bucketsOfSegment, hasPostings, type SegmentBounds } from '../segment.ts'

/** A segment ends with its month, or here. A bucket of 64 has 1,600 entries at most on average, one of 32 2,500. */
export const RECEIVED_SEGMENT_BOUNDS: SegmentBounds = {
  recipientsMax: 50_000,
  bytesMax: Number.MAX_SAFE_INTEGER,
  busyRecipients: 5_000,
  fullRecipients: 40_000,
  busyBuckets: 32,
  fullBuckets: 64,
}

const PERSON_FIELD = 'p'
const HASH_FIELD = 'h'
const BASE = 36

/** Where a segment is. */
interface SegmentPlace {
  readonly shard: number
  readonly serverId: string
  readonly segment: string
}

/** The postings that come with a message, none in a segment without postings. Takes 0 and null for missing values. */
export function receivedPostingOps(
  place: SegmentPlace,
  { messageId, sender, plusHash }: { messageId: string; sender: number; plusHash: string | null },
): Op[] {
  if (!hasPostings(place.segment)) return []
  const at = rankOf(messageId)
  const ops: Op[] = []
  if (sender !== 0)
    ops.push({ key: personBucket(place, sender).key, write: 'XADD', args: [at, PERSON_FIELD, `${sender}`] })
  if (plusHash !== null)
    ops.push({ key: hashBucket(place, plusHash).key, write: 'XADD', args: [at, HASH_FIELD, plusHash] })
  return ops
}

/** The posting of the person in From, if different from the envelope sender. */
export function fromPostingOps(
  context: Pick<Context, 'newId'>,
  place: SegmentPlace,
  { messageId, sender, from }: { messageId: string; sender: number; from: number },
): Op[] {
  if (!hasPostings(place.segment) || from === 0 || from === sender) return []
  const postingId = context.newId()
  const { ms, counter } = parseId(messageId)
  const below = `${(parseId(postingId).ms - ms).toString(BASE)}.${counter.toString(BASE)}`
  const args = [rankOf(postingId), PERSON_FIELD, `${from} ${below}`]
  return [{ key: personBucket(place, from).key, write: 'XADD', args }]
}

/** A bucket: its stream, and its field once it is packed (`packed-posting.ts`). */
interface BucketPlace {
  readonly key: string
  readonly field: string
}

/** A bucket to read, and the ranks of the candidates among its entries. */
export interface ReceivedBucket extends BucketPlace {
  readonly ranksIn: (entries: readonly Entry[]) => string[]
}

/** Where messages from a person are posted. */
export function bucketOfSender(place: SegmentPlace, number: number): ReceivedBucket {
  const own = String(number)
  return {
    ...personBucket(place, number),
    ranksIn: (entries) =>
      entries.flatMap(({ id, fields: [, text = ''] }) => {
        if (text === own) return [id]
        return text.startsWith(`${own} `) ? [rankBelow(id, text.slice(own.length + 1))] : []
      }),
  }
}

/** The posting place of messages to a mailbox hash. */
export function bucketOfPlusHash(place: SegmentPlace, plusHash: string): ReceivedBucket {
  return {
    ...hashBucket(place, plusHash),
    ranksIn: (entries) => entries.flatMap(({ id, fields: [, text] }) => (text === plusHash ? [id] : [])),
  }
}

/** Every key of a segment. */
export function receivedSegmentKeys(place: SegmentPlace): string[] {
  const { shard, serverId, segment } = place
  return [
    receivedKey(shard, serverId, segment),
    receivedStateKey(shard, serverId, segment),
    receivedBlocksKey(shard, serverId, segment),
    ...receivedPostingKeys(place),
    ...(hasPostings(segment) ? [receivedPostingsKey(shard, serverId, segment)] : []),
  ]
}

/** Every stream of its postings; empty if none. */
export function receivedPostingKeys(place: SegmentPlace): string[] {
  return receivedBuckets(place).map(({ key }) => key)
}

/** Every bucket of its postings; empty if none. */
export function receivedBuckets(place: SegmentPlace): BucketPlace[] {
  if (!hasPostings(place.segment)) return []
  const buckets = Array.from({ length: bucketsOfSegment(place.segment) }, (_, bucket) => bucket)
  return buckets.flatMap((bucket) => [personPlace(place, bucket), hashPlace(place, bucket)])
}

function personBucket(place: SegmentPlace, number: number): BucketPlace {
  return personPlace(place, number % bucketsOfSegment(place.segment))
}

function hashBucket(place: SegmentPlace, plusHash: string): BucketPlace {
  return hashPlace(place, bucketOfHmac(plusHash) % bucketsOfSegment(place.segment))
}

function personPlace({ shard, serverId, segment }: SegmentPlace, bucket: number): BucketPlace {
  return { key: receivedByPersonKey(shard, serverId, segment, bucket), field: `${PERSON_FIELD}${bucket}` }
}

function hashPlace({ shard, serverId, segment }: SegmentPlace, bucket: number): BucketPlace {
  return { key: receivedByHashKey(shard, serverId, segment, bucket), field: `${HASH_FIELD}${bucket}` }
}

/** The rank that is so far below a posting's own. */
function rankBelow(posting: string, below: string): string {
  const [ms = '', counter = ''] = below.split('.')
  return `${Number.parseInt(posting, 10) - Number.parseInt(ms, BASE)}-${Number.parseInt(counter, BASE)}`
}
