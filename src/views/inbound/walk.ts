/**
 * walk - walks a server's received mail from the newest message down and returns the entries that may match
 *
 * A segment with postings is walked along those of the mailbox hash, or of the sender. All other segments are walked
 * along their log, and so is a segment with a long bucket, because then a good part of its messages match or belong to
 * a person in the same bucket. Behind the end of a log are the blocks of the segment. The results are candidates, which
 * the caller checks.
 *
 * Keys: `received received-blocks received-postings:<server>:<segment>`,
 * `received-by-person received-by-hash:<server>:<segment>:<bucket>`
 *
 * Spec inbound.search
 */

import type { Entry, FactOf } from '../../../cluster/behaviour.ts'
import { entriesOfRank, entryIdOf, idOfEntry, isEntryIdAbove } from '../../../cluster/id.ts'
import { receivedKey } from '../../state/keys.ts'
import type { PackedRow, ReceivedSegment } from '../../state/received/block.ts'
import { type BucketPostings, packedPostingsFact, unpackPostings } from '../../state/received/packed-posting.ts'
import { bucketOfPlusHash, bucketOfSender, type ReceivedBucket } from '../../state/received/posting.ts'
import { hasPostings } from '../../state/segment.ts'
import type { Reader } from '../key.ts'
import {
  type EntrySpan,
  isBelow,
  type LoggedReceived,
  loggedOfRow,
  type RowsBelow,
  readRowsBelow,
  readRowsOf,
} from './blocks.ts'
import { parseLogged } from './rows.ts'

/** Entries in one read of a log; the first number is usually enough for a page. */
const ENTRIES_FIRST = 200
const ENTRIES_MAX = 1_000
/** Maximum number of entries read from a bucket, more than twice the average. */
export const POSTINGS_MAX = 5_000
/** Postings that count as one message read, and the cost of a segment without any further read. */
const POSTINGS_OF_A_LOOK = 10
const SEGMENT_WEIGHT = 10
/** Messages that are posted whose entries are read together. */
const POSTED_AT_ONCE = 100

/** A walk. */
export interface ReceivedWalk {
  readonly shard: number
  readonly serverId: string
  /** Newest first. */
  readonly segments: readonly (readonly [name: string, firstMs: number])[]
  /** Bounds of the entry ids, as XREVRANGE takes them. */
  readonly from: string
  readonly to: string
  /** Person number that is asked for; null: any. */
  readonly sender: number | null
  /** Hash of the mailbox hash that is asked for; null: any. */
  readonly plusHash: string | null
}

/** Maximum number of messages that a walk reads, and of postings of a bucket. */
export interface WalkBounds {
  readonly lookedAtMax: number
  readonly postingsMax: number
}

/** The result of one round. */
export interface ReceivedRound {
  /** Newest first. */
  readonly logged: readonly LoggedReceived[]
  /** Messages looked at. */
  readonly looked: number
  /** The walk continues below this id. */
  readonly last: string
  /** Whether nothing is left below it. */
  readonly isEnd: boolean
}

/** A segment of the walk. */
interface Stretch {
  readonly segment: string
  readonly firstMs: number
  readonly isLast: boolean
}

/** How far a walk has come, and how far it goes. */
interface Progress extends WalkBounds {
  looked: number
  rounds: number
}

/** Walks to the end or until the number of messages is read; yields null if the store did not answer. */
export async function* walkReceivedMail(
  read: Reader,
  walk: ReceivedWalk,
  bounds: WalkBounds,
): AsyncGenerator<ReceivedRound | null, void, void> {
  const segments = walk.segments.filter(([, firstMs]) => isBelow(`${firstMs}-0`, walk.to))
  const progress: Progress = { ...bounds, looked: 0, rounds: 0 }
  for (const [at, [segment, firstMs]] of segments.entries()) {
    const stretch = { segment, firstMs, isLast: at === segments.length - 1 }
    for await (const round of roundsOf(read, walk, { stretch, progress })) {
      yield round
      if (round === null) return
      progress.looked += round.looked
      progress.rounds += 1
      if (progress.looked >= progress.lookedAtMax) return
    }
  }
}

async function* roundsOf(
  read: Reader,
  walk: ReceivedWalk,
  { stretch, progress }: { stretch: Stretch; progress: Progress },
): AsyncGenerator<ReceivedRound | null, void, void> {
  const bucket = bucketOf(walk, stretch.segment)
  const postings = bucket === null ? 'many' : await readPostings(read, walk, { stretch, bucket, progress })
  if (postings === null) yield null
  else if (bucket === null || postings === 'many') yield* logRounds(read, walk, { stretch, progress })
  else yield* postedRounds(read, walk, { stretch, bucket, postings })
}

/** The postings of a bucket, packed or not; null if the store did not answer. */
async function readPostings(
  read: Reader,
  { shard, serverId }: ReceivedWalk,
  { stretch: { segment }, bucket, progress }: { stretch: Stretch; bucket: ReceivedBucket; progress: Progress },
): Promise<BucketPostings | null> {
  const { postingsMax } = progress
  const stream = { read: 'newest', key: bucket.key, from: '-', to: '+', count: postingsMax } as const
  const seen = await read(shard, [stream, packedPostingsFact({ shard, serverId, segment }, bucket.field)])
  if (seen === null) return null
  const [entries, [packed = null]] = seen
  if (entries.length === 0 && packed !== null) return unpackPostings(packed)
  return entries.length === postingsMax ? 'many' : entries
}

