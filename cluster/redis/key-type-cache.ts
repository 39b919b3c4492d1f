/**
 * key-type-cache - facts about a shard's keys that this process knows from its own writes: their types, and the
 * journal's end.
 *
 * The commit script looks at the journal, the type of every key and the last id of every stream before it writes,
 * which is a third of its work. The owner of a shard is the only one who writes it, so the result of its confirmed
 * commits still holds. The next entry id of a stream is surely larger than its last one when both are commit
 * numbers, or both are new ids of commits (the script compares the first new id of a commit with `lid`). All other
 * cases are left to the script: another id, a change from one kind to the other, a key not seen yet, anything after
 * a verdict other than `ok`.
 *
 * A commit looks each of its keys up once, and the later certainties are kept with the result until the verdict.
 */

import { FIRST_PLACE } from '../facts/merge.ts'
import { entryIdOf, isEntryIdAbove, isId, plainEntryId } from '../id.ts'
import type { Commit, Joined, Merged } from '../store.ts'

/**
 * Young keys kept for one shard; the same number of old ones. Five hundred accounts on it write as many.
 */
const KEYS_MAX = 2_048

const HASH = 'h'
const SORTED = 'z'
/** A stream whose last entry has the number of a commit. */
const NUMBERED = 's'
/** A stream whose last entry has a new id of a commit. */
const NEW = 'n'
const UNSURE = '-'

/** The part of a commit that orders its entry ids after earlier ones. */
type Ids = Pick<Commit, 'seq' | 'firstEntryId' | 'lid'>

/** Known facts of a key. */
interface KnownKey {
  /** Its type's letter; `-` if it is no longer certain. */
  letter: string
  generation: number
}

/** The state of one key before and after a commit. */
interface Found {
  readonly known: KnownKey | undefined
  /** For the script, the certain type; `-` if it has to look, '' if it need not know. */
  letter: string
  /**
   * The key type that is certain once the commit is confirmed, a letter or `-` for unknown; '' keeps the known one.
   */
  after: string
}

/** The certain types of a commit's keys, and those that its confirmation adds. */
export interface Looked {
  /** `j` if the journal's end is certain, then a letter for each key; '' if nothing is. */
  readonly letters: string
  readonly keys: readonly string[]
  readonly found: readonly Found[]
  /** Where they were looked up; undefined when nothing was known of the shard. */
  readonly generations: Generations | undefined
}

/**
 * Known types of keys, in two generations: keys written again become young, and when there are enough young ones the
 * old are dropped. Keys that are written once do not evict those that every commit writes.
 */
class Generations {
  private readonly keys = new Map<string, KnownKey>()
  private generation = 0
  private young = 0

  get(key: string): KnownKey | undefined {
    return this.keys.get(key)
  }

  /** Records a write to a key; `known` is its type found at any earlier time. */
  set(key: string, known: KnownKey | undefined, letter: string): void {
    if (known !== undefined && known.generation === this.generation) {
      known.letter = letter
      return
    }
    this.keys.set(key, { letter, generation: this.generation })
    this.young += 1
    if (this.young > KEYS_MAX) this.age()
  }

  /** The young become old, and the old are dropped. */
  private age(): void {
    for (const [key, { generation }] of this.keys) if (generation !== this.generation) this.keys.delete(key)
    this.generation += 1
    this.young = 0
  }
}

export class KeyTypeCache {
  private readonly shards = new Map<number, Generations>()

  /** Looks up the keys of a commit that is about to be sent. */
  look(shard: number, { keys, commands }: Merged, of: Ids): Looked {
    const generations = this.shards.get(shard)
    const found: Found[] = []
    const kinds = kindsOf(of)
    for (const command of commands) {
      const at = command.place - FIRST_PLACE
      const before = found[at]
      const one = before ?? lookUp(generations?.get(keys[at] ?? ''))
      if (before === undefined) found[at] = one
      passes(one, command, kinds)
    }
    let letters = generations === undefined ? '' : 'j'
    if (generations !== undefined) for (let at = 0; at < keys.length; at += 1) letters += scriptLetter(found[at])
    return { letters, keys, found, generations }
  }

  /** The commit was confirmed. Nothing is recorded for a shard dropped in the meantime. */
  note(shard: number, { keys, found, generations }: Looked): void {
    const known = this.shards.get(shard)
    if (known !== generations) return
    const into = known ?? new Generations()
    if (known === undefined) this.shards.set(shard, into)
    for (let at = 0; at < keys.length; at += 1) {
      const one = found[at]
      if (one === undefined || one.after === '') continue
      // A key that is written once and uncertain afterwards is not cached.
      if (one.after === UNSURE && one.known === undefined) continue
      into.set(keys[at]!, one.known, one.after)
    }
  }

  /** Nothing about a shard is certain any longer. */
  forget(shard: number): void {
    this.shards.delete(shard)
  }
}

function lookUp(known: KnownKey | undefined): Found {
  return { known, letter: '', after: '' }
}

/** Takes one command of the commit into what is found of its key. */
function passes(one: Found, { write, parts }: Joined, kinds: Kinds): void {
  // Expiring keys are written for a short time, and would evict keys that every commit writes.
  if (write === 'SET' || write === 'UNLINK' || write === 'PEXPIREAT') {
    one.after = UNSURE
    return
  }
  if (one.letter === '') one.letter = one.known?.letter ?? UNSURE
  if (write === 'HSET') one.after = HASH
  else if (write === 'XADD') {
    one.after = kindOf(parts[0]?.[0], kinds)
    if (one.letter !== one.after) one.letter = UNSURE
  } else if (write === 'ZADD' && parts[0]?.[0] !== 'XX') one.after = SORTED
}

/** The letter by which the script knows a key's type. */
function scriptLetter(found: Found | undefined): string {
  if (found === undefined || found.letter === '') return UNSURE
  return found.letter === NEW ? NUMBERED : found.letter
}

/** The bounds of the entry ids of a commit. */
interface Kinds {
  /** The beginning of an entry id that has the commit's number. */
  readonly own: string
  /** The first and the last new id as entry ids; '' if it has none. */
  readonly first: string
  readonly last: string
}

function kindsOf({ seq, firstEntryId, lid }: Ids): Kinds {
  const hasNew = firstEntryId !== '' && isId(lid)
  return {
    own: `${seq + 1}-`,
    first: hasNew ? plainEntryId(firstEntryId) : '',
    last: hasNew ? entryIdOf(lid) : '',
  }
}

/** Kind of an entry id of a commit, either its number, one of its new ids, or neither. */
function kindOf(id: unknown, { own, first, last }: Kinds): string {
  if (typeof id !== 'string') return UNSURE
  if (id.startsWith(own)) return NUMBERED
  if (last === '' || isEntryIdAbove(first, id) || isEntryIdAbove(id, last)) return UNSURE
  return NEW
}
