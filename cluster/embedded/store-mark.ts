/**
 * store-mark - the last state of the store known to be on disk, kept next to it, and compared before it runs again.
 *
 * A file that was cut while no one looked loads without a word: redis drops the end that it cannot read, and takes one
 * that ends between two commands for whole. The mark states how long each file was at least, and how it ended there:
 * bytes are only ever added, so a file that ends the same at the same place is the same up to there. That finds a cut
 * before redis does, whose own loading would make it final, together with everything accepted since. The numbers of the
 * shards' last commits, read after loading, would not show it.
 *
 * Guarantees that a size is written only after the store has answered a request sent after the file had that size, so
 * with `appendfsync always` it is on disk. Only a digest of the file's end is kept. It is written in place and without
 * an fsync, some hundred bytes every two seconds. A power cut may leave an older mark, or an unreadable one, and both
 * only weaken the check.
 *
 * File: `store-mark` in the data directory.
 */
import { createHash } from 'node:crypto'
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import {
  AOF_DIRECTORY,
  type AofFiles,
  filesAbove,
  formatManifest,
  isWholeManifest,
  manifestPath,
  newestSet,
  parseManifest,
  readTail,
} from './aof-files.ts'
import { sumsPath } from './aof-sums.ts'

const FILE = 'store-mark'
/** One write of one size leaves nothing of a longer one behind it. */
const BYTES = 2048
const DIGEST_CHARS = 16

/** State on disk. */
export interface StoreMark {
  /** When it was seen, as text of a date. */
  readonly at: string
  readonly manifest: string
  /** Bytes of each file that the manifest names, at least. */
  readonly sizes: Readonly<Record<string, number>>
  /** Digest of the bytes before that place in each file; absent in marks of earlier releases. */
  readonly ends?: Readonly<Record<string, string>>
}

/** The part of a mark about the end of a file, from the bytes that `tailOf` reads. */
export function digestOfTail(tail: string): string {
  return createHash('sha256').update(tail, 'latin1').digest('hex').slice(0, DIGEST_CHARS)
}

export function markPath(directory: string): string {
  return join(directory, FILE)
}

/** Writes the mark of a directory. A mark that is too long is not written; the last one is kept. */
export function writeMark(directory: string, mark: StoreMark): void {
  const bytes = Buffer.alloc(BYTES, ' ')
  if (bytes.write(`${JSON.stringify(mark)}\n`, 'utf8') >= BYTES) return
  const file = openSync(markPath(directory), 'a+', 0o600)
  closeSync(file)
  const fd = openSync(markPath(directory), 'r+', 0o600)
  try {
    writeSync(fd, bytes, 0, BYTES, 0)
  } finally {
    closeSync(fd)
  }
}

/** The mark of a directory; null if missing or unreadable. */
export function readMark(directory: string): StoreMark | null {
  try {
    const mark = JSON.parse(readFileSync(markPath(directory), 'utf8')) as Partial<StoreMark>
    const isWhole = typeof mark.manifest === 'string' && typeof mark.sizes === 'object' && typeof mark.at === 'string'
    return isWhole ? (mark as StoreMark) : null
  } catch {
    return null
  }
}

/** Why a store must not be started on these files, a sentence with the fix. Null means that it can start. */
export interface FileFault {
  readonly sentence: string
  /** Whether only the end of a file is missing, which a durability may allow. */
  readonly isCut: boolean
}

/**
 * Checks the files before a Redis reads them. `mustHold`: whether the directory is known to have held a store. Returns
 * the first fault that forbids a start.
 */
