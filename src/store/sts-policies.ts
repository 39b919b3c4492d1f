/**
 * sts-policies - MTA-STS policies that were fetched, kept for all processes
 *
 * Key: `{s000}:sts:<domain>` string, a policy with its own expiry. It belongs to no shard: it is a copy of what the
 * domain publishes, and every process may write it.
 */

import { shardTag } from '../../cluster/keyspace.ts'
import type { PolicyStore } from '../dns/sts.ts'
import type { Nodes } from './nodes.ts'

/** Policies are nobody's: their tag keeps them with the keys of one shard, whatever asks for them. */
const STS_SHARD = 0

/** Makes the store of policies. It rejects when Redis does not answer. */
export function makePolicyStore(nodes: Nodes): PolicyStore {
  const keyOf = (domain: string) => `${shardTag(STS_SHARD)}:sts:${domain}`
  return {
    read: (domain) => nodes.nodeOf(STS_SHARD).get(keyOf(domain)),
    async write(domain, text, untilMs) {
      await nodes.nodeOf(STS_SHARD).set(keyOf(domain), text, 'PXAT', untilMs)
    },
  }
}
