/**
 * erasure-rewrite - has our own Redis write its append-only file anew once an erasure is done: the file holds what was
 * written before, until then
 *
 * States: nothing to do -> an erasure was done -> a rewrite was asked for, some minutes later -> it has ended well.
 * What is short-lived is gone by then: the words of commands between processes, content that no message claimed. A
 * rewrite that was refused, that failed, or whose Redis was restarted, is asked for again.
 *
 * Guarantees: at most one in ten minutes; what was done before a start is seen after it, and written once more.
 *
 * Spec erasure.files
 */

import type { ClusterLog } from '../../cluster/cluster-log.ts'
import { SHARDS } from '../../cluster/id.ts'
import type { OpenStore, RewriteState } from '../store/open-store.ts'
import { readLastErasedMs } from '../views/operator/erasure-figures.ts'
import type { ReadKeys } from '../views/read-keys.ts'

const LOOK_MS = 60_000
/** Nothing that is short-lived stays longer than this after it was written. */
const SHORT_LIVED_MS = 3 * 60_000
const REWRITES_APART_MS = 10 * 60_000

export interface ErasureRewriteDeps {
  /** When an erasure was done last, by the store's clock; 0: none was; null: the store did not answer. */
  readonly lastErasedMs: () => Promise<number | null>
  /** Asks for a rewrite; answers why it was refused, null where it was not. */
  readonly rewriteFile: () => Promise<string | null>
  /** Null: the store did not answer. */
  readonly rewriteState: () => Promise<RewriteState | null>
  readonly log: Pick<ClusterLog, 'info'>
  /** The store's clock, ms. */
  readonly nowMs: () => number
}

/** Looks by the clock; out: what ends it. */
export function watchErasures(deps: ErasureRewriteDeps): () => void {
  const look = makeRewriteLook(deps)
  const timer = setInterval(() => void look().catch(() => undefined), LOOK_MS).unref()
  return () => clearInterval(timer)
}

/** One look. */
export function makeRewriteLook(deps: ErasureRewriteDeps): () => Promise<void> {
  const { lastErasedMs, rewriteFile, rewriteState, log, nowMs } = deps
  /** When the rewrite was begun that is under way, and by which Redis. */
  let begun: { readonly atMs: number; readonly runId: string } | null = null
  let askedMs = Number.NEGATIVE_INFINITY
  /** All that was done before this, and is not short-lived, is out of the file. */
  let cleanMs = 0
  const settle = ({ runId, isRunning, isOk }: RewriteState): void => {
    if (begun === null || (isRunning && runId === begun.runId)) return
    if (runId === begun.runId && isOk) {
      cleanMs = begun.atMs
      log.info({}, 'The append-only file was written anew: what was erased is in it no more')
    }
    begun = null
  }
  return async function look() {
    const erasedMs = await lastErasedMs()
    if (erasedMs === null || erasedMs === 0) return
    const state = await rewriteState()
    if (state === null) return
    settle(state)
    const now = nowMs()
    const isClean = erasedMs + SHORT_LIVED_MS <= cleanMs
    const isEarly = now < erasedMs + SHORT_LIVED_MS || now - askedMs < REWRITES_APART_MS
    if (isClean || isEarly || begun !== null || state.isRunning) return
    // One that already runs may have begun before: only one of our own counts.
    if ((await rewriteFile()) !== null) return
    askedMs = now
    begun = { atMs: now, runId: state.runId }
  }
}

/** What the watch asks of a store. Null where the Redis is another's: its files are its operator's. */
export function makeErasureLooks(
  store: Pick<OpenStore, 'rewriteFile' | 'rewriteState'> & { readonly readKeys: ReadKeys },
  nowMs: () => number,
): Omit<ErasureRewriteDeps, 'log'> | null {
  const { rewriteFile, rewriteState, readKeys } = store
  const shards = Array.from({ length: SHARDS }, (_, shard) => shard)
  const lastErasedMs = () => readLastErasedMs(readKeys, shards)
  return rewriteFile === null ? null : { rewriteFile, rewriteState, lastErasedMs, nowMs }
}
