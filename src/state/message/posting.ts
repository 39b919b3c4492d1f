/**
 * posting - the index of a message of a busy segment by its persons and its tag.
 *
 * There is one entry for each message and bucket, with the message's id, because a stream cannot have two entries with
 * one id. Senders are not posted, because a server has few, and the log contains each. A segment of one bucket has no
 * postings: its only list of persons would have every message of its log, whose entries contain sender, recipients and
 * tag. Such a segment is searched by reading its log.
 *
 * Keys: `by-person:<server>:<segment>:<bucket>` field `p` = numbers of recipients joined by a space; `by-tag:…` field
 * `t` = tag hash
 */

import type { Entry, Op } from '../../../cluster/behaviour.ts'
import { bucketOfHmac } from '../hash-fraction.ts'
import { byPersonKey, byTagKey } from '../keys.ts'
import { bucketsOfSegment, hasPostings } from '../segment.ts'

export const PERSON_FIELD = 'p'
export const TAG_FIELD = 't'
const TAG_BYTES = 6

/** Where the postings of a message go. */
export interface PostingPlace {
  readonly shard: number
  readonly serverId: string
  readonly segment: string
}

/** Bucket of a person's postings. */
export function bucketOfPosting(number: number, buckets: number): number {
  return number % buckets
}

/** Bucket of a tag's postings. */
export function bucketOfTag(tagHash: string, buckets: number): number {
  return bucketOfHmac(tagHash) % buckets
}

/** A tag in the index of a sealed segment: the first 48 bits of its hash. */
export function numberOfTag(tagHash: string): number {
  const bytes = Buffer.alloc(TAG_BYTES)
  Buffer.from(tagHash, 'base64url').copy(bytes, 0, 0, TAG_BYTES)
  return bytes.readUIntBE(0, TAG_BYTES)
}

/** Whether an entry of a bucket is of a message to this person. */
export function postsPerson({ fields }: Entry, number: number): boolean {
  const list = fields[fields.indexOf(PERSON_FIELD) + 1]
  return list?.split(' ').includes(String(number)) === true
}

/** Writes of the postings of one message, none in a segment without them; a person named twice is posted once. */
export function postingOps(
  { shard, serverId, segment }: PostingPlace,
  entryId: string,
  { numbers, tagHash }: { readonly numbers: Iterable<number>; readonly tagHash: string | null },
): Op[] {
  if (!hasPostings(segment)) return []
  const buckets = bucketsOfSegment(segment)
  const lists = new Map<number, string>()
  for (const number of new Set(numbers)) {
    const bucket = bucketOfPosting(number, buckets)
    const list = lists.get(bucket)
    lists.set(bucket, list === undefined ? String(number) : `${list} ${number}`)
  }
  const ops: Op[] = []
  for (const [bucket, list] of lists)
    ops.push({ key: byPersonKey(shard, serverId, segment, bucket), write: 'XADD', args: [entryId, PERSON_FIELD, list] })
  if (tagHash !== null) {
    const key = byTagKey(shard, serverId, segment, bucketOfTag(tagHash, buckets))
    ops.push({ key, write: 'XADD', args: [entryId, TAG_FIELD, tagHash] })
  }
  return ops
}
