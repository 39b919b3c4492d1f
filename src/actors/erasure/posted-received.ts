/**
 * posted-received - which received messages of a segment may be the person's, from its postings: those it sent, whose
 * From names it, or that came to its address
 *
 * Other addresses in a mail have no postings, so this covers the text after the plus sign of mail with expired content.
 * Buckets are read in their own order, a part in each step: that of the person's number, then that of the hash.
 * Postings and messages may have been packed since the step before, so each step reads both places.
 *
 * Keys: `received-by-person received-by-hash:<server>:<segment>:<bucket>`,
 * `received received-blocks received-postings:<server>:<segment>`
 *
 * Spec erasure.received
 */

import type { Entry, Fact, Facts, Need } from '../../../cluster/behaviour.ts'
import { entriesOfRank, entryIdAfter, isEntryIdAbove } from '../../../cluster/id.ts'
import type { ErasureWalk, PostedPlace } from '../../state/erasure.ts'
import { receivedKey } from '../../state/keys.ts'
import { type ReceivedBlocks, type ReceivedSegment, receivedBlockFact } from '../../state/received/block.ts'
import { packedPostingsFact, unpackPostings } from '../../state/received/packed-posting.ts'
import { bucketOfPlusHash, bucketOfSender, type ReceivedBucket } from '../../state/received/posting.ts'
import type { ServerStep } from './step.ts'

/** Postings that one step reads. Most of a bucket belong to other persons. */
const STEP_POSTINGS = 1_000
/** Messages of one step whose entries are read; each may be in a block of its own, which takes half a millisecond. */
const STEP_POSTED = 25

type RangeFact = Fact & { readonly read: 'range' }

/** Results of a step. */
export interface PostedEntries {
  readonly kind: 'posted'
  /** Each once. */
  readonly entries: readonly Entry[]
  /** Blocks in which messages are that are not in the log, each once. */
  readonly blocks: ReceivedBlocks
  /** The position of the next one; null if all postings were checked. */
  readonly posted: PostedPlace | null
}

/**
 * The entries of the log that the next postings name, of messages from before `untilMs`. Out: `many` if the postings of
 * a packed segment do not name them all.
 */
export function postedEntries(step: ServerStep, segment: string, untilMs: number): PostedEntries | Need | 'many' {
  const { server, walk, place, facts, context } = step
  const { shard } = context
  const { serverId } = server
  const buckets = bucketsOf(walk, { shard, serverId, segment })
  const [, at, from] = place.posted?.[0] === segment ? place.posted : [segment, 0, '-']
  const bucket = buckets[at]
  if (bucket === undefined) return { kind: 'posted', entries: [], blocks: [], posted: null }
  const listed = nextPostings(facts, { shard, serverId, segment }, { bucket, from })
  if (listed === 'many' || 'kind' in listed) return listed
  const found = listed.flatMap((posting) => bucket.ranksIn([posting]).map((rank) => ({ rank, posting: posting.id })))
  const taken = found.slice(0, STEP_POSTED)
  const ranks = new Set(taken.map(({ rank }) => rank).filter((rank) => Number.parseInt(rank, 10) < untilMs))
  const key = receivedKey(shard, serverId, segment)
  const reads = Array.from(ranks, (rank): RangeFact => ({ read: 'range', key, ...entriesOfRank(rank), count: 1 }))
  if (!reads.every((fact) => facts.has(fact))) return { kind: 'need', facts: reads }
  const moved = reads.filter((fact) => facts.range(fact).length === 0)
  const packed = moved.map((fact) => receivedBlockFact({ shard, serverId, segment }, fact.from))
  if (!packed.every((fact) => facts.has(fact))) return { kind: 'need', facts: packed }
  const cut = found.length > STEP_POSTED ? taken.at(-1)?.posting : undefined
  // Only an empty answer is the end: a trim in flight takes entries out of a full one.
  const last = cut ?? listed.at(-1)?.id
  const entries = reads.flatMap((fact) => facts.range(fact))
  const blocks = [...new Map(packed.flatMap((fact) => firstOfScore(facts.sorted(fact))))]
  const results = { kind: 'posted', entries, blocks } as const
  if (last !== undefined) return { ...results, posted: [segment, at, entryIdAfter(last)] }
  return { ...results, posted: at + 1 < buckets.length ? [segment, at + 1, '-'] : null }
}

/** The first block, and those that share its score: they may hold an id of that score. */
function firstOfScore(blocks: ReceivedBlocks): ReceivedBlocks {
  return blocks.filter(([, score]) => score === blocks[0]?.[1])
}

/** The next postings of a bucket, in its stream or packed. */
function nextPostings(
  facts: Facts,
  place: ReceivedSegment,
  { bucket, from }: { readonly bucket: ReceivedBucket; readonly from: string },
): readonly Entry[] | Need | 'many' {
  const stream: RangeFact = { read: 'range', key: bucket.key, from, to: '+', count: STEP_POSTINGS }
  const packed = packedPostingsFact(place, bucket.field)
  if (![stream, packed].every((fact) => facts.has(fact))) return { kind: 'need', facts: [stream, packed] }
  const text = facts.field(packed.key, bucket.field)
  if (text === null) return facts.range(stream)
  const postings = unpackPostings(text)
  if (postings === 'many') return 'many'
  return postings.filter(({ id }) => from === '-' || !isEntryIdAbove(from, id)).slice(0, STEP_POSTINGS)
}

function bucketsOf(
  { number, mailbox }: ErasureWalk,
  place: { readonly shard: number; readonly serverId: string; readonly segment: string },
): ReceivedBucket[] {
  const plusHash = mailbox?.plusHash ?? null
  return [
    ...(number === 0 ? [] : [bucketOfSender(place, number)]),
    ...(plusHash === null ? [] : [bucketOfPlusHash(place, plusHash)]),
  ]
}
