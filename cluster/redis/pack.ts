/**
 * pack - a commit or a read as the bytes of one EVALSHA, ready for the socket.
 *
 * The bytes are built once, because a commit with an unknown outcome is sent again as the same bytes. Everything that
 * a commit writes travels as one packed argument, because thousands of small ones cost the client more than the store
 * needs to run them.
 */
import type { Fact, ViewFact } from '../behaviour.ts'
import { mergeOps } from '../facts/merge.ts'
import { assert } from '../fault.ts'
import { entryIdOf, isId, sortableEntryId } from '../id.ts'
import { journalKey, metaKey, toldStream } from '../keyspace.ts'
import type { Commit, Joined, Merged } from '../store.ts'
import { BulkWriter, bulk, commandBytes } from './bulk-writer.ts'
import { PackWriter } from './message-pack.ts'
import { collectLooks, type Look } from './plain-ops.ts'
import { WHOLE } from './read-script.ts'
import { COMMIT, FREEING_COMMIT, READ } from './scripts.ts'

/** Keys of one commit or read. */
const KEYS_MAX = 60_000
/**
 * Bytes from which a value travels outside the packed list, because the store's Lua reads every string that it creates
 * byte by byte, and a packed one twice.
 */
const LARGE_BYTES_MIN = 256
/** Numbers of a list that `PackWriter.number` can write. */
const PLACES_MAX = 65_535
/** Fields that one HMGET names; `unpack` of Lua takes 8,000 values at most. */
const FIELDS_MAX = 4_000

const writer = new PackWriter()
/** The arguments around the packed one in a script call. */
const frame = new BulkWriter()

/**
 * The bytes of a commit, or why it is not a valid commit. Takes its writes (`mergedOf`), and letters of keys whose type
 * is certain.
 */
export function packCommit(
  commit: Commit,
  { merged, letters }: { merged: Merged; letters: string },
): Buffer | { reason: string } {
  const { shard, lid } = commit
  if (lid !== '' && !isId(lid)) return { reason: 'lid' }
  if (merged.keys.length > KEYS_MAX) return { reason: 'keys' }
  const args = [
    commit.token,
    String(commit.seq),
    commit.commitId,
    String(commit.nowMs),
    String(commit.deadlineMs),
    commit.firstEntryId,
    lid,
    lid === '' ? '' : sortableEntryId(entryIdOf(lid)),
    commit.cursor,
    commit.outcomesCursor,
    commit.note,
  ]
  const script = commit.frees ? FREEING_COMMIT : COMMIT
  const keys = [metaKey(shard), journalKey(shard), ...merged.keys]
  const looks = collectLooks(merged, { shard, letters })
  const told = [...(commit.told ?? [])].flatMap(([to, text]) => [toldStream(to), text])
  if (looks === null)
    return evalBytes(script.sha, { keys, args, packed: packOps(merged), last: [letters, '', ...told] })
  const { packed, larges } = packPlain(merged, looks)
  return evalBytes(script.sha, { keys, args, packed, last: [letters, 'p', ...larges, ...told] })
}

/** A commit's writes with keys numbered and neighbours joined: done by its sender, or now. */
export function mergedOf(commit: Commit): Merged {
  return commit.merged ?? mergeOps(commit.ops, commit)
}

/** The bytes of a read of many facts, and how many commands each fact takes, for `factValues`. */
export function packRead(facts: readonly ViewFact[]): { bytes: Buffer; pieces: readonly number[] } {
  const places = new Map<string, number>()
  const commands: { name: string; place: number; args: readonly string[] }[] = []
  const pieces: number[] = []
  for (const fact of facts) {
    let place = places.get(fact.key)
    if (place === undefined) {
      place = places.size + 1
      places.set(fact.key, place)
    }
    const before = commands.length
    for (const [name, ...args] of makeReadCommands(fact)) commands.push({ name, place, args })
    pieces.push(commands.length - before)
  }
  assert(places.size <= KEYS_MAX, 'Too many keys in one read', { keys: places.size })
  writer.reset()
  writer.list(commands.length)
  for (const { name, place, args } of commands) {
    writer.list(args.length + 2)
    writer.text(name)
    writer.number(place)
    for (const arg of args) writer.text(arg)
  }
  return {
    bytes: evalBytes(READ.sha, { keys: [...places.keys()], args: [], packed: writer.packed(), last: [] }),
    pieces,
  }
}

/** The bytes of a script call with text arguments alone. */
export function scriptBytes(sha: string, keys: readonly string[], args: readonly string[]): Buffer {
  return commandBytes(['EVALSHA', sha, String(keys.length), ...keys, ...args])
}

/** The bytes of a script call whose arguments may be binary. */
export function bytesOfCommand(sha: string, keys: readonly string[], args: readonly (string | Uint8Array)[]): Buffer {
  let text = `*${3 + keys.length + args.length}\r\n$7\r\nEVALSHA\r\n$40\r\n${sha}\r\n${bulk(String(keys.length))}`
  for (const key of keys) text += bulk(key)
  const pieces: Uint8Array[] = []
  for (const arg of args) {
    if (typeof arg === 'string') text += bulk(arg)
    else {
      pieces.push(Buffer.from(`${text}$${arg.length}\r\n`), arg)
      text = '\r\n'
    }
  }
  pieces.push(Buffer.from(text))
  return pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces)
}

