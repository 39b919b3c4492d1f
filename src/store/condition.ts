/**
 * condition - what the store says of itself, its settings, its figures, its clock, and of the processes that run on it
 *
 * Key: `{cl}:workers`
 */

import type { Durability } from '../../cluster/embedded/binary.ts'
import { WORKERS_KEY } from '../../cluster/keyspace.ts'
import { checkSettings } from '../../cluster/redis/settings.ts'
import type { WorkerRecord } from '../../cluster/store.ts'
import { readTimeMs } from './direct.ts'
import type { Nodes } from './nodes.ts'

/** Asked of the store at each call; a call rejects when it does not answer. */
export interface StoreCondition {
  /** Why it breaks its durability level; null where it does not. */
  refusal(): Promise<string | null>
  /** What INFO says. */
  info(): Promise<string>
  /** Its clock, milliseconds. */
  timeMs(): Promise<number>
}

/** Any shard's clock is the store's. */
const CLOCK_SHARD = 0

/** Makes the questions. */
export function makeStoreCondition(nodes: Nodes, durability: Durability): StoreCondition {
  return {
    refusal: () =>
      checkSettings(nodes.common(), durability).then(
        () => null,
        (error: Error) => error.message,
      ),
    info: () => nodes.common().info(),
    timeMs: () => readTimeMs(nodes, CLOCK_SHARD),
  }
}

/** Names of what is run. In: ids of the workers that live. Throws what the store throws. */
export async function readLivingRoles(nodes: Nodes, living: readonly string[]): Promise<ReadonlySet<string>> {
  const texts = await nodes.common().hmget(WORKERS_KEY, ...living)
  const records = texts.flatMap((text) => (text === null ? [] : [JSON.parse(text) as WorkerRecord]))
  return new Set(records.flatMap(({ roles }) => roles))
}
