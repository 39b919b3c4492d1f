/** condition - what the store says of itself: its settings, its figures, its clock */
import type { Durability } from '../../cluster/embedded/binary.ts'
import { checkSettings } from '../../cluster/redis/settings.ts'
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
