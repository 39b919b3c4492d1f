/**
 * disk-space - whether the disk of the data directory has room: for a write that begins, and for new mail at all
 *
 * Open writes reserve their maximum size, because several at once could otherwise fill the disk under the store's own
 * file. New mail is refused below 10 % free space; on a very large disk 10 GiB are enough.
 */

import { statfs } from 'node:fs/promises'
import type { Log } from '../process/log.ts'

const FREE_SHARE_MIN = 0.1
const FREE_BYTES_MIN = 10 * 1024 ** 3
const LOOK_MS = 2_000

export interface DiskSpace {
  /** Whether there is room for new mail. */
  readonly hasRoom: boolean
  /**
   * Reserves room for a write; null if there is not enough. Returns a function that releases it, except for the bytes
   * that were written.
   */
  reserve(bytes: number): ((writtenBytes: number) => void) | null
  stop(): void
}

/** Free and all bytes of a disk. */
export interface Disk {
  readonly free: number
  readonly bytes: number
}

/** Bytes that must stay free on a disk. */
export function keptFree(bytes: number): number {
  return Math.min(bytes * FREE_SHARE_MIN, FREE_BYTES_MIN)
}

/** The disk under a folder; null if it cannot be read. */
export async function readDisk(folder: string): Promise<Disk | null> {
  const found = await statfs(folder).catch(() => null)
  return found === null ? null : { free: found.bavail * found.bsize, bytes: found.blocks * found.bsize }
}

/**
 * Looks at once, and again until it is stopped. A disk that does not answer is as full as it was. `log` is null if
 * another watcher logs.
 */
export async function watchDisk(folder: string, log: Pick<Log, 'info' | 'warn'> | null): Promise<DiskSpace> {
  let disk: Disk = { free: Number.POSITIVE_INFINITY, bytes: 0 }
  let reserved = 0
  let wasFull = false
  const isFull = (): boolean => disk.free - reserved < keptFree(disk.bytes)
  const look = async (): Promise<void> => {
    disk = (await readDisk(folder)) ?? disk
    const full = disk.free < keptFree(disk.bytes)
    const freeShare = disk.bytes === 0 ? 1 : disk.free / disk.bytes
    if (full && !wasFull) log?.warn({ freeShare, folder }, 'The disk is nearly full: new mail is refused')
    if (!full && wasFull) log?.info({ freeShare, folder }, 'The disk has room again')
    wasFull = full
  }
  await look()
  const timer = setInterval(() => void look(), LOOK_MS).unref()
  return {
    get hasRoom() {
      return !isFull()
    },
    reserve(bytes) {
      if (disk.free - reserved - bytes < keptFree(disk.bytes)) return null
      reserved += bytes
      return (writtenBytes) => {
        reserved -= bytes
        // Until the next look, written bytes no longer count as free.
        disk = { ...disk, free: disk.free - writtenBytes }
      }
    },
    stop: () => clearInterval(timer),
  }
}
