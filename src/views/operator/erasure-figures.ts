/**
 * erasure-figures - counts of erasures and of erased messages, for the shards that this process owns
 *
 * The counts are in the store and only grow, so a restart does not reset them; the owner of a shard reports that
 * shard's.
 *
 * Keys: `erased`
 *
 * Spec erasure.states
 */

import { erasedKey } from '../../state/keys.ts'
import type { ReadKeys } from '../read-keys.ts'
import { makeTtlCache } from '../ttl-cache.ts'

/** A look serves everybody who asks within this time. */
const FRESH_MS = 3_000

export interface ErasureFigureDeps {
  readonly readKeys: ReadKeys
  /** The store's time in ms. */
  readonly nowMs: () => number
  /** The shards owned by this process. */
  readonly shards: () => readonly number[]
}

/** Figures by name. */
export type ErasureFigures = () => Promise<Readonly<Record<string, number>>>

/** Makes the reader, which reads at most every three seconds; while the store is unavailable the last result stays. */
export function makeErasureFigures({ readKeys, nowMs, shards }: ErasureFigureDeps): ErasureFigures {
  const look = async () => {
    const keys = shards().map((shard) => ({ shard, key: erasedKey(shard) }))
    const rows = await readKeys('hgetall', keys)
    return rows === null ? null : sumFigures(rows)
  }
  return makeTtlCache({ first: sumFigures([]), freshMs: FRESH_MS, nowMs, look })
}

function sumFigures(rows: readonly Readonly<Record<string, string>>[]): Readonly<Record<string, number>> {
  const sum = (field: string) => rows.reduce((total, row) => total + Number(row[field] ?? 0), 0)
  const [ordered, done] = [sum('ordered'), sum('done')]
  return {
    erasuresPending: ordered - done,
    erasuresDone: done,
    erasedMessages: sum('messages'),
    erasedReceivedMessages: sum('received'),
  }
}

/** When the last erasure was done, in the store's ms; 0 if there was none. Null when the store did not answer. */
export async function readLastErasedMs(readKeys: ReadKeys, shards: readonly number[]): Promise<number | null> {
  const keys = shards.map((shard) => ({ shard, key: erasedKey(shard), args: ['ms'] }))
  const found = await readKeys('hget', keys)
  return found === null ? null : found.reduce((latest, ms) => Math.max(latest, Number(ms ?? 0)), 0)
}
