/**
 * block - received messages whose content has left, packed together, in a fifth of the memory.
 *
 * Once messages are 33 days old, their log entries and standings move to blocks. A block is the older part of a
 * segment's log: every message of a segment is in its log or in one block, and all blocks are below the log. So whoever
 * reads the log and the blocks in one step, or the log first, finds every message.
 *
 * A block is a member of a sorted set, by the score of its last message: deflated lines in base64, the entry ids as
 * distances, then the texts of the log, then those of the standings, empty for one that is missing. The texts are
 * stored without their sums, because the block has one; a text that was damaged before stays as it was, behind a mark.
 *
 * Keys: `received-blocks:<server>:<segment>`
 *
 * Spec retention.inbound
 */

import { deflateRawSync, inflateRawSync } from 'node:zlib'
import type { Entry, FactOf, Op } from '../../../cluster/behaviour.ts'
import { idOfEntry } from '../../../cluster/id.ts'
import { damagedValue, unlessDamaged, withoutSum, withSum } from '../../../cluster/sum.ts'
import { DAY_MS } from '../calendar.ts'
import { idScore } from '../id-score.ts'
import { receivedBlocksKey } from '../keys.ts'
import { RECEIVED_DAYS } from '../object-name.ts'
import { RECEIVED_FIELD } from './entry.ts'

/** Messages of one block. */
export const BLOCK_MESSAGES = 200
/** A day after the latest one on which a message may have content. */
const LOG_DAYS = RECEIVED_DAYS + 2
/** Of an opened block: three lines for each message, the longest of which names a mailbox hash of 255 characters. */
const OPENED_BYTES_MAX = 1024 * 1024
/** A score is shared by the last ids of a millisecond, so the block of an id may be the one after. */
const SAME_SCORE_BLOCKS = 2
/** More than a segment of 50,000 messages has. */
const SEGMENT_BLOCKS_MAX = 1_000
const BASE = 36
/** Lines of a message. */
const LINES_EACH = 3
/** Of the kind of a damaged block, in the log. */
const NAME = 'received-block'
/** Begins a text that was damaged before it was packed; the others begin with a bracket. */
const DAMAGED = '!'
/** In place of an end of line in a damaged text. */
const NO_LINE = '\ufffd'

/** A segment of received messages. */
export interface ReceivedSegment {
  readonly shard: number
  readonly serverId: string
  readonly segment: string
}

/** A message in a block. */
export interface PackedRow {
  readonly entryId: string
  /** Its text in the log, as `packReceivedEntry` made it. */
  readonly entry: string
  /** As `packStanding` made it; null if it was missing. */
  readonly standing: string | null
}

/** Blocks with their scores, as read. */
export type ReceivedBlocks = readonly (readonly [block: string, score: number])[]

/** The instant before which messages move to blocks. */
export function blockCutoffMs(nowMs: number): number {
  return nowMs - LOG_DAYS * DAY_MS
}

/** Packs messages, in the order of their ids. */
export function packReceivedBlock(rows: readonly PackedRow[]): string {
  let before = 0
  const ids = rows.map(({ entryId }) => {
    const [ms = '', low = ''] = entryId.split('-')
    const line = `${(Number(ms) - before).toString(BASE)}.${BigInt(low).toString(16)}`
    before = Number(ms)
    return line
  })
  const entries = rows.map(({ entry }) => stripSum(entry))
  const standings = rows.map(({ standing }) => (standing === null ? '' : stripSum(standing)))
  return withSum(deflateRawSync([...ids, ...entries, ...standings].join('\n')).toString('base64'))
}

/**
 * Unpacks a result of `packReceivedBlock`.
 * @throws DamagedValue if it is not one
 */
export function unpackReceivedBlock(packed: string): PackedRow[] {
  const lines = open(withoutSum(packed, NAME)).split('\n')
  const count = lines.length / LINES_EACH
  if (!Number.isInteger(count)) throw damagedValue(NAME)
  let ms = 0
  return lines.slice(0, count).map((line, at) => {
    const dot = line.indexOf('.')
    ms += Number.parseInt(line.slice(0, dot), BASE)
    const standing = lines[count + count + at] ?? ''
    return {
      entryId: `${ms}-${BigInt(`0x${line.slice(dot + 1)}`)}`,
      entry: addSum(lines[count + at] ?? ''),
      standing: standing === '' ? null : addSum(standing),
    }
  })
}

function stripSum(text: string): string {
  return unlessDamaged(() => withoutSum(text, 'packed')) ?? DAMAGED + text.replaceAll('\n', NO_LINE)
}

