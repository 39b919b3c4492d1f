/**
 * swap - the row of a sealed segment names another object, if nothing has happened to it since it was read.
 *
 * The commit compares the object that the rewrite has named, and the number of recalls. An object that lost is
 * removed; so is the one before, later, because a backup that runs may still name it. Its key is gone with this
 * commit.
 */

import type { Context, Due, Facts, Op } from '../../../cluster/behaviour.ts'
import type { MessageRows } from '../../state/message/row.ts'
import type { SealedRow } from '../../state/message/sealed.ts'
import { unlinkColdDue } from '../message/unlink.ts'

/** A rewrite, with the row as it was read and the written object as its `next`; and the object. */
export interface Rewritten {
  readonly before: SealedRow
  readonly object: Pick<SealedRow, 'size' | 'key'> & Partial<Pick<SealedRow, 'messages' | 'firstMs' | 'headKeys'>>
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
