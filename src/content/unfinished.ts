/**
 * unfinished - files being written, under names of their writer, so that those of a dead writer can be recognized
 *
 * States: `tmp/<worker>-<n>` being written -> complete -> named, synced (fdatasync) and removed, or sent and removed.
 * A crash leaves the file, and the next sweep removes it, because its worker is dead.
 */

import { type FileHandle, mkdir, open, readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'

const OWNER_ONLY = 0o600
const FOLDER_OWNER_ONLY = 0o700
/** Frames are gathered to this size, because each write is a call to the thread pool. */
const WRITE_BYTES = 1024 * 1024
/** Files checked in one sweep; the rest is left for the next one. */
const SWEPT_MAX = 100_000

/** A file that was made just now. */
export interface NewFile {
  readonly path: string
  readonly file: FileHandle
}

export interface UnfinishedFiles {
  /** Writes a file. If that fails, rejects and leaves no file. Returns its path and size. */
  write(pieces: AsyncIterable<Buffer>): Promise<{ path: string; bytes: number }>
  /**
   * Writes a file and gives it its names. `name` gets its path once all bytes were written; it creates the names and
   * removes this one while the bytes are synced, which makes one wait for the disk instead of two. Resolves when both
   * are done. Rejects, and leaves nothing under this name, where either fails.
   */
  publish(pieces: AsyncIterable<Buffer>, name: (path: string) => Promise<void>): Promise<void>
  remove(path: string): Promise<void>
  sweep(isLiving: (worker: string) => boolean): Promise<number>
}

/** Makes the files of a folder. Takes a function that returns the name of this process's worker. */
export function makeUnfinishedFiles(folder: string, worker: () => string): UnfinishedFiles {
  let written = 0
  const openNew = async (): Promise<NewFile> => {
    written += 1
    const path = join(folder, `${worker()}-${written}`)
    const openOnce = () => open(path, 'wx', OWNER_ONLY)
    const file = await openOnce().catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
      await mkdir(folder, { recursive: true, mode: FOLDER_OWNER_ONLY })
      return openOnce()
    })
    return { path, file }
  }
  const remove = (path: string): Promise<void> => unlink(path).catch(ignoreAbsent)
  const writeNew = async <Out>(use: (file: FileHandle, path: string) => Promise<Out>): Promise<Out> => {
    const { path, file } = await openNew()
    try {
      const out = await use(file, path)
      await file.close()
      return out
    } catch (error) {
      await file.close().catch(() => undefined)
      await remove(path)
      throw error
    }
  }
  return {
    write: (pieces) => writeNew(async (file, path) => ({ path, bytes: await writeAll(file, pieces) })),
    publish: (pieces, name) =>
      writeNew(async (file, path) => {
        await writeAll(file, pieces)
        await bothEnd(file.datasync(), name(path))
      }),
    remove,
    async sweep(isLiving) {
      const names = await readdir(folder).catch(ignoreAbsent)
      const dead = (names ?? []).filter((name) => !isLiving(name.slice(0, name.lastIndexOf('-')))).slice(0, SWEPT_MAX)
      for (const name of dead) await remove(join(folder, name))
      return dead.length
    },
  }
}

async function writeAll(file: FileHandle, pieces: AsyncIterable<Buffer>): Promise<number> {
  let waiting: Buffer[] = []
  let waitingBytes = 0
  let bytes = 0
  const flush = async (): Promise<void> => {
    const [together] = waiting.length === 1 ? waiting : [Buffer.concat(waiting)]
    waiting = []
    waitingBytes = 0
    if (together !== undefined) await writeWhole(file, together)
  }
  for await (const piece of pieces) {
    waiting.push(piece)
    waitingBytes += piece.length
    bytes += piece.length
    if (waitingBytes >= WRITE_BYTES) await flush()
  }
  await flush()
  return bytes
}

/** Waits for both to end, so that neither continues while the caller removes the names again. Rejects as they do. */
export async function bothEnd(one: Promise<void>, other: Promise<void>): Promise<void> {
  for (const end of await Promise.allSettled([one, other])) if (end.status === 'rejected') throw end.reason
}

/** Writes all bytes; on a nearly full disk a single write may be partial. */
export async function writeWhole(file: FileHandle, bytes: Buffer): Promise<void> {
  let at = 0
  while (at < bytes.length) at += (await file.write(bytes, at)).bytesWritten
}

/** A missing file is the desired state; other errors are thrown. */
export function ignoreAbsent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
  return undefined
}
