/**
 * sts-policies - MTA-STS policies that were fetched, kept for all processes
 *
 * Strangers publish policies, with an age of up to a year: at most 8,192 of up to 2 KB are kept and 128 larger ones of
 * up to 32 KB, 20 MiB in all. The least recently used one of its size is removed first.
 *
 * Keys: `{s000}:sts:<domain>` string, a policy with its own expiry; `{s000}:sts-small`, `{s000}:sts-large` sorted sets,
 * domain -> ms of its last use. They belong to no shard: they are copies of what domains publish, and every process may
 * write them.
 */

import { shardTag } from '../../cluster/keyspace.ts'
import type { PolicyStore } from '../dns/sts.ts'
import type { Nodes } from './nodes.ts'

/** Policies belong to no shard: their tag stores them with the keys of one shard. */
const STS_SHARD = 0
/** A policy with 30 hosts has some 1,000 bytes. */
const SMALL_BYTES_MAX = 2_048
const LARGE_BYTES_MAX = 32_768
const SMALL_MAX = 8_192
const LARGE_MAX = 128
/** Entries that one write removes beyond the bound: others may have written at the same time. */
const REMOVED_MAX = 100

export interface PolicyBounds {
  readonly smallMax: number
  readonly largeMax: number
}

/** Makes the store of policies. Its methods reject if Redis does not answer. */
export function makePolicyStore(
  nodes: Nodes,
  { smallMax, largeMax }: PolicyBounds = { smallMax: SMALL_MAX, largeMax: LARGE_MAX },
): PolicyStore {
  const tag = shardTag(STS_SHARD)
  const keyOf = (domain: string) => `${tag}:sts:${domain}`
  const lists = { small: `${tag}:sts-small`, large: `${tag}:sts-large` }
  const listOf = (text: string) =>
    Buffer.byteLength(text) > SMALL_BYTES_MAX
      ? { key: lists.large, other: lists.small, max: largeMax }
      : { key: lists.small, other: lists.large, max: smallMax }

  return {
    async read(domain) {
      const node = nodes.nodeOf(STS_SHARD)
      const text = await node.get(keyOf(domain))
      if (text !== null) await node.zadd(listOf(text).key, Date.now(), domain)
      return text
    },
    async write(domain, text, untilMs) {
      if (Buffer.byteLength(text) > LARGE_BYTES_MAX) return
      const node = nodes.nodeOf(STS_SHARD)
      const { key, other, max } = listOf(text)
      // The list first: a policy outside the lists would be kept beyond the bounds.
      await node.multi().zrem(other, domain).zadd(key, Date.now(), domain).exec()
      await node.set(keyOf(domain), text, 'PXAT', untilMs)
      const excess = (await node.zcard(key)) - max
      if (excess <= 0) return
      const removed = await node.zrange(key, 0, Math.min(excess, REMOVED_MAX) - 1)
      // The policies first, for the same reason.
      await node.multi().del(removed.map(keyOf)).zrem(key, removed).exec()
    },
  }
}