/** The bucket of a segment in which the filter's postings are; null if its log is walked. */
function bucketOf({ shard, serverId, sender, plusHash }: ReceivedWalk, segment: string): ReceivedBucket | null {
  const place = { shard, serverId, segment }
  if (!hasPostings(segment)) return null
  if (plusHash !== null) return bucketOfPlusHash(place, plusHash)
  return sender === null ? null : bucketOfSender(place, sender)
}

/** What one read finds: entries of the log while it has any, then packed rows. `lowest` is null at their end. */
interface LoggedStep {
  readonly entries: readonly Entry[]
  readonly rows: RowsBelow['rows']
  readonly lowest: string | null
  readonly isInLog: boolean
}

async function readLogged(
  read: Reader,
  place: { readonly shard: number; readonly serverId: string; readonly segment: string },
  { isInLog, ...range }: { isInLog: boolean; from: string; to: string; count: number },
): Promise<LoggedStep | null> {
  const key = receivedKey(place.shard, place.serverId, place.segment)
  const seen = isInLog ? await read(place.shard, [{ read: 'newest', key, ...range }] as const) : [[]]
  if (seen === null) return null
  const entries: readonly Entry[] = seen[0] ?? []
  const last = entries.at(-1)?.id ?? null
  if (entries.length === range.count) return { entries, rows: [], lowest: last, isInLog: true }
  const to = last === null ? range.to : `(${last}`
  const packed = await readRowsBelow(read, place, { from: range.from, to, count: range.count - entries.length })
  return packed && { entries, ...packed, isInLog: false }
}

async function* logRounds(
  read: Reader,
  { shard, serverId, from, to: first }: ReceivedWalk,
  { stretch, progress }: { stretch: Stretch; progress: Progress },
): AsyncGenerator<ReceivedRound | null, void, void> {
  const { segment, isLast } = stretch
  const place = { shard, serverId, segment }
  for (let to = first, isInLog = true; ; ) {
    const most = progress.rounds === 0 ? ENTRIES_FIRST : ENTRIES_MAX
    const count = Math.min(most, progress.lookedAtMax - progress.looked)
    const step = await readLogged(read, place, { isInLog, from, to, count })
    if (step === null) {
      yield null
      return
    }
    const { entries, rows, lowest } = step
    yield {
      logged: [...loggedIn(entries, place), ...loggedInRows(rows, place)],
      looked: entries.length + rows.length,
      last: lowest === null ? beginningOf(shard, stretch) : idOfEntry(lowest, shard),
      isEnd: lowest === null && isLast,
    }
    if (lowest === null) return
    to = `(${lowest}`
    isInLog = step.isInLog
  }
}

async function* postedRounds(
  read: Reader,
  { shard, serverId, from, to }: ReceivedWalk,
  { stretch, bucket, postings }: { stretch: Stretch; bucket: ReceivedBucket; postings: readonly Entry[] },
): AsyncGenerator<ReceivedRound | null, void, void> {
  const { segment, isLast } = stretch
  const spans = bucket
    .ranksIn(postings)
    .filter((rank) => Number.parseInt(rank, 10) >= Number(from))
    .sort((one, other) => (isEntryIdAbove(one, other) ? -1 : 1))
    .map(entriesOfRank)
    .filter((span) => isBelow(span.from, to))
  for (let at = 0, looked = SEGMENT_WEIGHT + Math.ceil(postings.length / POSTINGS_OF_A_LOOK); ; looked = 0) {
    const slice = spans.slice(at, at + POSTED_AT_ONCE)
    at += POSTED_AT_ONCE
    const isDone = at >= spans.length
    const seen = await readSpans(read, { shard, serverId, segment }, slice)
    yield seen && {
      // The first one may be the very message that the walk begins below.
      logged: seen.filter(({ messageId }) => isBelow(entryIdOf(messageId), to)),
      looked: looked + slice.length,
      last: isDone ? beginningOf(shard, stretch) : idOfEntry((slice.at(-1) as EntrySpan).from, shard),
      isEnd: isDone && isLast,
    }
    if (isDone) return
  }
}

/** The messages in the spans, at most one in each, in the log or in blocks; null if the store did not answer. */
async function readSpans(
  read: Reader,
  place: ReceivedSegment,
  spans: readonly EntrySpan[],
): Promise<readonly LoggedReceived[] | null> {
  if (spans.length === 0) return []
  const { shard, serverId, segment } = place
  const key = receivedKey(shard, serverId, segment)
  const facts = spans.map((span): FactOf<'range'> => ({ read: 'range', key, ...span, count: 1 }))
  const seen = await read(shard, facts)
  const packed =
    seen &&
    (await readRowsOf(
      read,
      place,
      spans.filter((_, at) => seen[at]?.length === 0),
    ))
  if (seen === null || packed == null) return null
  // Blocks are older than the log.
  return [...loggedIn(seen.flat(), place), ...loggedInRows(packed, place)]
}

function loggedIn(entries: readonly Entry[], at: { shard: number; segment: string }): LoggedReceived[] {
  return entries.map((entry) => parseLogged(entry, at)).filter((one) => one !== null)
}

function loggedInRows(rows: readonly PackedRow[], place: ReceivedSegment): LoggedReceived[] {
  return rows.map((row) => loggedOfRow(row, place)).filter((one) => one !== null)
}

/** An id below every message of a segment, and above every one before it. */
function beginningOf(shard: number, { firstMs }: Stretch): string {
  return idOfEntry(`${firstMs}-0`, shard)
}
