/** commit-of - the commit that a plan is sent as. */
import { entryIdOf, sortableEntryId } from '../id.ts'
import type { Commit } from '../store.ts'
import type { Plan } from './batch.ts'

/** The identity under which a plan is sent. */
export interface CommitHead {
  readonly shard: number
  readonly token: string
  readonly seq: number
  readonly commitId: string
  readonly nowMs: number
}

/** Puts a plan into the form that the store takes. It must be done before the first deadline among its works. */
export function makeCommit(plan: Plan, head: CommitHead): Commit {
  const deadlines = plan.works.filter(({ deadlineMs, late }) => deadlineMs > 0 && !late)
  return {
    shard: head.shard,
    token: head.token,
    seq: head.seq,
    commitId: head.commitId,
    nowMs: head.nowMs,
    deadlineMs: deadlines.reduce(
      (least, { deadlineMs }) => (least === 0 ? deadlineMs : Math.min(least, deadlineMs)),
      0,
    ),
    lid: plan.lid,
    firstEntryId: plan.firstId === '' ? '' : sortableEntryId(entryIdOf(plan.firstId)),
    cursor: plan.cursor,
    outcomesCursor: plan.outcomesCursor,
    // One that is late only has the cursor pass it.
    frees: plan.works.every(({ type, late }) => late || type.frees === true),
    note: `works=${plan.works.length} ops=${plan.ops.length}`,
    ops: plan.ops,
    merged: plan.overlay.merged,
    told: plan.told,
  }
}
