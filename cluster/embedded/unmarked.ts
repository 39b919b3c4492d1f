/**
 * unmarked - the state of a store that was started without its mark (store-mark.ts): nothing states how long its files
 * were, so a missing end looks like an earlier state
 *
 * What can be compared is compared and logged: the time of the newest commit, for the operator to compare with the
 * last accepted mail, and shards whose journal and sequence number differ.
 *
 * Keys: `meta`, `journal` of every shard
 */
import type { Redis } from 'ioredis'
import { SHARDS } from '../id.ts'
import { journalKey, metaKey } from '../keyspace.ts'

/** Facts for the log. */
export interface Unmarked {
  /** ISO time of the newest commit of all shards; null if there is none. */
  readonly newestCommitAt: string | null
  readonly commits: number
  readonly tornShards: readonly number[]
}

/** Reads the state of every shard. Rejects if the store does not answer. */
export async function readUnmarked(redis: Redis): Promise<Unmarked> {
  const pipeline = redis.pipeline()
  for (let shard = 0; shard < SHARDS; shard += 1)
    pipeline.hmget(metaKey(shard), 'seq', 'now').xrevrange(journalKey(shard), '+', '-', 'COUNT', 1)
  const answers = ((await pipeline.exec()) ?? []).map(([, value]) => value)
  let [newestMs, commits] = [0, 0]
  const tornShards: number[] = []
  for (let shard = 0; shard < SHARDS; shard += 1) {
    const [seq, nowMs] = answers[2 * shard] as [string | null, string | null]
    const [top] = answers[2 * shard + 1] as [id: string, fields: string[]][]
    newestMs = Math.max(newestMs, Number(nowMs ?? 0))
    commits += Number(seq ?? 0)
    if (`${seq ?? 0}-0` !== (top?.[0] ?? '0-0')) tornShards.push(shard)
  }
  return { newestCommitAt: newestMs === 0 ? null : new Date(newestMs).toISOString(), commits, tornShards }
}
