/** dead-claims - which claims of a shard its new owner may free. */
import { parseClaim } from './item-turns.ts'
import type { ShardWorld } from './shard-world.ts'

/** Items that one command frees. */
const CHUNK = 500

/**
 * Items of `rows` (the hash `claims`) whose worker is no more and whose lane lets go of such claims, in chunks. A claim
 * of a living worker stands until its end, and so does every claim in a lane that says so.
 */
export function deadClaims(
  rows: ReadonlyMap<string, string>,
  { worker, pump, isDead }: Pick<ShardWorld, 'worker' | 'pump' | 'isDead'>,
): { lane: string; item: string }[][] {
  const items: { lane: string; item: string }[] = []
  for (const [item, packed] of rows) {
    const row = parseClaim(packed)
    if (row === null || row.worker === '' || row.worker === worker || !isDead(row.worker)) continue
    if (pump.typeOf(row.lane)?.claimsStand === false) items.push({ lane: row.lane, item })
  }
  const chunks: { lane: string; item: string }[][] = []
  for (let i = 0; i < items.length; i += CHUNK) chunks.push(items.slice(i, i + CHUNK))
  return chunks
}
