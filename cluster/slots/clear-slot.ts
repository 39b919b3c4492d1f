/**
 * clear-slot - removes keys of a slot that another node holds from memory, files and replicas: copies of interrupted
 * moves, and the source of a move
 *
 * In Redis 7.0 a node that learns of another holder of its slot removes the keys only from its memory, and the
 * deletions reach neither its file nor its replicas. So every name that a replica still has is written once more by
 * its primary, and removed.
 */
import type { Redis } from 'ioredis'
import { copyKey, metaKey } from '../keyspace.ts'
import { asking } from './asking.ts'
import { type MoveEnd, readKeys } from './copy-keys.ts'
import { parseMove } from './move-fence.ts'

/** ARGV: names. All are removed, also at replicas that have keys which this node does not. */
export const CLEAR = `#!lua flags=allow-oom
for i = 1, #ARGV do
  if redis.call('UNLINK', ARGV[i]) == 0 then
    redis.call('SET', ARGV[i], '')
    redis.call('UNLINK', ARGV[i])
  end
end
return 1
`
const REMOVED_AT_ONCE = 2_000
/** Keys that are volatile may come while others go. */
const ROUNDS_MAX = 3

/** A replica with a connection to it. */
export interface Follower extends MoveEnd {
  /** Id of its primary. */
  readonly primary: string
}

/** Which slot, who holds it, and all nodes that answer. */
export interface Clearing {
  readonly shard: number
  readonly slot: number
  readonly holder: MoveEnd
  /** The holder among them. */
  readonly primaries: readonly MoveEnd[]
  readonly replicas: readonly Follower[]
  /** Ids of all nodes of the cluster, including those that do not answer. */
  readonly ids: ReadonlySet<string>
  /** Throws if another order may have taken over. */
  mustHold(): void
}

/**
 * Removes it everywhere but at the holder. In: ids of nodes that the slot came from; their keys are old, and still in
 * their files even if gone from memory. Returns the ids of nodes that could not be cleared, because they do not
 * answer, or accept no writes. Throws Error, a sentence, at a node that has keys which no move has left.
 */
export async function clearOthers(clearing: Clearing, sources: readonly string[] = []): Promise<string[]> {
  const { holder, ids, primaries, replicas } = clearing
  const isCopied = (await holder.client.exists(copyKey(clearing.shard))) === 1
  const left: string[] = []
  for (const end of primaries) {
    if (end.id === holder.id) continue
    clearing.mustHold()
    const isOld = isCopied || sources.includes(end.id)
    if (!(await clearAt(clearing, end, { isOld, isSource: sources.includes(end.id) }))) left.push(end.id)
  }
  // One that has become a replica has taken everything again; one that has left the cluster is ignored.
  const there = new Set([...primaries, ...replicas].map(({ id }) => id))
  return [...left, ...sources.filter((id) => ids.has(id) && !there.has(id))]
}

/** Returns whether the node has no key of the slot left. */
async function clearAt(
  clearing: Clearing,
  end: MoveEnd,
  { isOld, isSource }: { readonly isOld: boolean; readonly isSource: boolean },
): Promise<boolean> {
  const { holder, shard, slot } = clearing
  const { client, name } = end
  const isOpen = String(await client.call('CLUSTER', 'NODES')).includes(`[${slot}-<-`)
  const count = Number(await client.call('CLUSTER', 'COUNTKEYSINSLOT', slot))
  // The keys of the source leave its file too; only the holder knows their names.
  const followers = followersOf(clearing, end)
  const names = await namesAtAll(isSource ? [end, holder, ...followers] : [end, ...followers], slot)
  if (names.length === 0 && !isOpen) return true
  // It gets no updates about a slot that it imports. The former holder may have become a replica, and then no node has
  // the slot.
  if (isOpen) await client.call('CLUSTER', 'SETSLOT', slot, 'NODE', holder.id)
  await client.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', holder.id)
  if (count > 0 && !isOld && !(await isCopy(client, shard))) {
    if (!isOpen) await client.call('CLUSTER', 'SETSLOT', slot, 'STABLE')
    throw new Error(`${name} has keys of shard ${shard} that no move left there: inspect them; they were not changed`)
  }
  try {
    await clear(clearing, end, names)
    for (let round = 1; round < ROUNDS_MAX; round += 1) {
      const more = await namesAtAll([end], slot)
      if (more.length === 0) break
      await clear(clearing, end, more)
    }
  } catch (error) {
    // It accepts no writes, like a primary without its replicas, so its keys are old, and stay until it does.
    if (!/^(?:NOREPLICAS|MISCONF|READONLY|OOM)/.test((error as Error).message)) throw error
    return false
  }
  await client.call('CLUSTER', 'SETSLOT', slot, 'STABLE')
  return true
}

function followersOf({ replicas }: Clearing, { id }: MoveEnd): Follower[] {
  return replicas.filter(({ primary }) => primary === id)
}

/**
 * Names of keys of a slot that any of these nodes has, each once. A node that ends in the meantime contributes none.
 */
async function namesAtAll(ends: readonly MoveEnd[], slot: number): Promise<Buffer[]> {
  const lists = await Promise.all(ends.map(({ client }) => readKeys(client, slot)))
  const found = new Map(lists.flat().map((name) => [name.toString('latin1'), name]))
  return [...found.values()]
}

/** `meta` and `copy` identify the other keys, so they are removed last. */
async function clear({ shard, mustHold }: Clearing, { client }: MoveEnd, names: readonly Buffer[]): Promise<void> {
  const last = [metaKey(shard), copyKey(shard)]
  const others = names.filter((name) => !last.includes(String(name)))
  for (let from = 0; from < others.length; from += REMOVED_AT_ONCE) {
    mustHold()
    await asking(client, [['EVAL', CLEAR, '0', ...others.slice(from, from + REMOVED_AT_ONCE)]])
  }
  for (const name of last) await asking(client, [['EVAL', CLEAR, '0', name]])
}

/** Whether a node's keys of a shard were copied by a move. */
async function isCopy(client: Redis, shard: number): Promise<boolean> {
  const [isMarked, owner] = await asking(client, [
    ['EXISTS', copyKey(shard)],
    ['HGET', metaKey(shard), 'owner'],
  ])
  return isMarked === 1 || parseMove(String(owner ?? '')) !== null
}

/** Removes keys of a slot that a node takes in. */
export async function remove(client: Redis, names: readonly Buffer[]): Promise<void> {
  for (let from = 0; from < names.length; from += REMOVED_AT_ONCE)
    await asking(
      client,
      names.slice(from, from + REMOVED_AT_ONCE).map((name) => ['UNLINK', name]),
    )
}
