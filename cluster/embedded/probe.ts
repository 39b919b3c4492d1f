/**
 * probe - finds out which process answers on a redis socket, and whether it is our own.
 *
 * States: `absent` without a listener; `silent` if a listener does not answer in time (frozen, or stalled); `foreign`
 * for a redis that works in another directory; `loading` for ours while it reads its files; `ready` for ours.
 */
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'

/** A healthy redis answers in microseconds; a stalled fsync of a slow disk may take seconds. */
const ANSWER_MS_MAX = 2500

/** A probe's finding. `client` of `ready` is an open connection that belongs to the caller. */
export type Probe =
  | { state: 'absent' | 'silent' | 'loading' }
  | { state: 'foreign'; directory: string }
  | { state: 'ready'; client: Redis }

/**
 * Asks the redis behind `socketPath` for its directory and whether it serves.
 * @returns a state, never an exception for anything that the other side does
 */
export async function probeRedis(socketPath: string, directory: string): Promise<Probe> {
  const client = connectOnce(socketPath)
  let socketCode: string | undefined
  client.on('error', (error: NodeJS.ErrnoException) => {
    socketCode = error.code
  })
  try {
    await client.connect()
    const [, workingDirectory = ''] = (await client.config('GET', 'dir')) as string[]
    if (!isSameDirectory(workingDirectory, directory)) {
      client.disconnect()
      return { state: 'foreign', directory: workingDirectory }
    }
    await client.ping()
    return { state: 'ready', client }
  } catch (error) {
    // On a connection that has ended it would only set a timer, which keeps the process for two seconds.
    if (client.status !== 'end') client.disconnect()
    if (String((error as Error).message).startsWith('LOADING')) return { state: 'loading' }
    return { state: socketCode === 'ENOENT' || socketCode === 'ECONNREFUSED' ? 'absent' : 'silent' }
  }
}

/**
 * The process id of a living redis or valkey that works in `directory`: that of its pid file, otherwise any. Only Linux
 * has this (`/proc`); elsewhere the result is null and the directory's lock alone decides.
 */
export function livingRedisPid(directory: string): number | null {
  const named = Number.parseInt(readText(join(directory, 'redis.pid')) ?? '', 10)
  if (worksIn(named, directory)) return named
  // One that was started by hand has written no pid file here.
  for (const name of processNames()) if (worksIn(Number(name), directory)) return Number(name)
  return null
}

/** The process id of a redis whose working directory was `directory` until it was deleted; or null. */
export function strandedRedisPid(directory: string): number | null {
  for (const name of processNames())
    if (isRedis(Number(name)) && readLink(`/proc/${name}/cwd`) === `${directory} (deleted)`) return Number(name)
  return null
}

function processNames(): string[] {
  try {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  } catch {
    return []
  }
}

function worksIn(pid: number, directory: string): boolean {
  if (!isRedis(pid)) return false
  const at = readLink(`/proc/${pid}/cwd`)
  return at !== null && isSameDirectory(at, directory)
}

function isRedis(pid: number): boolean {
  return Number.isInteger(pid) && /^(redis|valkey)-server/.test(readText(`/proc/${pid}/comm`) ?? '')
}

/** Null if the file or the process does not exist, or belongs to another user. */
function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}

function readLink(path: string): string | null {
  try {
    return readlinkSync(path)
  } catch {
    return null
  }
}

/** A connection that does not reconnect and keeps no commands for later. */
function connectOnce(path: string): Redis {
  return new Redis({
    path,
    lazyConnect: true,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    enableReadyCheck: false,
    autoResendUnfulfilledCommands: false,
    disableClientInfo: true,
    connectTimeout: ANSWER_MS_MAX,
    commandTimeout: ANSWER_MS_MAX,
  })
}

function isSameDirectory(one: string, other: string): boolean {
  if (one === other) return true
  const [a, b] = [one, other].map((path) => statSync(path, { throwIfNoEntry: false }))
  return a !== undefined && b !== undefined && a.dev === b.dev && a.ino === b.ino
}
