/** dead-claims - which claims of a shard its new owner may free. */

import { type ItemContext, parseClaim, type StandingClaim } from './claim.ts'

/** Items that one command frees. */
const CHUNK = 500
/**
 * How long a freed item waits, by the claims that it has had without an outcome. The first are due at once. Later a
 * process that is killed again and again must not use up an item's last claims, nor must an item that kills it return
 * at once.
 */
const FREED_AFTER_MS = [0, 0, 0, 20_000, 60_000, 300_000] as const

/** An item whose claim is freed, and when it is due again. */
export interface FreedItem {
  readonly lane: string
  readonly item: string
  /** The worker that had claimed it. */
  readonly worker: string
  readonly afterMs: number
}

/**
 * Items of `rows` (the hash `claims`) whose worker is dead and whose lane frees such claims, in chunks. A claim of a
 * living worker lasts until its end, and so does every claim in a lane with `claimsStand`.
 */
export function deadClaims(
  rows: ReadonlyMap<string, string>,
  { worker, runner, isGone }: Pick<ItemContext, 'worker' | 'runner'> & { isGone(worker: string): boolean },
): FreedItem[][] {
  const items: FreedItem[] = []
  for (const [item, packed] of rows) {
    const row = parseClaim(packed)
    if (row === null || row.worker === '' || row.worker === worker || !isGone(row.worker)) continue
    if (runner.typeOf(row.lane)?.claimsStand !== false) continue
    const afterMs = FREED_AFTER_MS[Math.min(row.claims, FREED_AFTER_MS.length - 1)] ?? 0
    items.push({ lane: row.lane, item, worker: row.worker, afterMs })
  }
  const chunks: FreedItem[][] = []
  for (let i = 0; i < items.length; i += CHUNK) chunks.push(items.slice(i, i + CHUNK))
  return chunks
}

/**
 * Serial lanes held by claims of other workers, with all these claims: those of living workers and, because they last,
 * those of dead ones.
 */
export function standingClaims(
  rows: ReadonlyMap<string, string>,
  { worker, runner }: Pick<ItemContext, 'worker' | 'runner'>,
): Map<string, StandingClaim[]> {
  const found = new Map<string, StandingClaim[]>()
  for (const [item, packed] of rows) {
    const row = parseClaim(packed)
    if (row === null || row.worker === '' || row.worker === worker) continue
    const { lane, attempt, untilMs } = row
    if (runner.typeOf(lane)?.serial !== true) continue
    const held = found.get(lane)
    if (held === undefined) found.set(lane, [{ item, attempt, untilMs }])
    else held.push({ item, attempt, untilMs })
  }
  return found
}
