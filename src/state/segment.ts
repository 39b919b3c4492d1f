/**
 * segment - the stretch of a server's log that a message belongs to, with its head, status and postings.
 *
 * States: a segment is open from its first message until the first one that belongs to another UTC month (live) or day
 * (test) of ids, arrives a week after its first message, or does not fit. A full one stays open for messages of its
 * last millisecond, so that segments never overlap in time and the time in an id determines its segment.
 *
 * A name is `<yyyymm or yyyymmdd>-<n>-<posting buckets>`. The buckets are fixed when the segment opens, by the number
 * of recipients of the previous one: the most after a full one (256 for sent mail), fewer after a busy one (64),
 * otherwise 1, because a stream costs kilobytes even with few entries. A segment of one bucket has no postings,
 * because its log contains the same persons and tags. On a live server it ends before it becomes busy, so that no
 * search walks a long log. Test servers have no postings.
 *
 * Key: `segments:<server>`; the open segment is in the server's counters
 */

import type { Fact } from '../../cluster/behaviour.ts'
import { DAY_MS, dayName, endOfNameMs, monthName } from './calendar.ts'
import { byPersonKey, byTagKey, headKey, logKey, recalledKey, sealedPersonsKey, statusKey } from './keys.ts'

type SegmentFact = Fact & { readonly read: 'sorted' }

/** The open segment. */
export interface Segment {
  readonly name: string
  readonly recipients: number
  /** Bytes of the heads, plus those of statuses in excess of `STATUS_BYTES` each. */
  readonly bytes: number
  /** Time in the id of the last message. */
  readonly lastMs: number
  /** Time in the id of the first message; absent in segments that an early version opened. */
  readonly firstMs?: number
}

export interface SegmentBounds {
  readonly recipientsMax: number
  readonly bytesMax: number
  /**
   * A message this long after the first one opens a new segment, because segments leave Redis whole. Absent: age is no
   * bound.
   */
  readonly msMax?: number
  /** A segment without postings ends at this number of recipients, and the next one has postings. */
  readonly busyRecipients: number
  /** After a segment with at least this many recipients, the next one has the most buckets. */
  readonly fullRecipients: number
  /** Posting buckets of a segment that follows a busy one (`busyBuckets`) or a full one (`fullBuckets`). */
  readonly busyBuckets: number
  readonly fullBuckets: number
}

export const SEGMENT_BOUNDS: SegmentBounds = {
  recipientsMax: 50_000,
  bytesMax: 16 * 1024 * 1024,
  msMax: 7 * DAY_MS,
  busyRecipients: 5_000,
  fullRecipients: 40_000,
  busyBuckets: 64,
  fullBuckets: 256,
}

/** Bytes that every segment reserves for a recipient's status; an outcome adds the excess. */
export const STATUS_BYTES = 128

/** Names of segments with one bucket end with this. */
const UNPOSTED_END = '-1'
/** No month. */
const LEFT = '000000'
const TEST_NAME_CHARS = 8

/** The load of a message or mail on a segment. */
export interface SegmentLoad {
  readonly idMs: number
  readonly test: boolean
  readonly recipients: number
  readonly bytes: number
}

/** The segment that a message goes to, with the message in it, and whether it has just been opened. */
export function enterSegment(
  open: Segment | null,
  load: SegmentLoad,
  bounds: SegmentBounds,
): { readonly segment: Segment; readonly opened: boolean } {
  const { idMs, recipients, bytes } = load
  const period = load.test ? dayName(idMs) : monthName(idMs)
  if (open !== null && staysOpen(open, load, { period, bounds })) {
    const segment = {
      name: open.name,
      recipients: open.recipients + recipients,
      bytes: open.bytes + bytes,
      lastMs: idMs,
      ...(open.firstMs !== undefined && { firstMs: open.firstMs }),
    }
    return { segment, opened: false }
  }
  const samePeriod = open !== null && periodOfSegment(open.name) === period
  const place = samePeriod ? placeOfSegment(open.name) + 1 : 0
  const buckets = load.test || open === null ? 1 : bucketsAfter(open.recipients + recipients, bounds)
  return {
    segment: { name: `${period}-${place}-${buckets}`, recipients, bytes, lastMs: idMs, firstMs: idMs },
    opened: true,
  }
}

