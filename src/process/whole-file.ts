/**
 * whole-file - files that only their owner reads, written whole or not at all, and on disk when the call returns
 */

import { closeSync, fsyncSync, linkSync, openSync, renameSync, unlinkSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

const OWNER_ONLY = 0o600

/** Writes a file that only its owner reads, whole or not at all, on disk when this returns. */
export function replaceFile(path: string, text: string): void {
  moveFile(writeFresh(path, text), path)
}

/** The same for a file that must not exist yet, which the first of several processes creates. */
export function createFile(path: string, text: string): void {
  const fresh = writeFresh(path, text)
  try {
    linkSync(fresh, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  unlinkSync(fresh)
  syncFolder(path)
}

/** Renames a file; the new name is on disk when this returns. */
export function moveFile(from: string, to: string): void {
  renameSync(from, to)
  syncFolder(to)
}

/** Writes `text` next to `path`, under a name of this process, because several may start at once. */
function writeFresh(path: string, text: string): string {
  const fresh = `${path}.${process.pid}.new`
  const file = openSync(fresh, 'w', OWNER_ONLY)
  writeSync(file, text)
  fsyncSync(file)
  closeSync(file)
  return fresh
}

function syncFolder(path: string): void {
  const folder = openSync(dirname(path), 'r')
  fsyncSync(folder)
  closeSync(folder)
}
