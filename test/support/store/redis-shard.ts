/** redis-shard - a Redis, a store over it and an owned shard, for the tests of the store */
import type { Test } from 'tap'
import type { Op } from '../../../cluster/behaviour.ts'
import { claimsKey } from '../../../cluster/keyspace.ts'
import { connectRedisStore, type RedisStore, type RedisStoreOptions } from '../../../cluster/redis/store.ts'
import type { Commit, WorkerRecord } from '../../../cluster/store.ts'
import { startRedis, type TestRedis } from './redis.ts'

export const TOKEN = '1:a'
export const RECORD: WorkerRecord = {
  beats: 1,
  host: 'h',
  bootId: 'b',
  pidNamespace: 'n',
  pid: 1,
  startTime: '1',
  clientId: 1,
  runId: 'r',
  takesShards: true,
  isLeaving: false,
  roles: ['actors'],
}

/** A Redis that ends with the test. */
export async function openRedis(test: Test, settings: Record<string, string> = {}): Promise<TestRedis> {
  const redis = await startRedis({ durability: 'memory', settings })
  test.teardown(() => redis.stop())
  return redis
}

/** A store that ends with the test. */
export async function openStore(
  test: Test,
  address: string,
  more: Partial<RedisStoreOptions> = {},
): Promise<RedisStore> {
  const store = await connectRedisStore({ address, durability: 'memory', ...more })
  test.teardown(() => store.close())
  return store
}

/** A shard of `store` that is held under TOKEN. */
export async function held(store: RedisStore, shard: number): Promise<number> {
  await store.acquire({ shard, sawToken: '', newToken: TOKEN, worker: 'w' })
  return shard
}

/** A commit of one write, valid as the `seq`-th unless `more` changes it. */
export function commitOf(shard: number, seq: number, more: Partial<Commit> = {}): Commit {
  const empty = { deadlineMs: 0, lid: '', firstEntryId: '', cursor: '', outcomesCursor: '', frees: false, note: 'n' }
  return {
    shard,
    token: TOKEN,
    seq,
    commitId: `${TOKEN}:${seq}`,
    nowMs: Date.now(),
    ops: [set(shard, seq)],
    ...empty,
    ...more,
  }
}

/** The write of a number that every commit makes. */
export function set(shard: number, value: number): Op {
  return { key: claimsKey(shard), write: 'HSET', args: ['field', String(value)] }
}
