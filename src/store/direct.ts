/**
 * direct - rows of one shard, read and written beside its owner
 *
 * Only for rows that no state holds and no turn reads, such as the keys of operators: what an actor decides on is
 * written by its shard's owner alone.
 */

import type { Op } from '../../cluster/behaviour.ts'
import type { Nodes } from './nodes.ts'

/** The store's clock, milliseconds. Rejects when it does not answer. */
export async function readTimeMs(nodes: Nodes, shard: number): Promise<number> {
  const [seconds, micros] = await nodes.nodeOf(shard).time()
  return Number(seconds) * 1000 + Number(micros) / 1000
}

/** A whole hash, empty where there is none. Rejects when the store does not answer. */
export function readRow(nodes: Nodes, shard: number, key: string): Promise<Record<string, string>> {
  return nodes.nodeOf(shard).hgetall(key)
}

/**
 * Writes all of it in one transaction. Throws Error, which says what `name` was refused, where the store takes not all.
 */
export async function writeRows(
  nodes: Nodes,
  shard: number,
  { name, ops }: { readonly name: string; readonly ops: readonly Op[] },
): Promise<void> {
  const transaction = nodes.nodeOf(shard).multi()
  for (const { key, write, args } of ops) transaction.call(write, key, ...(args as string[]))
  const answers = await transaction.exec()
  const failed = answers?.find(([error]) => error !== null)?.[0] ?? null
  if (answers === null || failed !== null)
    throw new Error(`The store refused the ${name}: ${failed?.message ?? 'no answer'}`)
}
