/**
 * tries - exact counts of tries in the last fifteen minutes.
 *
 * Key: `tries:<what>.<a or c>.<HMAC>`, of an address or a client, `tries:<what>.d.<deviceId>` and
 * `tries:<what>.u.<userId>` zset, a try by its instant; older tries are removed with the next try, the key with the
 * last one. All counts of one address, client, device or user are on one shard.
 *
 * Spec session.limits
 */

import type { Fact, Op } from '../../../cluster/behaviour.ts'
import { TRIES_MINUTES } from '../../../schemas/limits.ts'
import { MINUTE_MS } from '../calendar.ts'
import { triesKey } from './places.ts'

const WINDOW_MS = TRIES_MINUTES * MINUTE_MS
/** A set has the tries within its limit, and those not cleared yet. */
const READ_MAX = 1_000

/** The read that counting needs. */
export function triesFact(shard: number, name: string): Fact & { read: 'sorted' } {
  return { read: 'sorted', key: triesKey(shard, name), min: 0, max: Number.MAX_SAFE_INTEGER, count: READ_MAX }
}

/** Whether one more is allowed, otherwise when the next is. Takes the tries with their instants. */
export function judgeTries(
  tries: readonly (readonly [string, number])[],
  { max, nowMs }: { readonly max: number; readonly nowMs: number },
): { readonly resetsAtMs: number | null; readonly past: readonly string[] } {
  const fresh = tries.filter(([, atMs]) => atMs > nowMs - WINDOW_MS).map(([, atMs]) => atMs)
  const past = tries.filter(([, atMs]) => atMs <= nowMs - WINDOW_MS).map(([member]) => member)
  // The next try is allowed once only max - 1 are left.
  const oldest = fresh.sort((one, other) => one - other)[fresh.length - max]
  return { resetsAtMs: oldest === undefined ? null : oldest + WINDOW_MS, past }
}

/** The writes of one try. `id` is unique. */
export function tryOps(shard: number, name: string, of: { id: string; nowMs: number; past: readonly string[] }): Op[] {
  const key = triesKey(shard, name)
  return [
    { key, write: 'ZADD', args: [String(of.nowMs), of.id] },
    ...(of.past.length === 0 ? [] : [{ key, write: 'ZREM' as const, args: of.past }]),
    { key, write: 'PEXPIREAT', args: [String(of.nowMs + WINDOW_MS)] },
  ]
}
