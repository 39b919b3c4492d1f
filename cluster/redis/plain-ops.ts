/**
 * plain-ops - looks at a commit's commands before they are sent, so that the script has only the store to look at.
 *
 * Nearly every commit is plain: its commands have the forms that behaviours use, each key has one type in it, and
 * entry ids rise. Then a write can only fail because of the state of the store, such as a key of another type, a
 * stream with a higher last id, or a missing key. These checks are the looks; keys that the sender has written before
 * need none. Other commits are checked completely by the script, which also has the messages for errors.
 */

import { FIRST_PLACE, OP_ARGS_MAX } from '../facts/merge.ts'
import { isEntryIdAbove } from '../id.ts'
import { journalKey, metaKey, shardTag } from '../keyspace.ts'
import type { Joined, Merged } from '../store.ts'

/** Checks that the script must make in the store before it writes. */
export interface Look {
  /** Type that a key must have if it exists; `there`: it must exist. */
  readonly kind: 'hash' | 'sorted' | 'stream' | 'there'
  /** Number of the key. */
  readonly place: number
  /** For a stream, the first added id; '' if there is none. */
  readonly id: string
}

/** Codes of digits. */
const [ZERO, NINE] = [48, 57]
const FLAGS: readonly unknown[] = ['XX', 'NX', 'LT', 'GT']
/** Letters as `known-keys.ts` has them, and two more: text, unlinked. */
const LETTERS = { HSET: 'h', HDEL: 'h', ZADD: 'z', ZREM: 'z', XADD: 's', XTRIM: 's', SET: 't', UNLINK: 'u' } as const
const KINDS: Readonly<Record<string, Look['kind']>> = { h: 'hash', z: 'sorted', s: 'stream' }

interface KeyForm {
  readonly letter: string
  readonly place: number
  /** The commit has already written to it. */
  isMade: boolean
  firstId: string
  lastId: string
}

/**
 * The looks that commands need, null unless all are plain. Takes letters of keys whose type is certain
 * (`KnownKeys.look`).
 */
export function collectLooks(
  { keys, commands }: Merged,
  { shard, letters }: { shard: number; letters: string },
): Look[] | null {
  if (!areOfShard(keys, shard)) return null
  const forms = new KeyForms()
  for (const command of commands)
    if (command.count > OP_ARGS_MAX || !isFormed(command) || !forms.take(command)) return null
  return forms.looks(letters)
}

/** The values that commands write into each key. */
class KeyForms {
  private readonly forms: (KeyForm | undefined)[] = []
  /** In the order of the commands: where two things are wrong, the first is reported. */
  private readonly asked: (Look | KeyForm)[] = []

  /** False if a command is not plain. */
  take(command: Joined): boolean {
    const { write, place } = command
    const known = this.forms[place - FIRST_PLACE]
    if (write === 'PEXPIREAT') {
      if (known === undefined) this.asked.push({ kind: 'there', place, id: '' })
      return known?.isMade ?? true
    }
    const letter = LETTERS[write]
    if (known !== undefined) return known.letter === letter && letter !== 'u' && enters(known, command)
    const form: KeyForm = { letter, place, isMade: false, firstId: '', lastId: '' }
    this.forms[place - FIRST_PLACE] = form
    this.asked.push(form)
    return enters(form, command)
  }

  looks(letters: string): Look[] {
    const looks: Look[] = []
    for (const one of this.asked) {
      const look = 'kind' in one ? one : lookOf(one, letters)
      if (look !== null) looks.push(look)
    }
    return looks
  }
}

/** The look at a key, null if its type is certain or irrelevant. */
function lookOf({ letter, place, firstId }: KeyForm, letters: string): Look | null {
  const kind = KINDS[letter]
  if (kind === undefined || letters[place - FIRST_PLACE + 1] === letter) return null
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
    if (form.lastId === '' ? id === '0-0' : !isEntryIdAbove(id, form.lastId)) return false
    if (form.lastId === '') form.firstId = id
    form.lastId = id
  }
  form.isMade ||=
    write === 'HSET' || write === 'XADD' || write === 'SET' || (write === 'ZADD' && parts[0]?.[0] !== 'XX')
  return true
}

function isFormed({ write, parts, count }: Joined): boolean {
  const first = parts[0]
  switch (write) {
    case 'HSET':
      return count > 0 && count % 2 === 0
    case 'HDEL':
    case 'ZREM':
      return count > 0
    case 'XADD':
      return count >= 3 && count % 2 === 1 && isEntryId(first?.[0])
    case 'XTRIM':
      return count === 2 && first?.[0] === 'MINID' && isEntryId(first[1])
    case 'SET':
      return count === 3 && first?.[1] === 'PXAT' && isInstant(first[2])
    case 'UNLINK':
      return count === 0
    case 'ZADD':
      return areScored(parts, count)
    case 'PEXPIREAT':
      return count === 1 && isInstant(first?.[0])
    default:
      return false
  }
}

/** Pairs of score and member, after a flag or none. */
function areScored(parts: Joined['parts'], count: number): boolean {
  let start = FLAGS.includes(parts[0]?.[0]) ? 1 : 0
  if (count - start < 2) return false
  for (const args of parts) {
    if ((args.length - start) % 2 !== 0) return false
    for (let i = start; i < args.length; i += 2) if (!isScore(args[i])) return false
    start = 0
  }
  return true
}

type Arg = string | Uint8Array | undefined

/** `<ms>-<low>`, both in their shortest form. */
function isEntryId(arg: Arg): boolean {
  if (typeof arg !== 'string') return false
  const dash = arg.indexOf('-')
  return (
    isWhole(arg, { from: 0, to: dash, digitsMax: 15 }) &&
    isWhole(arg, { from: dash + 1, to: arg.length, digitsMax: 19 })
  )
}

/** Milliseconds above 0. */
function isInstant(arg: Arg): boolean {
  return typeof arg === 'string' && arg !== '0' && isWhole(arg, { from: 0, to: arg.length, digitsMax: 15 })
}

/** A whole number. */
function isScore(arg: Arg): boolean {
  if (typeof arg !== 'string') return false
  const from = arg.startsWith('-') ? 1 : 0
  return areDigits(arg, { from, to: arg.length, digitsMax: 15 })
}

interface Piece {
  readonly from: number
  readonly to: number
  readonly digitsMax: number
}

/** Whether a piece of a text is a whole number without zeros before it. */
function isWhole(text: string, piece: Piece): boolean {
  const isPadded = text.charCodeAt(piece.from) === ZERO && piece.to - piece.from > 1
  return !isPadded && areDigits(text, piece)
}

function areDigits(text: string, { from, to, digitsMax }: Piece): boolean {
  if (to <= from || to - from > digitsMax) return false
  for (let at = from; at < to; at += 1) {
    const code = text.charCodeAt(at)
    if (code < ZERO || code > NINE) return false
  }
  return true
}
