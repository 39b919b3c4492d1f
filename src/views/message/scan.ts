/**
 * scan - walks a server's log from the newest message down and finds those that may be meant
 *
 * A segment with postings is walked along the postings of the recipient, or of the tag; all other segments along their
 * log, whose entries contain persons and tag. The results are candidates, which the caller checks.
 *
 * A walk comes in rounds of a read each. Every entry read counts as a message read, whether or not it matches.
 *
 * Keys: `log by-person by-tag:<server>:<segment>`
 *
 * Spec message.search
 */

import type { Entry, EntryHint, FactOf } from '../../../cluster/behaviour.ts'
import { idOfEntry } from '../../../cluster/id.ts'
import { byPersonKey, byTagKey } from '../../state/keys.ts'
import { LOG_FIELD } from '../../state/message/log-entry.ts'
import { bucketOfPosting, bucketOfTag, numberOfTag } from '../../state/message/posting.ts'
import { MessageRows } from '../../state/message/row.ts'
import { bucketsOfSegment, hasPostings, SEGMENT_BOUNDS } from '../../state/segment.ts'
import { msOfBound } from '../bound.ts'
import type { Reader } from '../key.ts'

/** Entries of the first round, which is most often all that a page needs, and of any other. One person is rare. */
const ENTRIES_FIRST = 200
const ENTRIES_MAX = 1_000
/** Segments of one round. */
const SEGMENTS_AT_ONCE = 8
type NewestFact = FactOf<'newest'>

/** Maximum length of a posting relative to the average. */
const POSTING_MARGIN = 1.25
/** Maximum number of segments in one walk, because reading an empty one also has a cost. */
const SEGMENTS_MAX = 400

/** A segment and its first millisecond. */
export interface Stretch {
  readonly name: string
  readonly firstMs: number
}

/** The filter as numbers and hashes; null for a filter that is not given. */
export interface Sought {
  readonly recipient: number | null
  readonly sender: number | null
  readonly tagHash: string | null
}

/** A walk. */
export interface Walk {
  readonly shard: number
  readonly serverId: string
  /** Newest first. */
  readonly segments: readonly Stretch[]
  /** Bounds of the entry ids, as XREVRANGE takes them. */
  readonly from: string
  readonly to: string
  readonly sought: Sought
}

/** A message that may be meant. */
export interface Candidate {
  readonly messageId: string
  readonly entryId: string
  readonly segment: string
  /** The packed entry of its log, if the log was walked. */
  readonly packed: string | null
}

/** The result of one round. */
export interface Round {
  /** Newest first. */
  readonly found: readonly Candidate[]
  /** Messages looked at. */
  readonly looked: number
  /** The last message read, or an id between messages below which the walk continues. */
  readonly last: string
  /** Whether nothing is left below it. */
  readonly isEnd: boolean
}

/** The stream to walk in a segment, and a test that selects the entries of possible matches. */
interface Path {
  readonly segment: Stretch
  readonly isLog: boolean
  readonly read: (range: Omit<NewestFact, 'read' | 'key'>) => NewestFact
  readonly matches: (text: string) => boolean
}

/**
 * Walks to the end, for `entriesMax` entries, or through the maximum number of segments; yields null if the store did
 * not answer.
 */
export async function* walkMessages(
  read: Reader,
  walk: Walk,
  entriesMax: number,
): AsyncGenerator<Round | null, void, void> {
  const hint = hintOf(walk.sought)
  const paths = walk.segments.filter(({ firstMs }) => firstMs <= msOfBound(walk.to)).map((one) => choosePath(walk, one))
  let { to } = walk
  let at = 0
  let isWide = false
  for (let looked = 0, rounds = 0; at < paths.length && at < SEGMENTS_MAX; rounds += 1) {
    const isFirst = rounds === 0 && (paths[at]?.isLog === true || walk.sought.recipient === null)
    const count = Math.min(isFirst ? ENTRIES_FIRST : ENTRIES_MAX, entriesMax - looked)
    if (count <= 0) return
    const { taken, each } = planRound(paths.slice(at, at + SEGMENTS_AT_ONCE), { count, isWide })
    const range = { from: walk.from, to, count: each, hint }
    const facts = taken.map((path) => path.read(range))
    const seen = await read(walk.shard, facts)
    if (seen === null) {
      yield null
      return
    }
    const step = takeRound(walk, taken, { values: seen, count, each })
    looked += step.looked
    at += step.done
    isWide = step.done > 0
    to = step.lastEntry === null ? to : `(${step.lastEntry}`
    const isEnd = at >= paths.length
    yield { found: step.found, looked: step.looked, last: lastOf(walk, paths, { at, to }), isEnd }
  }
}

