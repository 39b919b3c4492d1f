/**
 * nodes - the door to Redis past the runtime: which Redis holds the keys of a shard
 *
 * Whoever asks names the shard, also where one Redis holds everything: with several of them nobody else has to know
 * which one answers.
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
