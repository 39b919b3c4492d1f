/**
 * folder-sync - new names are put on the disk: one fsync of a directory for all who wait for it
 *
 * An fsync in progress may miss a name created since, so callers that arrive during one share the next.
 */

import { open } from 'node:fs/promises'

/** Makes what syncs a directory; resolves once every name that it had at the call is on the disk. */
export function makeFolderSync(
  sync: (folder: string) => Promise<void> = syncFolder,
): (folder: string) => Promise<void> {
  const running = new Map<string, Promise<void>>()
  const next = new Map<string, Promise<void>>()
  const begin = (folder: string): Promise<void> => {
    const one = sync(folder).finally(() => {
      if (running.get(folder) === one) running.delete(folder)
    })
    running.set(folder, one)
    return one
  }
  return (folder) => {
    const waited = next.get(folder)
    if (waited !== undefined) return waited
    const before = running.get(folder)
    if (before === undefined) return begin(folder)
    const after = before
      .catch(() => undefined)
      .then(() => {
        next.delete(folder)
        return begin(folder)
      })
    next.set(folder, after)
    return after
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