/**
 * Which segments a round reads, and how many entries of each. The length of postings is known from their buckets. That
 * of a log is not: after a short one the next round reads several.
 */
function planRound(
  paths: readonly Path[],
  { count, isWide }: { count: number; isWide: boolean },
): { taken: readonly Path[]; each: number } {
  const [first] = paths
  if (first === undefined || first.isLog) {
    const taken = paths.slice(0, isWide ? SEGMENTS_AT_ONCE : 1)
    return { taken, each: Math.ceil(count / taken.length) }
  }
  const expected = (SEGMENT_BOUNDS.recipientsMax / bucketsOfSegment(first.segment.name)) * POSTING_MARGIN
  return { taken: paths.slice(0, Math.max(1, Math.floor(count / expected))), each: count }
}

/** Reads the results of a round, in order, as far as `count` goes and no gap is left behind. */
function takeRound(
  walk: Walk,
  taken: readonly Path[],
  { values, count, each }: { values: readonly (readonly Entry[])[]; count: number; each: number },
): { found: Candidate[]; looked: number; done: number; lastEntry: string | null } {
  const found: Candidate[] = []
  let looked = 0
  let lastEntry: string | null = null
  for (const [index, path] of taken.entries()) {
    const entries = values[index] ?? []
    const room = count - looked
    for (const entry of entries.slice(0, room)) {
      lastEntry = entry.id
      const text = entry.fields[1] ?? ''
      if (!path.matches(text)) continue
      const messageId = idOfEntry(entry.id, walk.shard)
      const packed = path.isLog && entry.fields[0] === LOG_FIELD ? text : null
      found.push({ messageId, entryId: entry.id, segment: path.segment.name, packed })
    }
    looked += Math.min(entries.length, room)
    // As many as were asked for, or more than there is room for: this segment may hold more.
    if (entries.length >= each || entries.length > room) return { found, looked, done: index, lastEntry }
  }
  return { found, looked, done: taken.length, lastEntry }
}

/**
 * The id below which the next page begins. If the last segments had no candidates, it is the beginning of the last
 * one.
 */
function lastOf({ shard }: Walk, paths: readonly Path[], { at, to }: { at: number; to: string }): string {
  const before = paths[at - 1]
  if (before !== undefined && before.segment.firstMs <= msOfBound(to))
    return idOfEntry(`${before.segment.firstMs}-0`, shard)
  return idOfEntry(to.slice(1), shard)
}

function choosePath({ shard, serverId, sought }: Walk, segment: Stretch): Path {
  const { recipient, sender, tagHash } = sought
  const { name } = segment
  if (recipient !== null && hasPostings(name)) {
    const key = byPersonKey(shard, serverId, name, bucketOfPosting(recipient, bucketsOfSegment(name)))
    return { segment, isLog: false, read: newestOf(key), matches: listing(String(recipient)) }
  }
  if (tagHash !== null && hasPostings(name)) {
    const key = byTagKey(shard, serverId, name, bucketOfTag(tagHash, bucketsOfSegment(name)))
    return { segment, isLog: false, read: newestOf(key), matches: (text) => text === tagHash }
  }
  // A text that does not hold the digits or the hash at all is not worth reading as JSON.
  const needles = [recipient, sender, tagHash].flatMap((one) => (one === null ? [] : [String(one)]))
  const matches = (text: string): boolean => needles.every((needle) => text.includes(needle))
  const rows = new MessageRows(shard, { serverId, segment: name })
  return { segment, isLog: true, read: (range) => rows.newestFact(range), matches }
}

/** The filter in the form of the index of sealed segments. */
function hintOf({ recipient, sender, tagHash }: Sought): EntryHint {
  return {
    ...(recipient !== null && { recipient }),
    ...(sender !== null && { sender }),
    ...(tagHash !== null && { tag: numberOfTag(tagHash) }),
  }
}

function newestOf(key: string): Path['read'] {
  return (range) => ({ read: 'newest', key, ...range })
}

/** Whether a posting's list of numbers, joined by spaces, holds one. */
function listing(number: string): (text: string) => boolean {
  return (text) => text === number || (text.includes(number) && text.split(' ').includes(number))
}
