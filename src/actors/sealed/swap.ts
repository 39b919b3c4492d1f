/**
 * swap - the rewrite of a sealed segment: its row names the next object before that is written, and then names it in
 * place of the present one, if nothing has happened to the segment since it was read.
 *
 * The commit compares the object that the rewrite has named, and the number of recalls. An object that lost is
 * removed; so is the one before, later, because a backup that runs may still name it. Its key is gone with this
 * commit.
 */

import type { Context, Decision, Due, Facts, Op, OutcomeBody } from '../../../cluster/behaviour.ts'
import { HOUR_MS, MINUTE_MS } from '../../state/calendar.ts'
import type { MessageRows } from '../../state/message/row.ts'
import { leafOf, type SealedRow } from '../../state/message/sealed.ts'
import { unlinkColdDue } from '../message/unlink.ts'

/** A rewrite, with the row as it was read and the written object as its `next`; and the object. */
export interface Rewritten {
  readonly before: SealedRow
  readonly object: Pick<SealedRow, 'size' | 'key'> & Partial<Pick<SealedRow, 'messages' | 'firstMs' | 'headKeys'>>
}

/**
 * The row with the object of a rewrite as its `next`, and its writes. An object that a former claim named is removed.
 */
export function nameNext(
  rows: MessageRows,
  of: { readonly serverId: string; readonly segment: string; readonly row: SealedRow },
  context: Pick<Context, 'shard' | 'nowMs' | 'newId'>,
): { readonly row: SealedRow; readonly ops: readonly Op[]; readonly due: readonly Due[] } {
  const { row } = of
  const next = { ...row, next: leafOf(of, context.newId()) }
  const due = row.next === '' ? [] : [unlinkColdDue(context, { ...row, leaf: row.next }, { isReplaced: true })]
  return { row: next, ops: [rows.sealOp(next)], due }
}

/** An item whose content store did not answer is due again after a minute, then after longer, at most an hour. */
export function retryLater(
  { lane, item, attempt, current }: Pick<OutcomeBody, 'lane' | 'item' | 'attempt' | 'current'>,
  nowMs: number,
): Decision<null> {
  const atMs = nowMs + Math.min(HOUR_MS, MINUTE_MS * 2 ** (attempt - 1))
  return { kind: 'done', reply: null, ...(current && { due: [{ lane, item, atMs }] }) }
}

/** The writes of a finished rewrite. `sealedFact` must have been fetched. */
export function swap(
  rows: MessageRows,
  facts: Facts,
  context: Pick<Context, 'shard' | 'nowMs'>,
  { before, object }: Rewritten,
): { readonly isSwapped: boolean; readonly ops: readonly Op[]; readonly due: readonly Due[] } {
  const row = rows.sealed(facts)
  // A swap clears `next`, and each rewrite names a new object.
  const isSame = row !== null && row.next === before.next && row.recalls === before.recalls
  // This outcome comes twice.
  if (row?.leaf === before.next) return { isSwapped: false, ops: [], due: [] }
  const lost = { day: before.day, leaf: isSame ? before.leaf : before.next }
  const due = [unlinkColdDue(context, lost, { isReplaced: true })]
  if (!isSame) return { isSwapped: false, ops: [], due }
  const after = { ...row, ...object, generation: row.generation + 1, leaf: before.next, next: '' }
  return { isSwapped: true, ops: [rows.sealOp(after)], due }
}
