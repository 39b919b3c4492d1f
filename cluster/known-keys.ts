/**
 * known-keys - what this process knows of a shard's keys because it wrote them itself: their types, and the journal's end.
 *
 * The commit script looks at the journal, the type of every key and the last id of every stream before it writes, which
 * is a third of its work. The owner of a shard is the only one who writes it, so what his confirmed commits made still
 * stands. Entry ids rise by themselves where they are the commit's own number or at or above its first new id (the script
 * holds that one against `lid`). Whatever is not certain is left to the script: another id, a key not seen yet, anything
 * after a verdict other than `ok`.
 */
import type { Op } from './behaviour.ts'

/** Keys of one shard that are remembered. */
const KEYS_MAX = 512

const HASH = 'h'
const SORTED = 'z'
const STREAM = 's'
const UNSURE = '-'

export class KnownKeys {
  /** Shard -> key -> its type's letter. */
  private readonly shards = new Map<number, Map<string, string>>()

  /** Letters: `j` where the journal's end is certain, then one for each key. '' when nothing is. */
  lettersOf(
    shard: number,
    {
      keys,
      ops,
      seq,
      firstEntryId,
    }: { keys: readonly string[]; ops: readonly Op[]; seq: number; firstEntryId: string },
  ): string {
    const known = this.shards.get(shard)
    if (known === undefined) return ''
    for (const { key, write, args } of ops)
      if (write === 'XADD' && !rises(args[0], seq, firstEntryId)) known.delete(key)
    let letters = 'j'
    for (const key of keys) letters += known.get(key) ?? UNSURE
    return letters
  }

  /** A commit was confirmed. */
  note(shard: number, ops: readonly Op[]): void {
    let known = this.shards.get(shard)
    if (known === undefined) {
      known = new Map()
      this.shards.set(shard, known)
    }
    for (const { key, write, args } of ops) {
      if (write === 'HSET') known.set(key, HASH)
      else if (write === 'XADD') known.set(key, STREAM)
      else if (write === 'ZADD') {
        if (args[0] !== 'XX') known.set(key, SORTED)
      } else if (write === 'UNLINK' || write === 'SET' || write === 'PEXPIREAT') known.delete(key)
    }
    if (known.size <= KEYS_MAX) return
    for (const key of known.keys()) {
      known.delete(key)
      if (known.size <= KEYS_MAX) return
    }
  }

  /** Nothing of a shard is certain any more. */
  forget(shard: number): void {
    this.shards.delete(shard)
  }
}

/** Whether an entry id lies above every one before it, given that sequence numbers and new ids do. */
function rises(id: string | Uint8Array | undefined, seq: number, firstEntryId: string): boolean {
  if (typeof id !== 'string') return false
  if (id === '*seq') return true
  const dash = id.indexOf('-')
  const ms = id.slice(0, dash)
  if (ms === String(seq + 1)) return true
  if (firstEntryId === '') return false
  return ms.padStart(firstEntryId.indexOf('-'), '0') >= firstEntryId.slice(0, firstEntryId.indexOf('-'))
}
