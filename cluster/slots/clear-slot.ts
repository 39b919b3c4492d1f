/**
 * clear-slot - what nodes have of a slot that another one holds leaves their memory, their files and their replicas:
 * copies of moves that were cut off, and what was at the source of a move
 *
 * A node that hears that its slot has another holder removes the keys for itself alone, in Redis 7.0: neither its file
 * nor its replicas hear of it, nor later of the end of what is not there. So every name that a replica still has is
 * written once more by its primary, and removed.
 */
import type { Redis } from 'ioredis'
import { copyKey, metaKey } from '../keyspace.ts'
import { keysOf, type MoveEnd } from './copy-keys.ts'
import { moveOf } from './move-fence.ts'

/** ARGV: names. All of them are removed, also at who follows this node and has what it has not. */
const CLEAR = `#!lua flags=allow-oom
for i = 1, #ARGV do
  if redis.call('UNLINK', ARGV[i]) == 0 then
    redis.call('SET', ARGV[i], '')
    redis.call('UNLINK', ARGV[i])
  end
end
return 1
`
const REMOVED_AT_ONCE = 2_000
/** What is known to be gone a moment later has come meanwhile: no node takes part for a slot that it does not hold. */
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
}

/**
 * Removes it everywhere but at the holder. In: id of the node that the slot came from, '' where none is known; what it
 * has of the slot is old. Throws Error, a sentence, where keys lie that no move has left: nothing is touched then.
 */
export async function clearOthers(clearing: Clearing, source = ''): Promise<void> {
  const { holder, primaries, shard, slot } = clearing
  const isCopied = (await holder.client.exists(copyKey(shard))) === 1
  for (const end of primaries) {
    if (end.id === holder.id) continue
    const { client, name } = end
    const isOpen = String(await client.call('CLUSTER', 'NODES')).includes(`[${slot}-<-`)
    const count = Number(await client.call('CLUSTER', 'COUNTKEYSINSLOT', slot))
    // What the source had leaves its file too, and of that only the holder knows the names.
    const others = end.id === source ? [holder, ...followersOf(clearing, end)] : followersOf(clearing, end)
    const names = await namesAt([end, ...others], slot)
    if (names.length === 0 && !isOpen) continue
    await client.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', holder.id)
    if (count > 0 && !isCopied && end.id !== source && !(await isCopy(client, shard))) {
      if (!isOpen) await client.call('CLUSTER', 'SETSLOT', slot, 'STABLE')
      throw new Error(
        `${name} has keys of shard ${shard} that no move has left there: look at them, nothing is touched`,
      )
    }
    await clear(end, { shard, names })
    for (let round = 1; round < ROUNDS_MAX; round += 1) {
      const left = await namesAt([end], slot)
      if (left.length === 0) break
      await clear(end, { shard, names: left })
    }
    await client.call('CLUSTER', 'SETSLOT', slot, 'STABLE')
  }
}

function followersOf({ replicas }: Clearing, { id }: MoveEnd): Follower[] {
  return replicas.filter(({ primary }) => primary === id)
}

/** Names of keys of a slot that any of these nodes has, each once. One that ends meanwhile has none. */
async function namesAt(ends: readonly MoveEnd[], slot: number): Promise<Buffer[]> {
  const lists = await Promise.all(ends.map(({ client }) => keysOf(client, slot)))
  const found = new Map(lists.flat().map((name) => [name.toString('latin1'), name]))
  return [...found.values()]
}

/** `meta` and `copy` say of the others what they are: they go last. */
async function clear(
  { client }: MoveEnd,
  { shard, names }: { readonly shard: number; readonly names: readonly Buffer[] },
): Promise<void> {
  const last = [metaKey(shard), copyKey(shard)]
  const others = names.filter((name) => !last.includes(String(name)))
  for (let from = 0; from < others.length; from += REMOVED_AT_ONCE)
    await asking(client, [['EVAL', CLEAR, '0', ...others.slice(from, from + REMOVED_AT_ONCE)]])
  for (const name of last) await asking(client, [['EVAL', CLEAR, '0', name]])
}

/** Whether what a node has of a shard was copied by a move. */
async function isCopy(client: Redis, shard: number): Promise<boolean> {
  const [isMarked, owner] = await asking(client, [
    ['EXISTS', copyKey(shard)],
    ['HGET', metaKey(shard), 'owner'],
  ])
  return isMarked === 1 || moveOf(String(owner ?? '')) !== null
}

/** Removes keys of a slot that a node takes in. */
export async function remove(client: Redis, names: readonly Buffer[]): Promise<void> {
  for (let from = 0; from < names.length; from += REMOVED_AT_ONCE)
    await asking(
      client,
      names.slice(from, from + REMOVED_AT_ONCE).map((name) => ['UNLINK', name]),
    )
}

/** Commands for a slot that the node takes in. Out: answers. Throws the first error. */
export async function asking(client: Redis, commands: readonly (readonly (string | Buffer)[])[]): Promise<unknown[]> {
  const pipeline = client.pipeline()
  for (const [name = '', ...args] of commands) pipeline.call('ASKING').call(String(name), ...args)
  const answers = (await pipeline.exec()) ?? []
  const failed = answers.find(([error]) => error !== null)?.[0]
  if (failed) throw failed
  return answers.filter((_answer, at) => at % 2 === 1).map(([, value]) => value)
}
