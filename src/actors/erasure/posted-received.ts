/**
 * posted-received - which received messages of a segment may be the person's, from its postings: those it sent, whose
 * From names it, or that came to its address
 *
 * Other addresses in a mail have no postings, so this covers the text after the plus sign of mail with expired content.
 * Buckets are read in their own order, a part in each step: that of the person's number, then that of the hash.
 *
 * Keys: `received-by-person received-by-hash:<server>:<segment>:<bucket>`, `received:<server>:<segment>`
 *
 * Spec erasure.received
 */

import type { Entry, Fact, Need } from '../../../cluster/behaviour.ts'
import { entriesOfRank, entryIdAfter } from '../../../cluster/id.ts'
import type { ErasureWalk, PostedPlace } from '../../state/erasure.ts'
import { receivedKey } from '../../state/keys.ts'
import { bucketOfPlusHash, bucketOfSender, type ReceivedBucket } from '../../state/received/posting.ts'
import type { ServerStep } from './step.ts'

/** Postings that one step reads. Most of a bucket belong to other persons. */
const STEP_POSTINGS = 1_000
/** Messages of one step whose entries are read. */
const STEP_POSTED = 100

type RangeFact = Fact & { readonly read: 'range' }

/** Results of a step. */
export interface PostedEntries {
  readonly kind: 'posted'
  /** Each once. */
  readonly entries: readonly Entry[]
  /** The position of the next one; null if all postings were checked. */
  readonly posted: PostedPlace | null
}

/** The entries of the log that the next postings name, of messages from before `untilMs`. */
export function postedEntries(step: ServerStep, segment: string, untilMs: number): PostedEntries | Need {
  const { server, walk, place, facts, context } = step
  const { shard } = context
  const { serverId } = server
  const buckets = bucketsOf(walk, { shard, serverId, segment })
  const [, at, from] = place.posted?.[0] === segment ? place.posted : [segment, 0, '-']
  const bucket = buckets[at]
  if (bucket === undefined) return { kind: 'posted', entries: [], posted: null }
  const postings: RangeFact = { read: 'range', key: bucket.key, from, to: '+', count: STEP_POSTINGS }
  if (!facts.has(postings)) return { kind: 'need', facts: [postings] }
  const listed = facts.range(postings)
  const found = listed.flatMap((posting) => bucket.ranksIn([posting]).map((rank) => ({ rank, posting: posting.id })))
  const taken = found.slice(0, STEP_POSTED)
  const ranks = new Set(taken.map(({ rank }) => rank).filter((rank) => Number.parseInt(rank, 10) < untilMs))
  const key = receivedKey(shard, serverId, segment)
  const reads = Array.from(ranks, (rank): RangeFact => ({ read: 'range', key, ...entriesOfRank(rank), count: 1 }))
  if (!reads.every((fact) => facts.has(fact))) return { kind: 'need', facts: reads }
  const cut = found.length > STEP_POSTED ? taken.at(-1)?.posting : undefined
  const last = cut ?? (listed.length === STEP_POSTINGS ? listed.at(-1)?.id : undefined)
  const entries = reads.flatMap((fact) => facts.range(fact))
  if (last !== undefined) return { kind: 'posted', entries, posted: [segment, at, entryIdAfter(last)] }
  return { kind: 'posted', entries, posted: at + 1 < buckets.length ? [segment, at + 1, '-'] : null }
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
