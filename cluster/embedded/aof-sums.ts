/**
 * aof-sums - checksums of the append-only files, kept beside them and compared before a Redis reads them again
 *
 * Redis checks the base file, which ends with a checksum, but loads a changed value, key or score of a later file
 * without an error. So these files are checksummed in blocks while the store runs, up to the size known to be on disk
 * (store-mark.ts). Bytes are only ever added, so a sum remains valid as long as the file exists.
 *
 * Guarantees: a file whose block differs from its sum is not loaded. Not covered: bytes written after the last look,
 * at most two seconds before a crash. Written in place and without an fsync; a sum that a power cut took is only a
 * weaker check. Several processes that watch one store write the same lines.
 *
 * Files: `store-sums/<name of the append-only file>`, a line for each block: its end in the file, and its CRC32
 */

import {
  closeSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  truncateSync,
} from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import { AOF_DIRECTORY, type AofFile } from './aof-files.ts'

const FOLDER = 'store-sums'
const BLOCK_BYTES = 256 * 1024
const OWNER_ONLY = 0o700
const END_CHARS = 16
const SUM_CHARS = 8
/** An end, a space, a sum, a line feed. */
const LINE_BYTES = END_CHARS + SUM_CHARS + 2
const LINE = /^ *(\d{1,15}) ([0-9a-f]{8})$/

export function sumsPath(directory: string): string {
  return join(directory, FOLDER)
}

/** A block that was summed. */
interface Block {
  readonly start: number
  readonly end: number
  readonly sum: number
}

/** The difference between a file and its sums. */
export interface SumsFound {
  readonly path: string
  /** Bytes that were compared. */
  readonly bytes: number
  /** Blocks that have other bytes than they had. */
  readonly damaged: readonly { readonly start: number; readonly end: number }[]
  /** Whether the only damaged block is the last one that was summed. */
  readonly isLastOnly: boolean
  /** Summed bytes behind the end of the file. */
  readonly missing: number
}

/** Compares the files with their sums. Files without sums are left out. Throws errors of the file system. */
export async function compareSums(directory: string, files: readonly AofFile[]): Promise<SumsFound[]> {
  const found: SumsFound[] = []
  for (const { name } of files) {
    const blocks = readBlocks(join(sumsPath(directory), name))
    if (blocks.length > 0) found.push(await compareFile(join(directory, AOF_DIRECTORY, name), blocks))
  }
  return found
}

async function compareFile(path: string, blocks: readonly Block[]): Promise<SumsFound> {
  const file = openSync(path, 'r')
  try {
    const { size } = fstatSync(file)
    const bytes = Buffer.allocUnsafe(BLOCK_BYTES)
    const damaged: Block[] = []
    let compared = 0
    for (const block of blocks) {
      const length = block.end - block.start
      if (block.end > size) break
      const read = readSync(file, bytes, 0, length, block.start)
      if (read < length || crc32(bytes.subarray(0, length)) !== block.sum) damaged.push(block)
      compared += length
      await setImmediate()
    }
    const last = blocks.at(-1)
    const missing = Math.max(0, (last?.end ?? 0) - size)
    return { path, bytes: compared, damaged, isLastOnly: damaged.length === 1 && damaged[0] === last, missing }
  } finally {
    closeSync(file)
  }
}

/**
 * Drops the sums of bytes that the files of a just started store no longer have, before it writes others in their
 * place.
 */
export function dropMissingSums(directory: string, files: readonly AofFile[]): void {
  for (const { name } of files) {
    const path = join(sumsPath(directory), name)
    const blocks = readBlocks(path)
    if (blocks.length === 0) continue
    const size = statSync(join(directory, AOF_DIRECTORY, name), { throwIfNoEntry: false })?.size ?? 0
    truncateBehind(path, blocks, size)
  }
}

/** Truncates a file of sums behind the last block that a file of this size has. Out: the blocks that are left. */
function truncateBehind(path: string, blocks: readonly Block[], size: number): readonly Block[] {
  const kept = blocks.filter(({ end }) => end <= size)
  if (kept.length < blocks.length) truncateSync(path, kept.length * LINE_BYTES)
  return kept
}

/** Why damaged files are not loaded, with the next step. */
export function makeDamageError(directory: string, { path, damaged }: SumsFound): Error {
  const [first] = damaged
  const more = damaged.length === 1 ? '' : ` and ${damaged.length - 1} other blocks`
  return new Error(
    `${path} is damaged: bytes ${first?.start} to ${first?.end}${more} are not the bytes that Redis wrote. ` +
      'Restore a backup. To continue with the damaged data instead, copy the directory, then run: ' +
      `rm -r ${sumsPath(directory)} - Redis was not started`,
  )
}

/** Sums the files of one running store. */
export class AofSums {
  readonly #directory: string
  readonly #files = new Map<string, FileSums>()
  #next: Readonly<Record<string, number>> | null = null
  #running: Promise<void> | null = null

  constructor(directory: string) {
    this.#directory = directory
  }

