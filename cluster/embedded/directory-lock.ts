/**
 * directory-lock - one holder at a time for a directory, for as long as the holder's process lives.
 *
 * On Linux it is a listening unix socket in the directory, `redis.lock.<n>`. Only the highest n counts. A connection
 * to it succeeds, or waits, while a process has it open, and is refused once that process has ended in any way. Only
 * users who may write in the directory can create one. On macOS and BSD it is a file opened with O_EXLOCK, which is
 * flock(2).
 *
 * States of a socket: draft (it listens under a name of its own) -> linked as n + 1, once n is known to be dead ->
 * held, if no higher number exists by then; otherwise it is given up, and everything is checked again. A release that
 * leaves no holder puts an empty file under n + 1 in place of the dead socket, so that a stopped directory has no
 * socket in it to copy.
 *
 * Guarantees: the lock is a descriptor, so it can be inherited, and a child that gets `fd` keeps the directory locked
 * after its parent was killed. Two processes that try at once never both hold it, because link(2) creates a name only
 * if it does not exist, and the highest number never falls: it is not removed, not even by its release, and its holder
 * removes lower ones. An outdated judgement of n therefore ends in a number below the highest, which is not a lock.
 */
import { randomUUID } from 'node:crypto'
import { close, constants, linkSync, open, readdirSync, rmSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** O_EXLOCK of macOS and the BSDs; node:fs passes it on but has no name for it. */
const O_EXLOCK = 0x20
const NAME = /^redis\.lock\.(\d{1,15})$/
const DRAFT = 'redis.lock-'
/** After losing this many races, a process leaves the lock to the others. */
const TRIES_MAX = 10

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
  return process.platform === 'linux' ? lockBySocket(directory) : lockByFile(directory)
}

async function lockBySocket(directory: string): Promise<DirectoryLock | null> {
  const directoryFd = await promisify(open)(directory, constants.O_RDONLY | constants.O_DIRECTORY)
  // Through its descriptor a directory has a short path, even if it is moved in the meantime.
  const place = `/proc/self/fd/${directoryFd}`
  let listener: net.Server | null = null
  let number = 0
  try {
    for (let tries = 0; tries < TRIES_MAX && listener === null; tries++) {
      const highest = highestIn(place)
      if (highest > 0 && (await isHeld(nameOf(place, highest)))) break
      number = highest + 1
      listener = await take(place, number)
    }
  } finally {
    if (listener === null) await promisify(close)(directoryFd)
  }
  if (listener === null) return null
  const taken = listener
  return {
    fd: fdOf(taken),
    async release() {
      await closed(taken)
      try {
        if (!(await isHeld(nameOf(place, number)))) retire(place, number)
      } catch {
        // A leftover socket holds no lock. An error of a full disk here must not hide an error of the work under the
        // lock.
      } finally {
        await promisify(close)(directoryFd)
      }
    },
  }
}

/** Puts an empty file of the next number in the place of a dead socket, unless another process was faster. */
function retire(place: string, number: number): void {
  try {
    writeFileSync(nameOf(place, number + 1), '', { flag: 'wx', mode: 0o600 })
    rmSync(nameOf(place, number), { force: true })
  } catch (error) {
    // The next holder has this number already, or the directory was removed.
    if (!['EEXIST', 'ENOENT'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
}

/** Listens under a number. Returns null if another process now has that number or a higher one. */
async function take(place: string, number: number): Promise<net.Server | null> {
  const draft = join(place, `${DRAFT}${randomUUID()}`)
  const listener = await listen(draft)
  try {
    const isTaken = link(draft, nameOf(place, number)) && highestIn(place) === number
    rmSync(draft, { force: true })
    if (isTaken) {
      clear(place, number)
      return listener
    }
  } catch (error) {
    await closed(listener)
    throw error
  }
  await closed(listener)
  return null
}

/** Removes the numbers below the current one, and drafts. */
function clear(place: string, number: number): void {
  for (const name of readdirSync(place)) {
    // The draft of another process that is on its way: it cannot be linked then, and that process looks again.
    const isOver = name.startsWith(DRAFT) || (numberOf(name) > 0 && numberOf(name) < number)
    if (isOver) rmSync(join(place, name), { force: true })
  }
}

/** Whether the new name was made; false if it exists, or the draft was removed. */
function link(draft: string, name: string): boolean {
  try {
    linkSync(draft, name)
    return true
  } catch (error) {
    if (['EEXIST', 'ENOENT'].includes((error as NodeJS.ErrnoException).code ?? '')) return false
    throw error
  }
}

function highestIn(place: string): number {
  return Math.max(0, ...readdirSync(place).map(numberOf))
}

function nameOf(place: string, number: number): string {
  return join(place, `redis.lock.${number}`)
}

function numberOf(name: string): number {
  return Number(NAME.exec(name)?.[1] ?? 0)
}

/** Whether a process has the socket open. A holder that accepts nothing has its queue full: EAGAIN. */
function isHeld(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EAGAIN') resolve(true)
      else if (error.code === 'ECONNREFUSED' || error.code === 'ENOENT') resolve(false)
      else reject(error)
    })
  })
}

function listen(path: string): Promise<net.Server> {
  return new Promise((resolve, reject) => {
    const listener = net.createServer((socket) => socket.destroy())
    listener.once('error', reject)
    listener.listen({ path, backlog: 1, exclusive: true }, () => resolve(listener))
  })
}

/** The handle's number is not in the documented interface; a descriptor is what spawn() hands to a child. */
function fdOf(listener: net.Server): number {
  return (listener as unknown as { _handle: { fd: number } })._handle.fd
}

function closed(listener: net.Server): Promise<void> {
  return new Promise((resolve) => listener.close(() => resolve()))
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
