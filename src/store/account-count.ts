/**
 * account-count - how many accounts each shard holds: where the next one goes follows from it
 *
 * Keys: `accounts` of every shard
 */

import type { Redis } from 'ioredis'
import { SHARDS } from '../../cluster/id.ts'
import { accountsKey } from '../state/keys.ts'

/** Accounts by shard; null when the store did not answer. */
export async function countAccounts(redis: Redis): Promise<readonly number[] | null> {
  const pipeline = redis.pipeline()
  for (let shard = 0; shard < SHARDS; shard++) pipeline.zcard(accountsKey(shard))
  const counts = await pipeline.exec().catch(() => null)
  if (counts === null || counts.some(([error]) => error !== null)) return null
  return counts.map(([, count]) => Number(count))
}