function addSum(line: string): string {
  return line.startsWith(DAMAGED) ? line.slice(DAMAGED.length) : withSum(line)
}

function open(text: string): string {
  try {
    return inflateRawSync(Buffer.from(text, 'base64'), { maxOutputLength: OPENED_BYTES_MAX }).toString()
  } catch {
    throw damagedValue(NAME)
  }
}

/** A message of a block as an entry of the log. */
export function entryOfRow({ entryId, entry }: PackedRow): Entry {
  return { id: entryId, fields: [RECEIVED_FIELD, entry] }
}

/** The read of the blocks that may hold `count` messages from an entry id on; '-' = from the first. */
export function receivedBlocksFromFact(place: ReceivedSegment, from: string, count: number): FactOf<'sorted'> {
  const min = from === '-' ? 0 : scoreOf(place, from)
  return { read: 'sorted', key: keyOf(place), min, max: Number.MAX_SAFE_INTEGER, count: blocksOf(count) }
}

/** The read of the block that may hold an entry id. */
export function receivedBlockFact(place: ReceivedSegment, entryId: string): FactOf<'sorted'> {
  return { ...receivedBlocksFromFact(place, entryId, 0), count: SAME_SCORE_BLOCKS }
}

/** The message of an entry id in the blocks of `receivedBlockFact`; null if it is not there. Throws DamagedValue. */
export function rowInReceivedBlocks(blocks: ReceivedBlocks, entryId: string): PackedRow | null {
  for (const [packed] of blocks) {
    const row = unpackReceivedBlock(packed).find((one) => one.entryId === entryId)
    if (row !== undefined) return row
  }
  return null
}

/** The reads of the blocks that may hold the newest `count` messages below an entry id; null = below none. */
export function receivedBlocksBelowFacts(
  place: ReceivedSegment,
  below: string | null,
  count: number,
): FactOf<'sorted'>[] {
  const key = keyOf(place)
  const max = below === null ? Number.MAX_SAFE_INTEGER : scoreOf(place, below)
  const older = { read: 'sorted', key, min: 0, max, count: blocksOf(count), newest: true } as const
  // The block in which `below` is ends above it.
  return below === null ? [older] : [older, receivedBlockFact(place, below)]
}

/** The read of all blocks of a segment. */
export function allReceivedBlocksFact(place: ReceivedSegment): FactOf<'sorted'> {
  return { read: 'sorted', key: keyOf(place), min: 0, max: Number.MAX_SAFE_INTEGER, count: SEGMENT_BLOCKS_MAX }
}

/** The write of a block. */
export function receivedBlockOp(place: ReceivedSegment, rows: readonly PackedRow[]): Op {
  const score = scoreOf(place, (rows.at(-1) as PackedRow).entryId)
  return { key: keyOf(place), write: 'ZADD', args: [String(score), packReceivedBlock(rows)] }
}

/** The writes that put other messages in the place of a block; none removes it. */
export function replaceBlockOps(place: ReceivedSegment, packed: string, rows: readonly PackedRow[]): Op[] {
  const remove: Op = { key: keyOf(place), write: 'ZREM', args: [packed] }
  return rows.length === 0 ? [remove] : [remove, receivedBlockOp(place, rows)]
}

/**
 * The writes that remove the damaged blocks of a segment, of which the last message is older than `beforeMs`. Takes all
 * of its blocks. The bytes of a damaged block may be no UTF-8: then its text names no member, so the key is written
 * again with the other blocks.
 */
export function dropDamagedOps(place: ReceivedSegment, all: ReceivedBlocks, beforeMs = Number.POSITIVE_INFINITY): Op[] {
  const key = keyOf(place)
  const isKept = ([packed, score]: readonly [string, number]): boolean =>
    score >= beforeMs || unlessDamaged(() => unpackReceivedBlock(packed)) !== null
  const ops: Op[] = [{ key, write: 'UNLINK', args: [] }]
  return [
    ...ops,
    ...all.filter(isKept).map(([packed, score]): Op => ({ key, write: 'ZADD', args: [String(score), packed] })),
  ]
}

function blocksOf(count: number): number {
  return Math.ceil(count / BLOCK_MESSAGES) + SAME_SCORE_BLOCKS
}

function scoreOf({ shard }: ReceivedSegment, entryId: string): number {
  return idScore(idOfEntry(entryId, shard))
}

function keyOf({ shard, serverId, segment }: ReceivedSegment): string {
  return receivedBlocksKey(shard, serverId, segment)
}
