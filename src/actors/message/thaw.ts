/**
 * thaw - a write to a message whose segment may be read out, or has left Redis.
 *
 * The open segment of a server is never read out, so only messages of other segments ask. A write into a frozen
 * segment thaws it in the same commit, because the copy read from it is older than the write.
 */

import type { Context, Due, Facts, Op } from '../../../cluster/behaviour.ts'
import type { AttemptItem } from '../../state/message/item.ts'
import type { MessageRows } from '../../state/message/row.ts'
import type { ServerCounters } from '../../state/server.ts'
import { unlinkColdDue } from './unlink.ts'

/** Whether the row of the segment in `sealed` must be read before a message in it is written. */
export function mayBeSealed(counters: ServerCounters | null, { segment }: Pick<AttemptItem, 'segment'>): boolean {
  return counters?.segment?.name !== segment
}

/**
 * The writes to a message's segment that accompany a write to the message. `sealedFact` must have been fetched if it
 * may be sealed.
 */
export function thaw(
  rows: MessageRows,
  facts: Facts,
  context: Pick<Context, 'shard' | 'nowMs'>,
): { readonly ops: readonly Op[]; readonly due: readonly Due[] } {
  const row = rows.sealed(facts)
  if (row === null || row.generation > 0) return { ops: [], due: [] }
  return { ops: [rows.unsealOp()], due: [unlinkColdDue(context, row, { isReplaced: true })] }
}
