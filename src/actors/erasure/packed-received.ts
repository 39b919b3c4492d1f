/**
 * packed-received - received mail in blocks, of which only the text after the plus sign of its address is a person's.
 *
 * A block with such a text of the person is replaced by one without. What is damaged may be anyone's, and no one can
 * read it: a damaged row leaves its block, and a damaged block its segment, so that it stops no erasure.
 *
 * Keys: `received-blocks:<server>:<segment>`
 *
 * Spec erasure.received
 */

import type { Need, Op } from '../../../cluster/behaviour.ts'
import { idOfEntry, isEntryIdAbove, msOf } from '../../../cluster/id.ts'
import { unlessDamaged } from '../../../cluster/sum.ts'
import type { ErasureWalk, ToldSpan } from '../../state/erasure.ts'
import {
  allReceivedBlocksFact,
  dropDamagedOps,
  entryOfRow,
  type PackedRow,
  type ReceivedBlocks,
  type ReceivedSegment,
  replaceBlockOps,
  unpackReceivedBlock,
} from '../../state/received/block.ts'
import { parseReceivedEntry, type ReceivedEntry } from '../../state/received/entry.ts'
import { packStanding, type ReceivedStanding, unpackStanding } from '../../state/received/standing.ts'
import { toldOfReceived } from './erased-received.ts'
import type { ServerStep } from './step.ts'

/** Results of a step. */
export interface ErasedInBlocks {
  readonly kind: 'erased'
  readonly ops: readonly Op[]
  readonly told: readonly ToldSpan[]
  /** The last entry id of the blocks; null if there was none. */
  readonly last: string | null
}

/** Erases the person's rows of some blocks, each given once, without those that end below an entry id. */
export function eraseInBlocks(
  { erasureId, walk, facts }: Pick<ServerStep, 'erasureId' | 'walk' | 'facts'>,
  place: ReceivedSegment,
  { blocks, from = '' }: { readonly blocks: ReceivedBlocks; readonly from?: string },
): ErasedInBlocks | Need {
  const opened = blocks.map(([packed]) => ({ packed, rows: unlessDamaged(() => unpackReceivedBlock(packed)) }))
  const all = allReceivedBlocksFact(place)
  const hasDamaged = opened.some(({ rows }) => rows === null)
  if (hasDamaged && !facts.has(all)) return { kind: 'need', facts: [all] }
  const ops = hasDamaged ? dropDamagedOps(place, facts.sorted(all)) : []
  const told: ToldSpan[] = []
  let last: string | null = null
  for (const { packed, rows } of opened) {
    const end = rows?.at(-1)?.entryId
    if (rows === null || end === undefined || (from !== '' && isEntryIdAbove(from, end))) continue
    last = end
    const kept = rows.flatMap((row) => {
      const read = unlessDamaged(() => readRow(row, place))
      if (read === null) return []
      if (read === 'nothing' || read.messageId > erasureId || !isOfSender(walk, read)) return [row]
      told.push(...toldOfReceived(read.messageId, read.standing))
      const standing = packStanding({ ...read.standing, mailboxHash: null }, msOf(read.messageId))
      return [{ ...row, standing }]
    })
    if (kept.length < rows.length || kept.some((row, at) => row !== rows[at]))
      ops.push(...replaceBlockOps(place, packed, kept))
  }
  return { kind: 'erased', ops, told, last }
}

interface ReadRow {
  readonly messageId: string
  readonly entry: ReceivedEntry
  readonly standing: ReceivedStanding
}

/** A row with a text after the plus sign; `nothing` if it has none. Throws DamagedValue. */
function readRow(row: PackedRow, { shard }: ReceivedSegment): ReadRow | 'nothing' {
  const entry = parseReceivedEntry(entryOfRow(row))
  if (entry === null || row.standing === null) return 'nothing'
  const messageId = idOfEntry(row.entryId, shard)
  const standing = unpackStanding(row.standing, msOf(messageId))
  return standing.mailboxHash === null ? 'nothing' : { messageId, entry, standing }
}

/** Whether a message is from the person, or came to its address. */
export function isOfSender(
  { number, mailbox }: Pick<ErasureWalk, 'number' | 'mailbox'>,
  { entry, standing }: { readonly entry: ReceivedEntry; readonly standing: ReceivedStanding },
): boolean {
  if (number !== 0 && (entry.sender === number || standing.from === number)) return true
  return mailbox !== null && entry.streamId === mailbox.streamId && entry.plusHash === mailbox.plusHash
}
