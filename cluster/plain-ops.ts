/**
 * plain-ops - looks at a commit's commands before they are sent, so that the script has only the store to look at.
 *
 * Nearly every commit is plain: its commands are of the forms that behaviours use, each key has one type in it, entry
 * ids rise. Then nothing but the store itself can make a write fail: a key of another type, a stream that ends above, a
 * key that is not there. Those questions are the looks, and there are none about keys that the sender has written
 * before. Whatever is not plain is looked at whole by the script, which also knows the words for what is wrong.
 */
import { OP_ARGS_MAX } from './commit-script.ts'
import { journalKey, metaKey, shardTag } from './keyspace.ts'
import { FIRST_PLACE, type Joined, type Merged } from './merge.ts'

/** What the script must ask the store before it writes. */
export interface Look {
  /** Type that a key must have if it is there; `there`: it must be there. */
  readonly kind: 'hash' | 'sorted' | 'stream' | 'there'
  /** Number of the key. */
  readonly place: number
  /** Stream: the first id that is added, '' for none. */
  readonly id: string
}

const ENTRY_ID = /^(?:0|[1-9]\d{0,14})-(?:0|[1-9]\d{0,18})$/
const INSTANT = /^[1-9]\d{0,14}$/
const SCORE = /^-?\d{1,15}$/
const FLAGS: readonly unknown[] = ['XX', 'NX', 'LT', 'GT']
/** Letters as `known-keys.ts` has them, and two more: text, unlinked. */
const LETTERS = { HSET: 'h', HDEL: 'h', ZADD: 'z', ZREM: 'z', XADD: 's', XTRIM: 's', SET: 't', UNLINK: 'u' } as const
const KINDS: Readonly<Record<string, Look['kind']>> = { h: 'hash', z: 'sorted', s: 'stream' }

interface KeyForm {
  readonly letter: string
  readonly place: number
  /** Something of this commit stands in it by now. */
  isMade: boolean
  firstId: string
  lastId: string
}

/**
 * The looks that commands need, null unless all of them are plain.
 * In: letters of keys whose type is certain (`KnownKeys.lettersOf`).
 */
export function looksOf(
  { keys, commands }: Merged,
  { shard, letters }: { shard: number; letters: string },
): Look[] | null {
  if (!areOfShard(keys, shard)) return null
  const forms: (KeyForm | undefined)[] = []
  // In the order of the commands: where two things are wrong, the first is told.
  const asked: (Look | KeyForm)[] = []
  for (const command of commands) {
    const { place } = command
    const at = place - FIRST_PLACE
    if (command.count > OP_ARGS_MAX || !isFormed(command)) return null
    const known = forms[at]
    if (command.write === 'PEXPIREAT') {
      if (known === undefined) asked.push({ kind: 'there', place, id: '' })
      else if (!known.isMade) return null
      continue
    }
    const letter = LETTERS[command.write]
    const form = known ?? { letter, place, isMade: false, firstId: '', lastId: '' }
    if (form.letter !== letter || (letter === 'u' && known !== undefined)) return null
    if (known === undefined) {
      forms[at] = form
      asked.push(form)
    }
    if (!enters(form, command)) return null
  }
  return asked.flatMap((one) => ('kind' in one ? one : lookOf(one, letters)))
}

/** The look at a key, none where its type is certain or of no matter. */
function lookOf({ letter, place, firstId }: KeyForm, letters: string): Look | readonly Look[] {
  const kind = KINDS[letter]
  if (kind === undefined || letters[place - FIRST_PLACE + 1] === letter) return []
  return { kind, place, id: firstId }
}

function areOfShard(keys: readonly string[], shard: number): boolean {
  const tag = `${shardTag(shard)}:`
  const [meta, journal] = [metaKey(shard), journalKey(shard)]
  for (const key of keys) if (!key.startsWith(tag) || key === meta || key === journal) return false
  return true
}

/** Takes a command into the form of its key; false when its entry id does not rise. */
function enters(form: KeyForm, { write, parts }: Joined): boolean {
  if (write === 'XADD') {
    const id = parts[0]?.[0] as string
    if (form.lastId === '' ? id === '0-0' : !isAbove(id, form.lastId)) return false
    if (form.lastId === '') form.firstId = id
    form.lastId = id
  }
  form.isMade ||=
    write === 'HSET' || write === 'XADD' || write === 'SET' || (write === 'ZADD' && parts[0]?.[0] !== 'XX')
  return true
}

function isFormed({ write, parts, count }: Joined): boolean {
  const [first = [], ...more] = parts
  switch (write) {
    case 'HSET':
      return count > 0 && count % 2 === 0
    case 'HDEL':
    case 'ZREM':
      return count > 0
    case 'XADD':
      return count >= 3 && count % 2 === 1 && isText(first[0], ENTRY_ID)
    case 'XTRIM':
      return count === 2 && first[0] === 'MINID' && isText(first[1], ENTRY_ID)
    case 'SET':
      return count === 3 && first[1] === 'PXAT' && isText(first[2], INSTANT)
    case 'UNLINK':
      return count === 0
    case 'ZADD': {
      const start = FLAGS.includes(first[0]) ? 1 : 0
      return count - start >= 2 && areScored(first, start) && more.every((part) => areScored(part, 0))
    }
    case 'PEXPIREAT':
      return count === 1 && isText(first[0], INSTANT)
    default:
      return false
  }
}

/** Pairs of score and member from `start` on. */
function areScored(args: Joined['parts'][number], start: number): boolean {
  if ((args.length - start) % 2 !== 0) return false
  for (let i = start; i < args.length; i += 2) if (!isText(args[i], SCORE)) return false
  return true
}

function isText(arg: string | Uint8Array | undefined, form: RegExp): boolean {
  return typeof arg === 'string' && form.test(arg)
}

/** Whether an entry id lies above another, both of the form above. */
function isAbove(id: string, other: string): boolean {
  const [dash, otherDash] = [id.indexOf('-'), other.indexOf('-')]
  const [ms, otherMs] = [Number.parseInt(id, 10), Number.parseInt(other, 10)]
  if (ms !== otherMs) return ms > otherMs
  if (id.length - dash !== other.length - otherDash) return id.length - dash > other.length - otherDash
  return id.slice(dash) > other.slice(otherDash)
}
