/**
 * erasure-rewrite - makes the embedded Redis rewrite its append-only file after an erasure, because until then the file
 * has the erased data
 *
 * States: nothing to do -> an erasure was done -> a rewrite was begun, some minutes later -> it has succeeded.
 * Short-lived data has expired by then, such as the content of commands between processes, and unclaimed content. A
 * rewrite that was refused or failed, or whose Redis was restarted, is requested again.
 *
 * Guarantees: at most one in ten minutes for all processes together; a successful one is known to all processes, after
 * a start too; continuous erasures do not delay it.
 *
 * Spec erasure.files
 */

import type { ClusterLog } from '../../cluster/cluster-log.ts'
import { SHARDS } from '../../cluster/id.ts'
import type { KnownRewrites, RewriteState, Rewrites } from '../store/rewrite.ts'
import { readLastErasedMs } from '../views/operator/erasure-figures.ts'
import type { ReadKeys } from '../views/read-keys.ts'

const LOOK_MS = 60_000
/** Nothing that is short-lived stays longer than this after it was written. */
const SHORT_LIVED_MS = 3 * 60_000
const REWRITES_APART_MS = 10 * 60_000

export interface ErasureRewriteDeps {
  /** The time of the last erasure by the store's clock; 0 if none; null if the store did not answer. */
  readonly lastErasedMs: () => Promise<number | null>
  readonly rewrites: Rewrites
  readonly log: Pick<ClusterLog, 'info'>
  /** The store's clock, ms. */
  readonly nowMs: () => number
}

/** Checks periodically; returns a function that ends it. */
export function watchErasures(deps: ErasureRewriteDeps): () => void {
  const timer = setInterval(() => void lookForErasures(deps).catch(() => undefined), LOOK_MS).unref()
  return () => clearInterval(timer)
}

/** One check. Rejects if the store does not answer. */
export async function lookForErasures({ lastErasedMs, rewrites, log, nowMs }: ErasureRewriteDeps): Promise<void> {
  const erasedMs = await lastErasedMs()
  if (erasedMs === null || erasedMs === 0) return
  // In this order: so that a rewrite that begins in between does not count as finished.
  const known = await rewrites.known()
  const state = await rewrites.state()
  if (state === null) return
  const cleanMs = cleanedMs(known, state)
  if (cleanMs > known.cleanMs) {
    await rewrites.noteClean(cleanMs)
    log.info({}, 'The append-only file was rewritten and no longer contains erased data')
  }
  if (erasedMs + SHORT_LIVED_MS <= cleanMs) return
  // Counted from the first erasure seen, so that later ones do not delay the rewrite.
  const dueMs = known.dueMs || erasedMs + SHORT_LIVED_MS
  if (known.dueMs === 0) await rewrites.noteDue(dueMs)
  const begunMs = nowMs()
  // One that already runs may have begun before: only one that begins now counts.
  if (begunMs < dueMs || state.isRunning || !(await rewrites.takeTurn(REWRITES_APART_MS))) return
  if ((await rewrites.ask()) !== null) return rewrites.giveTurnBack()
  await rewrites.noteBegun({ begunMs, runId: state.runId })
}

/** All that was done before this instant, and is not short-lived, is out of the file. */
function cleanedMs({ begunMs, runId, cleanMs }: KnownRewrites, state: RewriteState): number {
  const hasEndedWell = state.runId === runId && !state.isRunning && state.isOk
  return hasEndedWell ? Math.max(cleanMs, begunMs) : cleanMs
}

/** The reads of the watch. Null for an external Redis, whose files belong to its operator. */
export function makeErasureLooks(
  { rewrites, readKeys }: { readonly rewrites: Rewrites | null; readonly readKeys: ReadKeys },
  nowMs: () => number,
): Omit<ErasureRewriteDeps, 'log'> | null {
  if (rewrites === null) return null
  const shards = Array.from({ length: SHARDS }, (_, shard) => shard)
  return { rewrites, lastErasedMs: () => readLastErasedMs(readKeys, shards), nowMs }
}
