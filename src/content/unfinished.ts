/**
 * unfinished - files that are being written, under names of their writer, so that what a dead one left is told
 *
 * States: `tmp/<worker>-<n>` being written -> whole -> named, put on the disk (fdatasync) and taken away, or sent and
 * taken away.
 * A crash leaves the file, and whoever sweeps next removes it, because its worker lives no more.
 */

import { type FileHandle, mkdir, open, readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'

const OWNER_ONLY = 0o600
const FOLDER_OWNER_ONLY = 0o700
/** Frames are gathered to this much: each write is a way to the thread pool. */
const WRITE_BYTES = 1024 * 1024
/** Files looked at by one sweep; what is left is for the next one. */
const SWEPT_MAX = 100_000

/** A file that was made just now. */
export interface NewFile {
  readonly path: string
  readonly file: FileHandle
}

export interface UnfinishedFiles {
  /** Writes a file. Rejects, and leaves nothing, where that fails. Out: its path and bytes. */
  write(pieces: AsyncIterable<Buffer>): Promise<{ path: string; bytes: number }>
  /**
   * Writes a file and gives it its names. `name` is told its path once all of its bytes were written; it gives it names
   * and takes this one away, while the bytes go to the disk: one wait for the disk instead of two. Resolves when both
   * are done. Rejects, and leaves nothing under this name, where either fails.
   */
  publish(pieces: AsyncIterable<Buffer>, name: (path: string) => Promise<void>): Promise<void>
  remove(path: string): Promise<void>
  sweep(isLiving: (worker: string) => boolean): Promise<number>
}

/** Makes the files of a folder. In: names this process's worker at each call. */
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

/** Waits for both to end: neither goes on behind the back of who takes the names away again. Rejects as they do. */
export async function bothEnd(one: Promise<void>, other: Promise<void>): Promise<void> {
  for (const end of await Promise.allSettled([one, other])) if (end.status === 'rejected') throw end.reason
}

/** Writes all of it: a disk that is nearly full may take a part. */
export async function writeWhole(file: FileHandle, bytes: Buffer): Promise<void> {
  let at = 0
  while (at < bytes.length) at += (await file.write(bytes, at)).bytesWritten
}

/** What is not there is as wanted; anything else is passed on. */
export function ignoreAbsent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
  return undefined
}
