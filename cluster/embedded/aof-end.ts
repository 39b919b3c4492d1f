/**
 * aof-end - the end of an append-only file that redis refuses to load: zeros or holes that a power cut left behind the
 * last command, on file systems that keep a file's size before its bytes
 *
 * Redis itself drops an incomplete last command. Other bytes are a "Bad file format", and it does not start. Redis
 * syncs before it answers, so a power cut damages only bytes written after the last sync. Such an end is moved into a
 * separate file, and Redis starts. Damage of synced data stops the start: it begins before the size in the store's
 * mark, which is a lower bound, or whole commands follow it.
 *
 * A separate file holds parts of commands, addresses among them, which no erasure reaches: it is removed after a week.
 *
 * Files: `unreadable-end.<time>.aof` in the data directory
 */

import {
  closeSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { AOF_DIRECTORY, type AofFiles } from './aof-files.ts'
import { markPath, type StoreMark } from './store-mark.ts'

const CHUNK_BYTES = 1024 * 1024
/** `*` or `$`, a number of up to 20 digits, and CR LF; `#TS:` and a time. */
const LINE_BYTES_MAX = 64
/** Limits of Redis for a client: number and length of arguments. */
const ARGUMENTS_MAX = 1024 * 1024
const ARGUMENT_BYTES_MAX = 512 * 1024 * 1024
/** Starts of a command that are tried behind damaged bytes; with more, data is assumed there. */
const STARTS_MAX = 10_000
const STAR = 0x2a
const HASH = 0x23
const OWNER_ONLY = 0o600
const KEPT = /^unreadable-end\.[\dTZ-]+\.aof$/
const KEPT_MS = 7 * 86_400_000
/** A disk that damages each end would fill itself with them. */
const KEPT_MAX = 10

/** Whether redis logged that it cannot parse its append-only file. Takes the last lines of its log. */
export function isBadFormat(log: string): boolean {
  return /Bad file format reading the append only file/i.test(log)
}

/** Whether redis logged that it cannot load its base file. Takes the last lines of its log. */
export function isDamagedBase(log: string): boolean {
  return /Wrong RDB checksum|Internal error in RDB|Unexpected EOF reading RDB|Terminating server after rdb file/i.test(
    log,
  )
}

/** Why a base file that Redis cannot load stops the start, with the next step. */
export function damageOfBase(directory: string, files: AofFiles | null): Error {
  const base = files?.named.find(({ type }) => type === 'b')?.name ?? ''
  const path = join(directory, AOF_DIRECTORY, base)
  return new Error(
    `${path} is damaged: Redis cannot load it. Restore a backup. ` +
      `redis-check-rdb ${path} names the place of the damage. Redis was not started`,
  )
}

/**
 * Moves the unreadable end of the last append-only file into a file beside the store, if it is behind the last offset
 * known to be on disk.
 * @returns the file, the number of bytes moved, and their new path; null if every command can be read
 * @throws Error, a sentence with the next step, if the damage may have taken accepted data
 */
export function cutUnreadableEnd(
  directory: string,
  { files, mark, nowMs }: { files: AofFiles; mark: StoreMark | null; nowMs: number },
): { readonly path: string; readonly bytes: number; readonly kept: string } | null {
  const last = files.named.at(-1)
  if (last === undefined || last.type !== 'i') return null
  const path = join(directory, AOF_DIRECTORY, last.name)
  const file = openSync(path, 'r+')
  try {
    const { readable, damagedAt, size } = readableBytes(file)
    if (readable === size) return null
    const known = mark?.sizes[last.name]
    if (known === undefined || readable < known || hasCommandsBehind(file, damagedAt))
      throw refusal({ path, readable, size, known, directory })
    const kept = join(directory, `unreadable-end.${new Date(nowMs).toISOString().replace(/[:.]/g, '-')}.aof`)
    copyEnd(file, readable, kept)
    syncPath(directory)
    ftruncateSync(file, readable)
    fsyncSync(file)
    return { path, bytes: size - readable, kept }
  } finally {
    closeSync(file)
  }
}

/** Removes moved ends that are over a week old, and all but the newest ones. Returns their names. */
export function removeOldEnds(directory: string, nowMs: number): readonly string[] {
  const ends = readdirSync(directory)
    .filter((name) => KEPT.test(name))
    .map((name) => ({ name, atMs: statSync(join(directory, name), { throwIfNoEntry: false })?.mtimeMs ?? 0 }))
    .sort((a, b) => b.atMs - a.atMs)
  const old = ends.filter(({ atMs }, place) => place >= KEPT_MAX || atMs < nowMs - KEPT_MS).map(({ name }) => name)
  for (const name of old) rmSync(join(directory, name), { force: true })
  return old
}

function refusal(at: {
  path: string
  readable: number
  size: number
  known: number | undefined
  directory: string
}): Error {
  const { path, readable, size, known, directory } = at
  const mark = markPath(directory)
  const isKnown = known !== undefined && readable < known
  const lost = isKnown
    ? `${known - readable} of them were known to be on disk: accepted data is damaged`
    : known === undefined
      ? `Whether accepted data is in them is unknown, because ${mark} is missing`
      : 'Whole commands are behind the damage: accepted data may be in them'
  return new Error(
    `${path} cannot be read from byte ${readable} on: ${size - readable} bytes are damaged. ${lost}. ` +
      'Restore a backup, or copy the directory and continue without these bytes: ' +
      `rm -f ${mark}; redis-check-aof --fix ${path} - Redis was not started`,
  )
}

function copyEnd(file: number, from: number, to: string): void {
  const kept = openSync(to, 'wx', OWNER_ONLY)
  try {
    const bytes = Buffer.alloc(CHUNK_BYTES)
    for (let at = from, read = 1; read > 0; at += read) {
      read = readSync(file, bytes, 0, bytes.length, at)
      writeSync(kept, bytes, 0, read)
    }
    fsyncSync(kept)
  } catch (error) {
    // On a full disk every start would leave one.
    rmSync(to, { force: true })
    throw error
  } finally {
    closeSync(kept)
  }
}

function syncPath(path: string): void {
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

/** Whether any complete command follows the damaged one at an offset of the file. */
function hasCommandsBehind(file: number, damagedAt: number): boolean {
  const reader = new Reader(file)
  const bytes = Buffer.alloc(CHUNK_BYTES)
  let tried = 0
  for (let at = damagedAt + 1, read = 1; read > 0; at += read) {
    read = readSync(file, bytes, 0, bytes.length, at)
    for (let star = bytes.indexOf(STAR); star >= 0 && star < read; star = bytes.indexOf(STAR, star + 1)) {
      tried += 1
      if (tried > STARTS_MAX) return true
      reader.at = at + star
      const found = readCommand(reader)
      if (reader.at <= reader.size && found !== 'end' && found !== 'damaged') return true
    }
  }
  return false
}

/**
 * Bytes of an append-only file up to the last command that is whole and outside of a transaction, and its size. An end
 * that is merely incomplete counts as readable: redis drops it itself.
 */
export function readableBytes(file: number): {
  readonly readable: number
  /** Offset of the first command that cannot be read; the size of the file if all can. */
  readonly damagedAt: number
  readonly size: number
} {
  const reader = new Reader(file)
  const { size } = reader
  let readable = 0
  let isInTransaction = false
  for (;;) {
    const { at: damagedAt } = reader
    const found = readCommand(reader)
    if (found === 'end') return { readable: size, damagedAt: size, size }
    if (found === 'damaged') return { readable, damagedAt, size }
    if (found === 'MULTI') isInTransaction = true
    if (found === 'EXEC') isInTransaction = false
    if (!isInTransaction) readable = reader.at
  }
}

/**
 * The name of the next command; `end` if the file ends here, or within a command; `damaged` if it is not a command.
 */
function readCommand(reader: Reader): string {
  const first = reader.peek()
  if (first === null) return 'end'
  if (first === HASH) return reader.line() === null ? endOr(reader) : 'annotation'
  const count = first === STAR ? readCount(reader, ARGUMENTS_MAX) : 'damaged'
  if (typeof count === 'string') return count
  if (count < 1) return 'damaged'
  let name = ''
  for (let n = 0; n < count; n += 1) {
    const bytes = readCount(reader, ARGUMENT_BYTES_MAX, '$')
    if (typeof bytes === 'string') return bytes
    if (n === 0) name = reader.text(bytes).toUpperCase()
    else reader.skip(bytes)
    const end = reader.line()
    if (end === null) return endOr(reader)
    if (end !== '') return 'damaged'
  }
  return name
}

function readCount(reader: Reader, max: number, mark = '*'): number | 'end' | 'damaged' {
  const line = reader.line()
  if (line === null) return endOr(reader)
  const digits = line.startsWith(mark) ? line.slice(1) : ''
  if (!/^\d{1,10}$/.test(digits)) return 'damaged'
  return Number(digits) > max ? 'damaged' : Number(digits)
}

/** Why no line was read: the file has ended, or its bytes are not a line. */
function endOr(reader: Reader): 'end' | 'damaged' {
  return reader.hasEnded ? 'end' : 'damaged'
}

/** Reads a file forwards, a chunk at a time. */
class Reader {
  at = 0
  readonly size: number
  hasEnded = false
  readonly #file: number
  readonly #chunk = Buffer.alloc(CHUNK_BYTES)
  #start = 0
  #length = 0

  constructor(file: number) {
    this.#file = file
    this.size = fstatSync(file).size
    this.#fill()
  }

  /** The next byte; null at the end. */
  peek(): number | null {
    if (this.at >= this.size) return null
    if (!this.#holds(1)) this.#fill()
    return this.#chunk[this.at - this.#start] ?? null
  }

  /** The next line without CR LF; null if there is none within the bound (see `hasEnded`). */
  line(): string | null {
    if (!this.#holds(LINE_BYTES_MAX)) this.#fill()
    const from = this.at - this.#start
    const until = Math.min(this.#length, from + LINE_BYTES_MAX)
    const end = this.#chunk.subarray(from, until).indexOf('\r\n')
    if (end < 0) {
      const rest = this.#chunk.subarray(from, until)
      // A partial line at the end is an incomplete command; zeros are damage.
      this.hasEnded = this.at + rest.length >= this.size && !rest.includes(0)
      return null
    }
    this.at += end + 2
    return this.#chunk.toString('latin1', from, from + end)
  }

  text(bytes: number): string {
    if (!this.#holds(bytes)) this.#fill()
    const from = this.at - this.#start
    const text = this.#chunk.toString('latin1', from, Math.min(from + bytes, from + LINE_BYTES_MAX, this.#length))
    this.skip(bytes)
    return text
  }

  skip(bytes: number): void {
    this.at += bytes
  }

  #holds(bytes: number): boolean {
    return this.at >= this.#start && this.at + bytes <= this.#start + this.#length
  }

  #fill(): void {
    this.#start = this.at
    this.#length = readSync(this.#file, this.#chunk, 0, CHUNK_BYTES, this.at)
  }
}
