/**
 * known-keys - what this process knows of a shard's keys because it wrote them itself: their types, and the journal's end.
 *
 * The commit script looks at the journal, the type of every key and the last id of every stream before it writes, which
 * is a third of its work. The owner of a shard is the only one who writes it, so what his confirmed commits made still
 * stands. Entry ids rise by themselves where they are the commit's own number or at or above its first new id (the script
 * holds that one against `lid`). Whatever is not certain is left to the script: another id, a key not seen yet, anything
 * after a verdict other than `ok`.
 */
import { FIRST_PLACE, type Merged } from './merge.ts'

/** Keys of one shard that are remembered as young; as many again as old ones. */
const KEYS_MAX = 1_024

const HASH = 'h'
const SORTED = 'z'
const STREAM = 's'
const UNSURE = '-'

/**
 * Key -> its type's letter, in two generations: what is written again becomes young, and when there are enough young ones
 * the old are forgotten. Keys that are written once do not push out those that every commit writes.
 */
class Generations {
  private young = new Map<string, string>()
  private old = new Map<string, string>()

  get(key: string): string | undefined {
    return this.young.get(key) ?? this.old.get(key)
  }

  set(key: string, letter: string): void {
    this.young.set(key, letter)
    if (this.young.size <= KEYS_MAX) return
    this.old = this.young
    this.young = new Map()
  }

  delete(key: string): void {
    this.young.delete(key)
    this.old.delete(key)
  }
}

export class KnownKeys {
  private readonly shards = new Map<number, Generations>()

  /** Letters: `j` where the journal's end is certain, then one for each key. '' when nothing is. */
  lettersOf(shard: number, { keys, commands }: Merged, of: { seq: number; firstEntryId: string }): string {
    const known = this.shards.get(shard)
    if (known === undefined) return ''
    const rises = risingAbove(of)
    for (const { write, place, parts } of commands)
      if (write === 'XADD' && !rises(parts[0]?.[0])) known.delete(keys[place - FIRST_PLACE] ?? '')
    let letters = 'j'
    for (const key of keys) letters += known.get(key) ?? UNSURE
    return letters
  }

  /** A commit was confirmed. */
  note(shard: number, { keys, commands }: Merged): void {
    let known = this.shards.get(shard)
    if (known === undefined) {
      known = new Generations()
      this.shards.set(shard, known)
    }
    for (const { write, place, parts } of commands) {
      const key = keys[place - FIRST_PLACE] ?? ''
      if (write === 'HSET') known.set(key, HASH)
      else if (write === 'XADD') known.set(key, STREAM)
      else if (write === 'ZADD') {
        if (parts[0]?.[0] !== 'XX') known.set(key, SORTED)
      } else if (write === 'UNLINK' || write === 'SET' || write === 'PEXPIREAT') known.delete(key)
    }
  }

  /** Nothing of a shard is certain any more. */
  forget(shard: number): void {
    this.shards.delete(shard)
  }
}

/** Whether an entry id lies above every one before it, given that sequence numbers and new ids do. */
function risingAbove({ seq, firstEntryId }: { seq: number; firstEntryId: string }): (id: unknown) => boolean {
  const own = seq + 1
  const firstMs = firstEntryId === '' ? Number.POSITIVE_INFINITY : Number.parseInt(firstEntryId, 10)
  return (id) => {
    if (typeof id !== 'string') return false
    const ms = Number.parseInt(id, 10)
    return ms === own || ms >= firstMs
  }
}
