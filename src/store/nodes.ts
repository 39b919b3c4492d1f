/**
 * nodes - the door to Redis past the runtime: which Redis holds the keys of a shard
 *
 * Today one Redis holds everything. Whoever asks names the shard all the same: with several of them, this file says
 * which one answers, and nobody else has to know.
 */

import type { Redis } from 'ioredis'

/** The Redis of each shard. A client is the one of the moment: ask anew for each request. */
export interface Nodes {
  /** The Redis that holds the keys of a shard. */
  nodeOf(shard: number): Redis
  /** The Redis of what belongs to no shard: keys with the tag `{cl}`. */
  common(): Redis
}

/** One Redis for everything. In: its client at the moment of each request. */
export function oneNode(client: () => Redis): Nodes {
  return { nodeOf: client, common: client }
}
