/**
 * redis-log - the file that our own Redis writes to itself, and its bound
 *
 * It is opened for appending and handed to the process, which does not rotate it. While that runs it is bounded by
 * copying the file to `redis.log.1` and emptying it, so that Redis continues at its beginning. A line logged between
 * the two steps is lost.
 */
import { copyFileSync, openSync, renameSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import type { StoreLog } from './binary.ts'

/** Bytes of the file; with the one before it twice as many are kept. */
const LOG_BYTES_MAX = 10 * 1024 * 1024
/** A Redis that logs a line for each connection writes less than a megabyte in that time. */
const LOOK_MS = 60_000

/** Opens the file for a Redis that starts in the directory. Throws Error when it cannot be written. */
export function openRedisLog(directory: string): number {
  const path = pathIn(directory)
  if (sizeOf(path) > LOG_BYTES_MAX) renameSync(path, `${path}.1`)
  return openSync(path, 'a', 0o600)
}

/**
 * Rotates the log file of a running Redis that exceeds its bound. Returns whether it did. Throws Error if the disk
 * fails.
 */
export function boundRedisLog(directory: string, bytesMax = LOG_BYTES_MAX): boolean {
  const path = pathIn(directory)
  if (sizeOf(path) <= bytesMax) return false
  copyFileSync(path, `${path}.1`)
  truncateSync(path)
  return true
}

/** Keeps the file within its bound, each minute. Returns a function that ends that. */
export function watchRedisLog(directory: string, log: StoreLog): () => void {
  const timer = setInterval(() => {
    try {
      boundRedisLog(directory)
    } catch (error) {
      log.warn({ directory, reason: (error as Error).message }, "Redis's log was not rotated")
    }
  }, LOOK_MS).unref()
  return () => clearInterval(timer)
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

function pathIn(directory: string): string {
  return join(directory, 'redis.log')
}
