/**
 * known-keys - what this process knows of keys because it wrote them itself: their type and, of streams, the last id.
 *
 * The commit script looks at the type of every key and at the last id of every stream before it writes, which is a third
 * of its work. The owner of a shard is the only one who writes it, so what the last confirmed commits made still holds.
 * Whatever is not certain (another verdict, an id that does not rise, a key not seen yet) is left to the script.
 */
import type { Op } from './behaviour.ts'
import { sortableEntryId } from './id.ts'

/** Keys of one shard that are remembered. */
const KEYS_MAX = 512

const HASH = 'h'
const SORTED = 'z'
const UNSURE = '-'

export class KnownKeys {
  /** Shard -> key -> its type's letter, or the last id of a stream (sortable). */
  private readonly shards = new Map<number, Map<string, string>>()

  /** A letter for each key: what the script need not look at. `ids` are those that a commit adds to streams, in order. */
  lettersOf(shard: number, keys: readonly string[], firstIds: ReadonlyMap<string, string>): string {
    const known = this.shards.get(shard)
    if (known === undefined) return ''
    let letters = ''
    for (const key of keys) letters += letterOf(known.get(key), firstIds.get(key))
    return letters
  }

  /** A commit was confirmed. */
  note(shard: number, ops: readonly Op[], seq: number): void {
    let known = this.shards.get(shard)
    if (known === undefined) {
      known = new Map()
      this.shards.set(shard, known)
    }
    for (const { key, write, args } of ops) {
      if (write === 'HSET') known.set(key, HASH)
      else if (write === 'ZADD' && args[0] !== 'XX') known.set(key, SORTED)
      else if (write === 'XADD') known.set(key, sortableOf(args[0], seq))
      else if (write === 'UNLINK' || write === 'SET' || write === 'PEXPIREAT') known.delete(key)
    }
    for (const key of known.keys()) {
      if (known.size <= KEYS_MAX) return
      known.delete(key)
    }
  }

  /** Nothing of a shard is certain any more. */
  forget(shard: number): void {
    this.shards.delete(shard)
  }
}

/** First ids that a commit adds, by stream; sortable. */
export function firstIdsOf(ops: readonly Op[], seq: number): ReadonlyMap<string, string> {
  const ids = new Map<string, string>()
  for (const { key, write, args } of ops)
    if (write === 'XADD' && !ids.has(key)) ids.set(key, sortableOf(args[0], seq))
  return ids
}

function letterOf(known: string | undefined, firstId: string | undefined): string {
  if (known === undefined) return UNSURE
  if (known === HASH || known === SORTED) return known
  return firstId === undefined || firstId > known ? 's' : UNSURE
}

/** `*seq` is the commit's own number; a later one in the same commit only rises. */
function sortableOf(id: string | Uint8Array | undefined, seq: number): string {
  if (typeof id !== 'string' || !id.includes('-')) return id === '*seq' ? sortableEntryId(`${seq + 1}-0`) : '~'
  return sortableEntryId(id)
}