/** A plain commit's list, and the large values that have 0 in it; the last numbers of the list are their places. */
function packPlain({ commands }: Merged, looks: readonly Look[]): { packed: Buffer; larges: readonly Uint8Array[] } {
  const first = 2 + looks.length * 3
  let values = first
  for (const { count } of commands) values += count + 3
  const { larges, places } = values > PLACES_MAX ? NO_LARGES : collectLarge(commands, first)
  writer.reset()
  writer.list(values + places.length)
  writer.number(looks.length)
  writer.number(places.length)
  for (const { kind, place, id } of looks) {
    writer.text(kind)
    writer.number(place)
    writer.text(id)
  }
  for (const command of commands) {
    writer.number(command.count + 2)
    packCommand(command, places.length > 0)
  }
  for (const place of places) writer.number(place)
  return { packed: writer.packed(), larges }
}

interface Larges {
  readonly larges: readonly Uint8Array[]
  /** Number of each in the list, from 1. */
  readonly places: readonly number[]
}

const NO_LARGES: Larges = { larges: [], places: [] }

/** The large values of commands that come after `before` others. */
function collectLarge(commands: readonly Joined[], before: number): Larges {
  const larges: Uint8Array[] = []
  const places: number[] = []
  let place = before
  for (const { parts } of commands) {
    place += 3
    for (const part of parts) {
      for (const arg of part) {
        place += 1
        if (!isLarge(arg)) continue
        larges.push(arg)
        places.push(place)
      }
    }
  }
  return { larges, places }
}

function isLarge(arg: string | Uint8Array): arg is Uint8Array {
  return typeof arg !== 'string' && arg.length >= LARGE_BYTES_MIN
}

function packOps({ commands }: Merged): Buffer {
  writer.reset()
  writer.list(commands.length)
  for (const command of commands) {
    writer.list(command.count + 2)
    packCommand(command, false)
  }
  return writer.packed()
}

function packCommand({ write, place, parts }: Joined, skipsLarges: boolean): void {
  writer.text(write)
  writer.number(place)
  for (const part of parts) {
    for (const arg of part) {
      if (typeof arg === 'string') writer.text(arg)
      else if (skipsLarges && isLarge(arg)) writer.number(0)
      else writer.bytes(arg)
    }
  }
}

function evalBytes(sha: string, { keys, args, packed, last }: EvalCall): Buffer {
  frame.reset()
  frame.command(4 + keys.length + args.length + last.length)
  frame.text('EVALSHA')
  frame.text(sha)
  frame.text(String(keys.length))
  for (const key of keys) frame.text(key)
  for (const arg of args) frame.text(arg)
  frame.begin(packed.length)
  const headBytes = frame.length
  frame.end()
  for (const arg of last) {
    if (typeof arg === 'string') frame.text(arg)
    else frame.bytes(arg)
  }
  const around = frame.written()
  const bytes = Buffer.allocUnsafe(around.length + packed.length)
  around.copy(bytes, 0, 0, headBytes)
  packed.copy(bytes, headBytes)
  around.copy(bytes, headBytes + packed.length, headBytes)
  return bytes
}

interface EvalCall {
  readonly keys: readonly string[]
  readonly args: readonly string[]
  readonly packed: Buffer
  /** After what is packed. */
  readonly last: readonly (string | Uint8Array)[]
}

/** The commands that read a fact, without their key; none for zero fields, several for very many. */
function makeReadCommands(fact: ViewFact): [string, ...string[]][] {
  switch (fact.read) {
    case 'fields': {
      const { wholeMax, fields } = fact
      if (wholeMax !== undefined && fields.length > 0 && fields.length <= FIELDS_MAX)
        return [[WHOLE, String(wholeMax), ...fields]]
      const commands: [string, ...string[]][] = []
      for (let i = 0; i < fields.length; i += FIELDS_MAX) commands.push(['HMGET', ...fields.slice(i, i + FIELDS_MAX)])
      return commands
    }
    case 'hash':
      return [['HGETALL']]
    case 'range':
      return fact.count > 0 ? [['XRANGE', fact.from, fact.to, 'COUNT', String(fact.count)]] : []
    case 'newest':
      return fact.count > 0 ? [['XREVRANGE', fact.to, fact.from, 'COUNT', String(fact.count)]] : []
    case 'last':
      return [['XREVRANGE', '+', '-', 'COUNT', '1']]
    case 'sorted':
      return fact.count > 0 ? [sortedCommand(fact)] : []
    case 'score':
      return [['ZSCORE', fact.member]]
    case 'value':
      return [['GET']]
  }
}

function sortedCommand({ min, max, count, newest }: Fact & { read: 'sorted' }): [string, ...string[]] {
  const rest = ['WITHSCORES', 'LIMIT', '0', String(count)]
  if (newest) return ['ZREVRANGEBYSCORE', scoreText(max), scoreText(min), ...rest]
  return ['ZRANGEBYSCORE', scoreText(min), scoreText(max), ...rest]
}

function scoreText(score: number): string {
  if (score === Number.POSITIVE_INFINITY) return '+inf'
  return score === Number.NEGATIVE_INFINITY ? '-inf' : String(score)
}
