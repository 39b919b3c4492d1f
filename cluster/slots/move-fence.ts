/**
 * move-fence - blocks all writes to a shard that is being moved to another primary
 *
 * The fence is the owner in the shard's `meta`, `move:<source>:<target>` with the ids of both nodes, under its own
 * token. It is replicated and copied like any key, so a successor of either node has it. It never expires. Commits of
 * the previous owner fail by their token, no process takes the shard, no outcome is handed in.
 */
import type { Redis } from 'ioredis'
import { copyKey, fencedKey, metaKey, RELEASED_CHANNEL } from '../keyspace.ts'
import { MOVE_PREFIX } from '../store.ts'

/** How long the state left by the previous owner can be requested. */
const FENCED_MS = 3_600_000

/** KEYS: meta, fenced of the seen token. ARGV: seen token, new token, owner. Answers 1 when it is done. */
export const TAKE = `#!lua flags=allow-oom
local meta = redis.call('HMGET', KEYS[1], 'tok', 'seq', 'last')
if (meta[1] or '') ~= ARGV[1] then return 0 end
local seq = meta[2] or '0'
if ARGV[1] ~= '' then redis.call('SET', KEYS[2], seq .. ' ' .. (meta[3] or ''), 'PX', ${FENCED_MS}) end
redis.call('HSET', KEYS[1], 'owner', ARGV[3], 'tok', ARGV[2], 'seq', seq)
return 1
`

/**
 * KEYS: meta, copy. ARGV: token, channel of workers that take shards, number of this shard, ids of nodes that still
 * have to be cleared. Answers 1 when it is done.
 */
export const FREE = `#!lua flags=allow-oom
if redis.call('HGET', KEYS[1], 'tok') ~= ARGV[1] then return 0 end
redis.call('UNLINK', KEYS[2])
local time = redis.call('TIME')
local ms = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', KEYS[1], 'owner', '', 'freed', string.format('%.0f', ms))
if ARGV[4] == '' then redis.call('HDEL', KEYS[1], 'uncleared') else redis.call('HSET', KEYS[1], 'uncleared', ARGV[4]) end
redis.pcall('PUBLISH', ARGV[2], ARGV[3])
return 1
`

/** Owner and token of a shard; '' for none. */
export interface FenceHolder {
  readonly owner: string
  readonly token: string
  /** Ids of nodes that were unreachable when the shard left them, whose files still have it. */
  readonly uncleared: readonly string[]
}

/** The ids of both nodes of a move. */
export interface MoveEnds {
  readonly source: string
  readonly target: string
}

/** Reads the owner of a shard from the node that stores it. */
export async function readHolder(client: Redis, shard: number): Promise<FenceHolder> {
  const [owner, token, uncleared] = await client.hmget(metaKey(shard), 'owner', 'tok', 'uncleared')
  return { owner: owner ?? '', token: token ?? '', uncleared: parseIds(uncleared) }
}

/** Ids of nodes, as `meta` has them. */
export function parseIds(packed: string | null | undefined): string[] {
  return (packed ?? '').split(',').filter((id) => id !== '')
}

/** Records the nodes that still have to be cleared, of a shard that is not being moved. */
export async function noteUncleared(client: Redis, shard: number, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) await client.hdel(metaKey(shard), 'uncleared')
  else await client.hset(metaKey(shard), 'uncleared', ids.join(','))
}

/** The move that an owner represents; null for a worker or no owner. */
export function parseMove(owner: string): MoveEnds | null {
  if (!owner.startsWith(MOVE_PREFIX)) return null
  const [source = '', target = ''] = owner.slice(MOVE_PREFIX.length).split(':')
  return { source, target }
}

/**
 * Takes the shard from the owner with the token `saw`, also from another move. Returns the new token; null if another
 * was quicker.
 */
export async function takeFence(
  client: Redis,
  shard: number,
  { saw, nonce, ends }: { readonly saw: string; readonly nonce: string; readonly ends: MoveEnds },
): Promise<string | null> {
  const token = `${Number(saw.split(':')[0]) + 1}:${nonce}`
  const owner = `${MOVE_PREFIX}${ends.source}:${ends.target}`
  const taken = await client.eval(TAKE, 2, metaKey(shard), fencedKey(shard, saw), saw, token, owner)
  return taken === 1 ? token : null
}

/**
 * Releases the shard and publishes that; records the nodes that still have to be cleared. False if another move has it.
 */
export async function freeFence(
  client: Redis,
  shard: number,
  { token, uncleared }: Pick<FenceHolder, 'token' | 'uncleared'>,
): Promise<boolean> {
  const args = [token, RELEASED_CHANNEL, String(shard), uncleared.join(',')]
  return (await client.eval(FREE, 2, metaKey(shard), copyKey(shard), ...args)) === 1
}
