/** directory-lock - one holder at a time for a directory, for as long as the holder's process lives.
 *
 *  Linux: a listening unix socket in the abstract name space, named by the directory's device and inode. The kernel
 *  takes the name back when the last descriptor closes, however the process ends, so there is nothing stale to judge
 *  and nothing to unlink (a socket or pid file on disk needs "is it stale? remove it", and two that ask at once both
 *  remove). The inode makes it independent of the path by which the directory was reached. macOS and BSD: a file
 *  opened with O_EXLOCK, which is flock(2) and ends the same way.
 *
 *  Guarantees: the lock is a descriptor, so it can be inherited: a child that gets `fd` keeps the directory locked
 *  after its parent was killed. The abstract name space belongs to a network name space: the directory must not be
 *  shared by containers that start at the same moment.
 */
import { close, constants, open, statSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** O_EXLOCK of macOS and the BSDs; node:fs passes it on but has no name for it. */
const O_EXLOCK = 0x20

export interface DirectoryLock {
  /** The descriptor that is the lock: give it to a child and the child holds it too. */
  fd: number
  /** Gives up this process's part; a child that inherited `fd` still holds the lock. */
  release(): Promise<void>
}

/**
 * Takes the lock of an existing directory without waiting.
 * @returns the lock, or null while another process holds it; other errors of the system are thrown
 */
export async function lockDirectory(directory: string): Promise<DirectoryLock | null> {
  return process.platform === 'linux' ? lockByName(directory) : lockByFile(directory)
}

async function lockByName(directory: string): Promise<DirectoryLock | null> {
  const { dev, ino } = statSync(directory)
  const listener = net.createServer()
  const taken = await new Promise<boolean>((resolve, reject) => {
    listener.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(false)
      else reject(error)
    })
    listener.listen({ path: `\0embedded-redis-${dev}-${ino}`, exclusive: true }, () => resolve(true))
  })
  if (!taken) return null
  // The handle's number is not in the documented interface; a descriptor is what spawn() hands to a child.
  const { fd } = (listener as unknown as { _handle: { fd: number } })._handle
  return { fd, release: () => new Promise((resolve) => listener.close(() => resolve())) }
}

async function lockByFile(directory: string): Promise<DirectoryLock | null> {
  const flags = constants.O_RDWR | constants.O_CREAT | constants.O_NONBLOCK | O_EXLOCK
  try {
    const fd = await promisify(open)(join(directory, 'redis.lock'), flags, 0o600)
    return { fd, release: () => promisify(close)(fd) }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return null
    throw error
  }
}
