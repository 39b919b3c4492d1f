/**
 * private-dir - closes the data directory, which has addresses, subjects and keys, to other users
 *
 * Guarantees: our own files and folders are closed to others, whatever umask they were created with; so is the
 * directory itself if it belongs to this user, is not shared (sticky), and has no foreign files. Foreign files are not
 * changed.
 */

import { chmodSync, readdirSync, type Stats, statSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = 0
const STICKY = 0o1000
const OTHERS = 0o077
/** Files that we, and the Redis that we run, create in it. */
const OWN =
  /^(installation|store-(mark|sums)|unreadable-end\..*|appendonlydir|content|unread-reports|redis\.(sock|pid|log|log\.1|lock([.-][\w-]+)?)|(secret-key|cluster-secret)(\..*)?|first-run\.json(\..*)?|.*\.pem|dump\.rdb|temp-.*|lost\+found)$/
/** Folders whose entries are closed too. Content files are created closed. */
const FOLDERS = ['appendonlydir']

/** A directory that this user cannot use for its data. The start ends with this sentence. */
export class WrongDirectory extends Error {}

/**
 * Closes our own files. Returns warnings, none if all is well or the directory does not exist yet. Throws
 * WrongDirectory if it belongs to another user.
 */
export function closeDirectory(dataDir: string, uid = process.getuid?.() ?? ROOT): string[] {
  const status = readStatus(dataDir, uid)
  if (status === undefined) return []
  if (uid !== ROOT && status.uid !== uid)
    throw new WrongDirectory(
      `${dataDir} belongs to user ${status.uid}, but this is user ${uid}: start as that user, change its owner ` +
        `(chown -R ${uid} ${dataDir}), or set DATA_DIR to another directory`,
    )
  const names = readdirSync(dataDir)
  for (const name of names.filter((one) => OWN.test(one))) close(join(dataDir, name))
  for (const folder of FOLDERS.filter((one) => names.includes(one)))
    for (const name of readdirSync(join(dataDir, folder))) close(join(dataDir, folder, name))
  if ((status.mode & OTHERS) === 0) return []
  const isOurs = status.uid === uid && (status.mode & STICKY) === 0 && names.every((name) => OWN.test(name))
  if (isOurs) close(dataDir)
  return isOurs ? [] : [`${dataDir} is open to other users and has other files: chmod 700 it, or use another directory`]
}

function readStatus(dataDir: string, uid: number): Stats | undefined {
  try {
    return statSync(dataDir, { throwIfNoEntry: false })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw error
    throw new WrongDirectory(
      `${dataDir} is closed to user ${uid}: start as its owner, or set DATA_DIR to another directory`,
    )
  }
}

/** Removes the permissions of others; entries of another user, or just removed ones, are skipped. */
function close(path: string): void {
  try {
    const { mode } = statSync(path)
    if ((mode & OTHERS) !== 0) chmodSync(path, mode & ~OTHERS & 0o7777)
  } catch (error) {
    if (!['EPERM', 'ENOENT'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
}
