/**
 * nodes - the door to Redis past the runtime: which Redis holds the keys of a shard
 *
 * Anyone who asks names the shard, also if one Redis holds everything. With several of them no one else has to know
 * which one answers.
 */

import type { Redis } from 'ioredis'

/** The Redis of each shard. A client is the one of the moment: ask again for each request. */
export interface Nodes {
  /** The Redis that holds the keys of a shard. */
  nodeOf(shard: number): Redis
  /** The Redis of everything that belongs to no shard: keys with the tag `{cl}`. */
  common(): Redis
}

/** One Redis for everything. Takes its client at the moment of each request. */
export function oneNode(client: () => Redis): Nodes {
  return { nodeOf: client, common: client }
}
