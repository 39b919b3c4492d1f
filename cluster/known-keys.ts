/**
 * known-keys - what this process knows of a shard's keys because it wrote them itself: their types, and the journal's end.
 *
 * The commit script looks at the journal, the type of every key and the last id of every stream before it writes, which
 * is a third of its work. The owner of a shard is the only one who writes it, so what his confirmed commits made still
 * stands. Entry ids rise by themselves in a stream whose last one was the number of a commit, if this one is too, or was a
 * new id of a commit (from its first to its last, the script holds the first against `lid`), if this one is too. Whatever
 * is not certain is left to the script: another id, a change from one kind to the other, a key not seen yet, anything after
 * a verdict other than `ok`.
 */
import { entryIdOf, sortableEntryId } from './id.ts'
import { FIRST_PLACE, type Merged } from './merge.ts'
import type { Commit } from './store.ts'

/** Keys of one shard that are remembered as young; as many again as old ones. */
const KEYS_MAX = 1_024

const HASH = 'h'
const SORTED = 'z'
/** A stream whose last entry has the number of a commit. */
const NUMBERED = 's'
/** A stream whose last entry has a new id of a commit. */
const NEW = 'n'
const UNSURE = '-'

/** What of a commit says how its entry ids lie to those before. */
type Ids = Pick<Commit, 'seq' | 'firstEntryId' | 'lid'>

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
  lettersOf(shard: number, { keys, commands }: Merged, of: Ids): string {
    const known = this.shards.get(shard)
    if (known === undefined) return ''
    const kindOf = kindsOf(of)
    const found: (string | undefined)[] = []
    for (const { write, place, parts } of commands) {
      const at = place - FIRST_PLACE
      // Of a text nothing is known, and most are written once.
      if (write === 'SET' || write === 'UNLINK' || write === 'PEXPIREAT') continue
      if (found[at] !== undefined && write !== 'XADD') continue
      const key = keys[at] ?? ''
      const letter = found[at] ?? known.get(key) ?? UNSURE
      const isOtherId = write === 'XADD' && letter !== UNSURE && letter !== kindOf(parts[0]?.[0])
      if (isOtherId) known.delete(key)
      found[at] = isOtherId ? UNSURE : letter
    }
    let letters = 'j'
    for (let at = 0; at < keys.length; at += 1) letters += scriptLetter(found[at])
    return letters
  }

  /** A commit was confirmed. */
  note(shard: number, { keys, commands }: Merged, of: Ids): void {
    let known = this.shards.get(shard)
    if (known === undefined) {
      known = new Generations()
      this.shards.set(shard, known)
    }
    const kindOf = kindsOf(of)
    for (const { write, place, parts } of commands) {
      const key = keys[place - FIRST_PLACE] ?? ''
      if (write === 'HSET') known.set(key, HASH)
      else if (write === 'XADD') {
        const kind = kindOf(parts[0]?.[0])
        if (kind === UNSURE) known.delete(key)
        else known.set(key, kind)
      } else if (write === 'ZADD') {
        if (parts[0]?.[0] !== 'XX') known.set(key, SORTED)
      } else if (write === 'UNLINK' || write === 'SET' || write === 'PEXPIREAT') known.delete(key)
    }
  }

  /** Nothing of a shard is certain any more. */
  forget(shard: number): void {
    this.shards.delete(shard)
  }
}

/** The letter by which the script knows a key's type. */
function scriptLetter(letter: string | undefined): string {
  if (letter === undefined) return UNSURE
  return letter === NEW ? NUMBERED : letter
}

/** What an entry id of a commit is: its number, one of its new ids, or neither. */
function kindsOf({ seq, firstEntryId, lid }: Ids): (id: unknown) => string {
  const own = `${seq + 1}-`
  const last = firstEntryId === '' || lid === '' ? '' : sortableEntryId(entryIdOf(lid))
  return (id) => {
    if (typeof id !== 'string') return UNSURE
    if (id.startsWith(own)) return NUMBERED
    if (last === '') return UNSURE
    const sortable = sortableEntryId(id)
    return sortable >= firstEntryId && sortable <= last ? NEW : UNSURE
  }
}
