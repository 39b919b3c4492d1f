/**
 * packed-posting - the postings of a segment whose messages are all in blocks, in a fifth of the memory.
 *
 * Each bucket moves from its stream to a field of one hash, so a bucket is in its stream or in its field: deflated
 * lines in base64, the ranks as distances, then the texts. Of a bucket with very many postings nothing is kept but a
 * mark, because most messages of the segment match it: the blocks are read instead.
 *
 * Keys: `received-postings:<server>:<segment>`
 *
 * Spec inbound.search
 */

import { deflateRawSync, inflateRawSync } from 'node:zlib'
import type { Entry, FactOf, Op } from '../../../cluster/behaviour.ts'
import { damagedValue, unlessDamaged, withoutSum, withSum } from '../../../cluster/sum.ts'
import { receivedPostingsKey } from '../keys.ts'
import type { ReceivedSegment } from './block.ts'
import { receivedBuckets } from './posting.ts'

/** Postings of a bucket that are kept, more than twice the average. */
export const PACKED_POSTINGS_MAX = 5_000
/** In place of more. */
const MANY = '+'
const BASE = 36
/** Of an opened bucket: a line for the rank and one for the text of each posting, 30 bytes each at most. */
const OPENED_BYTES_MAX = 512 * 1024
const NAME = 'received-postings'
const FIELD = 'p'

/** The postings of a bucket; `many`: the blocks must be read instead. */
export type BucketPostings = readonly Entry[] | 'many'

/** Packs the postings of a bucket, in the order of their ids. */
export function packPostings(entries: readonly Entry[]): string {
  if (entries.length > PACKED_POSTINGS_MAX) return withSum(MANY)
  let before = 0
  const ranks = entries.map(({ id }) => {
    const [ms = '', counter = ''] = id.split('-')
    const line = `${(Number(ms) - before).toString(BASE)}.${Number(counter).toString(BASE)}`
    before = Number(ms)
    return line
  })
  const texts = entries.map(({ fields: [, text = ''] }) => text.replaceAll('\n', ' '))
  return withSum(deflateRawSync([...ranks, ...texts].join('\n')).toString('base64'))
}

/**
 * Unpacks a result of `packPostings`. A damaged bucket is like one with very many postings: the blocks have all that it
 * had.
 */
export function unpackPostings(packed: string): BucketPostings {
  return unlessDamaged(() => open(withoutSum(packed, NAME))) ?? 'many'
}

function open(text: string): BucketPostings {
  if (text === MANY) return 'many'
  const lines = inflate(text).split('\n')
  const count = lines.length / 2
  let ms = 0
  return lines.slice(0, count).map((line, at) => {
    const dot = line.indexOf('.')
    ms += Number.parseInt(line.slice(0, dot), BASE)
    return { id: `${ms}-${Number.parseInt(line.slice(dot + 1), BASE)}`, fields: [FIELD, lines[count + at] ?? ''] }
  })
}

function inflate(text: string): string {
  try {
    return inflateRawSync(Buffer.from(text, 'base64'), { maxOutputLength: OPENED_BYTES_MAX }).toString()
  } catch {
    throw damagedValue(NAME)
  }
}

/** The read of a packed bucket. */
export function packedPostingsFact(place: ReceivedSegment, field: string): FactOf<'fields'> {
  return { read: 'fields', key: keyOf(place), fields: [field] }
}

/** The reads of some buckets of a segment, as streams. */
export function bucketFacts(place: ReceivedSegment, from: number, count: number): FactOf<'range'>[] {
  const buckets = receivedBuckets(place).slice(from, from + count)
  return buckets.map(({ key }) => ({ read: 'range', key, from: '-', to: '+', count: PACKED_POSTINGS_MAX + 1 }))
}

/** The writes that move some buckets of a segment to their fields. Takes their postings; empty ones have moved. */
export function packPostingsOps(place: ReceivedSegment, from: number, read: readonly (readonly Entry[])[]): Op[] {
  const buckets = receivedBuckets(place)
  return read.flatMap((entries, at): Op[] => {
    const bucket = buckets[from + at]
    if (bucket === undefined || entries.length === 0) return []
    return [
      { key: keyOf(place), write: 'HSET', args: [bucket.field, packPostings(entries)] },
      { key: bucket.key, write: 'UNLINK', args: [] },
    ]
  })
}

/**
 * The writes that remove the packed postings of a segment whose messages begin to expire. From then on the blocks are
 * read, and each day fewer of them.
 */
export function dropPostingsOps(place: ReceivedSegment): Op[] {
  const fields = receivedBuckets(place).flatMap(({ field }) => [field, withSum(MANY)])
  return fields.length === 0 ? [] : [{ key: keyOf(place), write: 'HSET', args: fields }]
}

function keyOf({ shard, serverId, segment }: ReceivedSegment): string {
  return receivedPostingsKey(shard, serverId, segment)
}