  /**
   * Sums each file of later commands up to a size that is on disk; sums of other files are removed. Resolves once the
   * last sizes are reached. Never rejects, because without sums the next start only has less to compare.
   */
  advance(sizes: Readonly<Record<string, number>>): Promise<void> {
    this.#next = sizes
    this.#running ??= this.#run().finally(() => {
      this.#running = null
    })
    return this.#running
  }

  async #run(): Promise<void> {
    while (this.#next !== null) {
      const sizes = this.#next
      this.#next = null
      await this.#advanceTo(sizes).catch(() => this.#files.clear())
    }
  }

  async #advanceTo(sizes: Readonly<Record<string, number>>): Promise<void> {
    const names = Object.keys(sizes).filter((name) => name.endsWith('.incr.aof'))
    if (names.some((name) => !this.#files.has(name))) this.#open(names)
    for (const name of names) await this.#files.get(name)?.advance(sizes[name] ?? 0)
  }

  /** Drops all sums, because the store writes other files from now on. */
  forget(): void {
    this.#next = null
    this.#files.clear()
    rmSync(sumsPath(this.#directory), { recursive: true, force: true })
  }

  #open(names: readonly string[]): void {
    const folder = sumsPath(this.#directory)
    mkdirSync(folder, { recursive: true, mode: OWNER_ONLY })
    for (const name of readdirSync(folder)) if (!names.includes(name)) rmSync(join(folder, name), { force: true })
    const known = new Map(this.#files)
    this.#files.clear()
    for (const name of names) {
      const sums = new FileSums(join(this.#directory, AOF_DIRECTORY, name), join(folder, name))
      this.#files.set(name, known.get(name) ?? sums)
    }
  }
}

/** Sums one file. */
class FileSums {
  readonly #path: string
  readonly #sumsPath: string
  readonly #bytes = Buffer.allocUnsafe(BLOCK_BYTES)
  /** Up to here the file is summed; -1 before its sums were read. */
  #at = -1
  /** Sum of the bytes from the last multiple of the block's size. */
  #sum = 0
  /** Bytes that were summed before have changed; the sums are kept for the next start. */
  #isDamaged = false

  constructor(path: string, to: string) {
    this.#path = path
    this.#sumsPath = to
  }

  async advance(size: number): Promise<void> {
    if (size === this.#at || this.#isDamaged) return
    const file = await open(this.#path, 'r')
    try {
      if (this.#at < 0) await this.#continue(file, size)
      if (size <= this.#at || this.#isDamaged) return
      createIfMissing(this.#sumsPath)
      const sums = await open(this.#sumsPath, 'r+')
      try {
        while (this.#at < size) if (!(await this.#addBlock(file, sums, size))) return
      } finally {
        await sums.close()
      }
    } finally {
      await file.close()
    }
  }

  /** Continues an earlier process's sums behind the last block, if that block is unchanged. */
  async #continue(file: FileHandle, size: number): Promise<void> {
    // Lines behind the end of a truncated file would belong to other bytes once it has grown.
    const last = truncateBehind(this.#sumsPath, readBlocks(this.#sumsPath), size).at(-1)
    this.#at = last?.start ?? 0
    if (last === undefined) return
    const length = last.end - last.start
    const { bytesRead } = await file.read(this.#bytes, 0, length, last.start)
    this.#sum = crc32(this.#bytes.subarray(0, length))
    this.#isDamaged = bytesRead < length || this.#sum !== last.sum
    this.#moveTo(last.end)
  }

  /** Sums up to the end of the block or the size. Returns false if the bytes cannot be read yet. */
  async #addBlock(file: FileHandle, sums: FileHandle, size: number): Promise<boolean> {
    const start = this.#at - (this.#at % BLOCK_BYTES)
    const length = Math.min(start + BLOCK_BYTES, size) - this.#at
    const { bytesRead } = await file.read(this.#bytes, 0, length, this.#at)
    if (bytesRead < length) return false
    const end = this.#at + length
    this.#sum = crc32(this.#bytes.subarray(0, length), this.#sum)
    const sum = this.#sum.toString(16).padStart(SUM_CHARS, '0')
    const line = `${String(end).padStart(END_CHARS)} ${sum}\n`
    await sums.write(line, (start / BLOCK_BYTES) * LINE_BYTES, 'latin1')
    this.#moveTo(end)
    return true
  }

  #moveTo(end: number): void {
    this.#at = end
    if (end % BLOCK_BYTES === 0) this.#sum = 0
  }
}

/** `r+`, which writes in place, needs an existing file. */
function createIfMissing(path: string): void {
  closeSync(openSync(path, 'a', 0o600))
}

/** The blocks of a file of sums, up to the first line that is incomplete or not of its place. */
function readBlocks(path: string): Block[] {
  let text: string
  try {
    text = readFileSync(path, 'latin1')
  } catch {
    return []
  }
  const blocks: Block[] = []
  for (const [index, line] of text.split('\n').entries()) {
    const [, end, sum] = LINE.exec(line) ?? []
    const start = index * BLOCK_BYTES
    const isOfPlace = Number(end) > start && Number(end) <= start + BLOCK_BYTES
    const previous = blocks.at(-1)
    if (!isOfPlace || (previous !== undefined && previous.end !== start)) return blocks
    blocks.push({ start, end: Number(end), sum: Number.parseInt(sum ?? '', 16) })
  }
  return blocks
}
