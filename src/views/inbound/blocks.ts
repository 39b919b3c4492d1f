/**
 * blocks - received messages in blocks: the one of an id, those of some ids, and those below a bound, newest first
 *
 * A message moves from the log to a block, so a reader reads the log first, or both in one step.
 *
 * Key: `received-blocks:<server>:<segment>`
 */

import { idOfEntry, isEntryIdAbove } from '../../../cluster/id.ts'
import {
  entryOfRow,
  type PackedRow,
  type ReceivedBlocks,
  type ReceivedSegment,
  receivedBlockFact,
  receivedBlocksBelowFacts,
  unpackReceivedBlock,
} from '../../state/received/block.ts'
import { parseReceivedEntry, type ReceivedEntry } from '../../state/received/entry.ts'
import type { Reader } from '../key.ts'

/** A message and its entry in the log. */
export interface LoggedReceived {
  readonly messageId: string
  readonly segment: string
  readonly entry: ReceivedEntry
  /** Its standing, if it is in a block; null if that is missing. */
  readonly standing?: string | null
}

/** Whether an entry id is below an upper bound, as XREVRANGE takes it. */
export function isBelow(entryId: string, upper: string): boolean {
  if (upper === '+') return true
  return upper.startsWith('(') && isEntryIdAbove(upper.slice(1), entryId)
}

/** The message of a row; null if it is none. Throws DamagedValue. */
export function loggedOfRow(row: PackedRow, { shard, segment }: ReceivedSegment): LoggedReceived | null {
  const entry = parseReceivedEntry(entryOfRow(row))
  return entry && { messageId: idOfEntry(row.entryId, shard), segment, entry, standing: row.standing }
}

/** The rows of some blocks, each block once, newest first. Throws DamagedValue. */
export function newestRows(blocks: ReceivedBlocks): PackedRow[] {
  const sorted = [...new Map(blocks)].sort(([, one], [, other]) => one - other)
  return sorted.flatMap(([packed]) => unpackReceivedBlock(packed)).reverse()
}

/** Reads the rows in some spans, each of which has one row at most; undefined if the store did not answer. */
export async function readRowsOf(
  read: Reader,
  place: ReceivedSegment,
  spans: readonly EntrySpan[],
): Promise<readonly PackedRow[] | undefined> {
  if (spans.length === 0) return []
  const facts = spans.map(({ from }) => receivedBlockFact(place, from))
  const seen = await read(place.shard, facts)
  if (seen === null) return undefined
  const opened = new Map<string, readonly PackedRow[]>()
  const open = (packed: string): readonly PackedRow[] => {
    const rows = opened.get(packed) ?? unpackReceivedBlock(packed)
    opened.set(packed, rows)
    return rows
  }
  return spans.flatMap((span, at): PackedRow[] => {
    for (const [packed] of seen[at] ?? []) {
      const row = open(packed).find(({ entryId }) => isWithin(entryId, span))
      if (row !== undefined) return [row]
    }
    return []
  })
}

/** Entry ids between which a row is, both inclusive. */
export interface EntrySpan {
  readonly from: string
  readonly to: string
}

function isWithin(entryId: string, { from, to }: EntrySpan): boolean {
  return !isEntryIdAbove(from, entryId) && !isEntryIdAbove(entryId, to)
}

/** Some rows below a bound. */
export interface RowsBelow {
  /** Newest first. */
  readonly rows: readonly PackedRow[]
  /** The lowest entry id that was read; null if nothing is left below. */
  readonly lowest: string | null
}

/** Reads at least the next `count` rows below a bound; null if the store did not answer. */
export async function readRowsBelow(
  read: Reader,
  place: ReceivedSegment,
  { from, to, count }: { readonly from: string; readonly to: string; readonly count: number },
): Promise<RowsBelow | null> {
  const facts = receivedBlocksBelowFacts(place, to === '+' ? null : to.slice(1), count)
  const seen = await read(place.shard, facts)
  if (seen === null) return null
  const all = newestRows(seen.flat())
  const rows = all.filter(({ entryId }) => isBelow(entryId, to) && Number.parseInt(entryId, 10) >= Number(from))
  const isMore = (seen[0]?.length ?? 0) === facts[0]?.count && rows.at(-1) === all.at(-1)
  return { rows, lowest: isMore ? (rows.at(-1)?.entryId ?? null) : null }
}
