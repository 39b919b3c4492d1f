/**
 * rescue - the memory contents of a store, written into a directory that was deleted under it, or as a copy (backup).
 *
 * A redis whose working directory was deleted can neither rewrite its file nor save. But it still sends a replica
 * everything over an open connection. So writes are held back (CLIENT PAUSE makes them wait, it refuses none), the
 * data set is read as a replica would, and written as the base of a new append-only file. Then the old redis is ended.
 * The waiting writes lose their connection, and are sent again to the redis that is started on the new files.
 *
 * Guarantees: the new directory appears only as a whole (by one rename), and has all acknowledged data. If several
 * processes do it at once, the first directory is kept; all are the same.
 */
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import type { Redis } from 'ioredis'
import { AOF_DIRECTORY, AOF_NAME, formatManifest } from './aof-files.ts'

/** Longer than any copy. If the process dies in the middle, the store resumes by itself. */
const PAUSE_MS = 600_000
/** A copy without progress for this long is aborted. */
const SILENT_MS_MAX = 30_000
const MARK_BYTES = 40
const FIRST_LINE_BYTES_MAX = 1024

const FILES = [
  { name: `${AOF_NAME}.1.base.rdb`, seq: 1, type: 'b' },
  { name: `${AOF_NAME}.1.incr.aof`, seq: 1, type: 'i' },
] as const

/** Two connections that were opened before the directory was deleted, and the socket with it. */
export interface RescueLines {
  /** Gives the orders. */
  readonly client: Redis
  /** Reads the copy, and is used up by it. */
  readonly spare: Redis
}

/**
 * Copies the data of a store into `directory`, which is created if missing; writes are held back from then on.
 * @returns bytes of the copy
 * @throws Error if the store or the disk fails: the store continues unchanged
 */
export async function rescueStore({ client, spare }: RescueLines, directory: string): Promise<number> {
  try {
    return await copyStore({ client, spare }, directory, async () => {
      await client.client('PAUSE', PAUSE_MS, 'WRITE')
    })
  } catch (error) {
    await client.client('UNPAUSE').catch(() => undefined)
    throw error
  }
}

/**
 * Copies what a store holds at one moment into `directory`, as append-only files from which a store starts. It forks,
 * as for a rewrite of its file, and continues in the meantime. `begin` is called just before.
 * @returns bytes of the copy; the files are complete and on disk, or do not exist
 * @throws Error when the store or the disk does not do its part
 */
export async function copyStore(
  { client, spare }: RescueLines,
  directory: string,
  begin: () => Promise<void> = async () => undefined,
): Promise<number> {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  // Other data put there in the meantime must not be replaced.
  if (existsSync(join(directory, AOF_DIRECTORY))) throw new Error(`${directory} already has an ${AOF_DIRECTORY}`)
  const fresh = join(directory, `${AOF_DIRECTORY}.${process.pid}.new`)
  rmSync(fresh, { recursive: true, force: true })
  mkdirSync(fresh, { mode: 0o700 })
  try {
    await begin()
    await client.config('SET', 'repl-diskless-sync', 'yes', 'repl-diskless-sync-delay', '0')
    await spare.call('REPLCONF', 'capa', 'eof', 'rdb-only', '1')
    const bytes = await copyTo(spare, join(fresh, FILES[0].name))
    writeFileSync(join(fresh, FILES[1].name), '', { mode: 0o600 })
    writeFileSync(join(fresh, `${AOF_NAME}.manifest`), formatManifest(FILES), { mode: 0o600 })
    for (const name of [FILES[1].name, `${AOF_NAME}.manifest`]) syncPath(join(fresh, name))
    syncPath(fresh)
    renameSync(fresh, join(directory, AOF_DIRECTORY))
    syncPath(directory)
    syncPath(dirname(directory))
    return bytes
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true })
    throw error
  }
}

/** Reads the whole data set as a diskless replica: `$EOF:<mark>`, the bytes, the mark. */
function copyTo(spare: Redis, path: string): Promise<number> {
  const { stream } = spare
  const file = openSync(path, 'wx', 0o600)
  let mark: Buffer | null = null
  /** Bytes at the end that may be the beginning of the mark; before the mark is known, the first line. */
  let held = Buffer.alloc(0)
  let bytes = 0
  let isOver = false
  return new Promise<number>((resolve, reject) => {
    const end = (error: Error | null): void => {
      if (isOver) return
      isOver = true
      clearTimeout(timer)
      closeSync(file)
      stream.removeAllListeners('data')
      // Later bytes are not replies to commands.
      spare.disconnect()
      if (error === null) resolve(bytes)
      else reject(error)
    }
    const timer = setTimeout(() => end(new Error('The store did not send its data')), SILENT_MS_MAX)
    const take = (piece: Buffer): void => {
      timer.refresh()
      held = Buffer.concat([held, piece])
      if (mark === null) {
        // Empty lines keep the connection while the store prepares.
        const text = held.subarray(0, FIRST_LINE_BYTES_MAX).toString('latin1')
        const line = /^[\r\n]*(\S[^\r\n]*)\r\n/.exec(text)
        if (line === null) return
        const [, found] = /^\$EOF:(.{40})$/.exec(line[1] ?? '') ?? []
        if (found === undefined) throw new Error(`The store did not send its data: ${line[1]}`)
        mark = Buffer.from(found, 'latin1')
        held = held.subarray(line[0].length)
      }
      const whole = held.length - MARK_BYTES
      if (whole <= 0) return
      writeSync(file, held, 0, whole)
      bytes += whole
      held = held.subarray(whole)
      if (!held.equals(mark)) return
      fsyncSync(file)
      end(null)
    }
    stream.removeAllListeners('data')
    stream.on('data', (piece: Buffer) => {
      try {
        take(piece)
      } catch (error) {
        end(error as Error)
      }
    })
    stream.once('close', () => end(new Error('The store closed its connection while sending its data')))
    stream.write('*1\r\n$4\r\nSYNC\r\n')
  })
}

function syncPath(path: string): void {
  const fd = openSync(path, 'r')
  fsyncSync(fd)
  closeSync(fd)
}