export function faultOfFiles(
  directory: string,
  { files, mark, mustHold }: { files: AofFiles | null; mark: StoreMark | null; mustHold: boolean },
): FileFault | null {
  const refuse = (sentence: string): FileFault => ({ sentence: `${sentence} Redis was not started`, isCut: false })
  const folder = join(directory, AOF_DIRECTORY)
  if (files === null) {
    if (!mustHold && mark === null) return null
    return refuse(
      `${directory} had a store, but its append-only files are missing: Redis would start empty. Restore ${folder} from where ` +
        `it was moved or from a backup, or set REDIS_URL if the store is elsewhere. For a new installation, use a new directory.`,
    )
  }
  if (files.manifest === null)
    return refuse(
      `${folder} has ${files.sizes.size} append-only files but no manifest. Their data is not lost, but Redis would start empty ` +
        `and replace them. ${describeMend(directory, files, mark)}`,
    )
  if (files.sizes.size > 0 && !isWholeManifest(files.manifest))
    return refuse(
      `${manifestPath(directory)} was truncated or changed. The data of its files is not lost. ${describeMend(directory, files, mark)}`,
    )
  const above = filesAbove(files)
  if (above.length > 0)
    return refuse(
      `${folder} has ${above.join(', ')}, newer than the files of its manifest: an older copy replaced newer files. ` +
        `The newer data still exists, but Redis would overwrite it. ${describeMend(directory, files, mark)} ` +
        `To continue with the older copy instead, move ${above.join(', ')} and ${markPath(directory)} away.`,
    )
  const missing = files.named.find(({ name }) => !files.sizes.has(name))
  if (missing !== undefined)
    return refuse(
      `${folder} has no ${missing.name}, which its manifest names. Restore it from where it was moved or from a backup.`,
    )
  return mark === null ? null : faultOfMark(directory, files, mark)
}

/** Files that are shorter, other, or of an earlier number than they were known to be. */
function faultOfMark(directory: string, files: AofFiles, mark: StoreMark): FileFault | null {
  const known = parseManifest(mark.manifest)
  const lastOf = (all: readonly { seq: number; type: string }[], type: string): number =>
    Math.max(0, ...all.filter((one) => one.type === type).map(({ seq }) => seq))
  const goOn = `To continue without the missing data: rm -rf ${markPath(directory)} ${sumsPath(directory)}.`
  if (lastOf(files.named, 'i') < lastOf(known, 'i') || lastOf(files.named, 'b') < lastOf(known, 'b'))
    return {
      sentence:
        `The append-only files of ${directory} are an older copy: at ${mark.at} they were ` +
        `${known.map(({ name }) => name).join(', ')}, now they are ${files.named.map(({ name }) => name).join(', ')}. ` +
        `Data accepted since then is missing. Restore the newer files. ${goOn} Redis was not started`,
      isCut: false,
    }
  for (const { name } of files.named) {
    const path = join(directory, AOF_DIRECTORY, name)
    const [bytes, knownBytes] = [files.sizes.get(name) ?? 0, mark.sizes[name] ?? 0]
    if (bytes < knownBytes)
      return {
        sentence:
          `${path} has ${bytes} bytes, but had ${knownBytes} at ${mark.at}: ` +
          `the last ${knownBytes - bytes} bytes of accepted data are missing. Restore the complete file. ${goOn} ` +
          'Redis was not started',
        isCut: true,
      }
    const end = mark.ends?.[name]
    const tail = readTail(path, knownBytes)
    if (end !== undefined && (tail === null || digestOfTail(tail) !== end))
      return {
        sentence:
          `${path} has changed since ${mark.at}: its first ${knownBytes} bytes differ. It was truncated and extended, ` +
          'or replaced by another file, and accepted data is missing. Restore the right file. ' +
          `${goOn} Redis was not started`,
        isCut: false,
      }
  }
  return null
}

/** The step that names the right files again: those of the mark if all exist, otherwise the newest. */
function describeMend(directory: string, files: AofFiles, mark: StoreMark | null): string {
  const known = mark === null ? [] : parseManifest(mark.manifest)
  const areThere = known.length > 0 && known.every(({ name }) => files.sizes.has(name))
  const set = areThere && mark !== null ? known : newestSet(files)
  if (set === null) return 'There is no base file: restore the directory from a backup.'
  const text = formatManifest(set).replaceAll('\n', '\\n')
  return `Copy ${directory} to a safe place, then run: printf '${text}' > ${manifestPath(directory)} - and start again.`
}
