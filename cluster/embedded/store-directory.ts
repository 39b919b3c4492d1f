/**
 * store-directory - the directory of a running store, checked every two seconds for missing files.
 *
 * A redis continues writing, and fsyncing, into files that were deleted, moved or covered by a mount, and reports
 * nothing. The check is a few calls of stat(2) for the directory, its `appendonlydir`, the manifest, and the files
 * that it names: each must have the same inode, at least the same size, and the same end at the old size.
 *
 * States: sound | moved (the files live on elsewhere) | deleted (they do not) | damaged (only files in it are wrong).
 */
import { readFileSync, readlinkSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { AOF_DIRECTORY, AOF_NAME, isWholeManifest, parseManifest, readTail } from './aof-files.ts'
import { AofSums } from './aof-sums.ts'
import { digestOfTail, writeMark } from './store-mark.ts'

/** A fault of a directory. */
export interface DirectoryFault {
  readonly kind: 'moved' | 'deleted' | 'damaged'
  readonly sentence: string
}

export interface StoreDirectoryOptions {
  /** Absolute path, as passed to the store. */
  readonly path: string
  /** The store's process, if it is on this machine and known. */
  readonly processId: () => number | null
  /** Whether a mark is kept in it: it is the embedded store's. */
  readonly isOwn: boolean
  /** Names of the files of the store. */
  readonly names?: { readonly directory: string; readonly file: string }
}

/** The end of a file as it was seen: the bytes before a position. */
interface Tail {
  readonly bytes: number
  readonly text: string
}

interface Seen {
  readonly manifest: string
  readonly sizes: Record<string, number>
  readonly tails: ReadonlyMap<string, Tail>
}

export class StoreDirectory {
  readonly path: string
  private readonly options: StoreDirectoryOptions
  private readonly folder: string
  private readonly file: string
  /** Device and inode of each place, as it was first seen. */
  private known = new Map<string, string>()
  private knownTails: ReadonlyMap<string, Tail> = new Map()
  private seen: Seen | null = null
  private readonly sums: AofSums

  constructor(options: StoreDirectoryOptions) {
    this.options = options
    this.path = options.path
    this.sums = new AofSums(options.path)
    this.folder = join(options.path, options.names?.directory ?? AOF_DIRECTORY)
    this.file = options.names?.file ?? AOF_NAME
  }

  /** The current fault, or null. The first look records the state. */
  look(): DirectoryFault | null {
    this.seen = null
    this.rememberWorkingDirectory()
    if (!this.isSame(this.path)) return this.lost()
    if (!this.isSame(this.folder)) return damaged(`${this.folder} was removed or replaced while Redis runs`)
    const wrong = this.lookAtFiles() ?? this.lookAtFiles()
    return wrong === null ? null : damaged(wrong)
  }

  /**
   * Files that are shorter than the size that the store reports, as after a cut, even if they have grown since. Takes
   * `aof_current_size` from an answer received after the last look, with no rewrite in progress.
   */
  lookAtBytes(written: number): DirectoryFault | null {
    if (this.seen === null || readText(this.manifestPath()) !== this.seen.manifest) return null
    const bytes = Object.keys(this.seen.sizes)
      .map((name) => statSync(join(this.folder, name), { throwIfNoEntry: false })?.size ?? 0)
      .reduce((sum, size) => sum + size, 0)
    if (bytes >= written) return null
    this.seen = null
    return damaged(
      `The files in ${this.folder} were cut while Redis runs: it wrote ${written} bytes, and they have ${bytes}`,
    )
  }

  /**
   * The store has answered the request sent after the last look, so everything seen then is on its disk. Resolves once
   * their sums are written.
   */
  confirm(atMs: number): Promise<void> {
    if (this.seen === null) return Promise.resolve()
    const { manifest, sizes, tails } = this.seen
    this.knownTails = tails
    if (!this.options.isOwn) return Promise.resolve()
    const ends = Object.fromEntries([...tails].map(([name, { text }]) => [name, digestOfTail(text)]))
    writeMark(this.path, { at: new Date(atMs).toISOString(), manifest, sizes, ends })
    return this.sums.advance(sizes)
  }

  /** Drops the recorded state, because the store writes other files from now on. */
  forget(): void {
    this.known.clear()
    this.knownTails = new Map()
    this.seen = null
    if (this.options.isOwn) this.sums.forget()
  }

  /**
   * Compares the files with the manifest, once. A rewrite may remove files between the read of the manifest and the
   * check of a file, so the caller repeats a failed check.
   */
  private lookAtFiles(): string | null {
    const path = this.manifestPath()
    const manifest = readText(path)
    if (manifest === null) return `${path} was removed while Redis runs`
    if (!isWholeManifest(manifest)) return `${path} was cut or changed while Redis runs`
    const sizes: Record<string, number> = {}
    const tails = new Map<string, Tail>()
    for (const { name } of parseManifest(manifest)) {
      const place = join(this.folder, name)
      const status = statSync(place, { throwIfNoEntry: false })
      if (status === undefined || !this.isSame(place, status))
        return `${place} was removed or replaced while Redis runs`
      const known = this.knownTails.get(name)
      // A file written to after a cut has a hole at its former end.
      const isCut = known !== undefined && status.size < known.bytes
      const tail = known === undefined || isCut ? null : readTail(place, known.bytes)
      if (known !== undefined && (isCut || (tail !== null && tail !== known.text)))
        return `${place} was cut or changed while Redis runs: it had ${known.bytes} bytes that are not there any more`
      const text = readTail(place, status.size)
      // Unreadable bytes are not marked as on disk; the next look finds them.
      if (text === null) return null
      sizes[name] = status.size
      tails.set(name, { bytes: status.size, text })
    }
    this.seen = { manifest, sizes, tails }
    return null
  }

  private manifestPath(): string {
    return join(this.folder, `${this.file}.manifest`)
  }

  /** The directory that the store itself works in is the right one, even if the path has another one by now. */
  private rememberWorkingDirectory(): void {
    const processId = this.options.processId()
    if (this.known.has(this.path) || processId === null) return
    try {
      const { dev, ino } = statSync(`/proc/${processId}/cwd`)
      this.known.set(this.path, `${dev}:${ino}`)
    } catch {
      // On other systems, or for another user's process, the directory at the path is used.
    }
  }

  private isSame(place: string, status = statSync(place, { throwIfNoEntry: false })): boolean {
    if (status === undefined) return false
    const id = `${status.dev}:${status.ino}`
    const known = this.known.get(place)
    if (known === undefined) this.known.set(place, id)
    return known === undefined || known === id
  }

  /**
   * The directory is missing from its place, and the working directory of the store shows whether its files still
   * exist elsewhere.
   */
  private lost(): DirectoryFault {
    const now = workingDirectory(this.options.processId())
    if (now !== null && !now.endsWith(' (deleted)'))
      return {
        kind: 'moved',
        sentence:
          `${this.path} was moved, unmounted or covered by a mount while Redis runs. Its files still exist` +
          `${now === this.path || now === '/' ? '' : ` in ${now}`}: move it back to ${this.path} to accept mail again`,
      }
    return { kind: 'deleted', sentence: `${this.path} was deleted while Redis runs` }
  }
}

function damaged(sentence: string): DirectoryFault {
  return { kind: 'damaged', sentence }
}

/** Working directory of a process, as Linux reports it; null if there is no such process. */
function workingDirectory(processId: number | null): string | null {
  if (processId === null) return null
  try {
    return readlinkSync(`/proc/${processId}/cwd`)
  } catch {
    return null
  }
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}