/** Takes the recipients of the previous segment, including those that did not fit into it. */
function bucketsAfter(recipients: number, bounds: SegmentBounds): number {
  if (recipients >= bounds.fullRecipients) return bounds.fullBuckets
  return recipients >= bounds.busyRecipients ? bounds.busyBuckets : 1
}

/** Reads the segment that contains an instant, if any, from the key of a server's segments. */
export function segmentAtFact(key: string, ms: number): SegmentFact {
  return { read: 'sorted', key, min: 0, max: ms, count: 1, newest: true }
}

/** The first segment that begins after an instant. */
export function segmentAfterFact(key: string, ms: number): SegmentFact {
  return { read: 'sorted', key, min: ms + 1, max: Number.MAX_SAFE_INTEGER, count: 1 }
}

/** Posting buckets of a segment. */
export function bucketsOfSegment(name: string): number {
  return Number(name.slice(name.lastIndexOf('-') + 1))
}

/** Whether a segment has postings; otherwise its messages are found through its log. */
export function hasPostings(name: string): boolean {
  return !name.endsWith(UNPOSTED_END)
}

/** Whether a segment is a test server's. */
export function isTestSegment(name: string): boolean {
  return name.indexOf('-') === TEST_NAME_CHARS
}

/** The name that replaces the segment of a message that has left the log. */
export function leftSegment(test: boolean): string {
  return test ? `${LEFT}00-0${UNPOSTED_END}` : `${LEFT}-0${UNPOSTED_END}`
}

/** Whether a name is that of `leftSegment`. */
export function isLeftSegment(name: string): boolean {
  return name.startsWith(LEFT)
}

/** First millisecond after the month or day of a segment. */
export function segmentEndMs(name: string): number {
  return endOfNameMs(periodOfSegment(name))
}

/** Every key of a segment that is in Redis. */
export function segmentKeys(shard: number, serverId: string, name: string): string[] {
  const keys = [logKey(shard, serverId, name), headKey(shard, serverId, name), statusKey(shard, serverId, name)]
  if (!hasPostings(name)) return keys
  for (let bucket = 0; bucket < bucketsOfSegment(name); bucket += 1)
    keys.push(byPersonKey(shard, serverId, name, bucket), byTagKey(shard, serverId, name, bucket))
  return keys
}

/** Every key of a segment, sealed or not. */
export function allSegmentKeys(shard: number, serverId: string, name: string): string[] {
  const sealed = [recalledKey(shard, serverId, name), sealedPersonsKey(shard, serverId, name)]
  return [...segmentKeys(shard, serverId, name), ...sealed]
}

function staysOpen(
  open: Segment,
  load: SegmentLoad,
  { period, bounds }: { period: string; bounds: SegmentBounds },
): boolean {
  if (periodOfSegment(open.name) !== period) return false
  const isShort = !load.test && !hasPostings(open.name)
  const recipientsMax = isShort ? Math.min(bounds.busyRecipients, bounds.recipientsMax) : bounds.recipientsMax
  const isYoung = open.firstMs === undefined || load.idMs - open.firstMs < (bounds.msMax ?? Number.POSITIVE_INFINITY)
  const fits =
    isYoung && open.recipients + load.recipients <= recipientsMax && open.bytes + load.bytes <= bounds.bytesMax
  return fits || load.idMs <= open.lastMs
}

function periodOfSegment(name: string): string {
  return name.slice(0, name.indexOf('-'))
}

function placeOfSegment(name: string): number {
  return Number(name.slice(name.indexOf('-') + 1, name.lastIndexOf('-')))
}
