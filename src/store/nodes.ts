/**
 * nodes - the door to Redis past the runtime: which Redis holds the keys of a shard
 *
 * Callers name the shard, even with a single Redis, so that only this module knows which of several Redis answers.
 */

import type { Redis } from 'ioredis'

/** The Redis of each shard. A client is valid now; get it again for each request. */
export interface Nodes {
  /** The Redis that holds the keys of a shard. */
  nodeOf(shard: number): Redis
  /** The Redis of keys outside any shard, with the tag `{cl}`. */
  common(): Redis
}

/** One Redis for everything. Takes a function that returns the current client. */
export function oneNode(client: () => Redis): Nodes {
  return { nodeOf: client, common: client }
}
