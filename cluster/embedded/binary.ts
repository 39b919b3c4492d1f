/** redis-binary - finds the redis-server to run, installs it where that is allowed, and says with which settings.
 *
 *  Guarantees: what is found is Redis 7.0 or Valkey 7.2 at least. Nothing is installed unless this is root on a system
 *  with apt-get, and then the log says so.
 */
import { execFile } from 'node:child_process'
import { totalmem } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { lockDirectory } from './directory-lock.ts'

const run = promisify(execFile)

/** The two programs that speak what we need, in the order in which they are tried, with their oldest version. */
const PROGRAMS = [
  { command: 'redis-server', versionMin: [7, 0] },
  { command: 'valkey-server', versionMin: [7, 2] },
] as const

/** A mirror that does not answer must not hold a start for ever. */
const INSTALL_MS_MAX = 300_000
/** How often a process looks whether another one has finished its installation, and how often at most. */
const INSTALL_STEP_MS = 100
const INSTALL_STEPS_MAX = (2 * INSTALL_MS_MAX) / INSTALL_STEP_MS
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024
/** Half of the machine is left to AOF rewrites (copy on write), to Node and to the page cache. */
const MEMORY_SHARE = 0.5
/**
 * A busy minute writes more than Redis's own 64 MB; a rewrite delays every fsync beside it. Read back in a few seconds.
 */
const REWRITE_BYTES_MIN = 256 * 1024 * 1024
const MEMORY_BYTES_MIN = 64 * 1024 * 1024

const INSTALL_LINES = `Install one with
  Debian, Ubuntu:  apt-get install redis-server
  Fedora:          dnf install valkey
  Alpine:          apk add redis
  macOS:           brew install redis`

/** `fsync`: on disk before an answer. `memory`: within about a second. `replica`: on disk and in replicas. */
export type Durability = 'fsync' | 'memory' | 'replica'

/** What the embedded store writes to; a pino logger is one. */
export interface StoreLog {
  info(facts: object, text: string): void
  warn(facts: object, text: string): void
  error(facts: object, text: string): void
}

export interface RedisBinary {
  command: string
  version: string
}

/**
 * Finds redis-server or valkey-server on the PATH, installing redis-server with apt-get when this is root on a
 * Debian-like system and neither is there.
 * @throws Error with the line to run when there is none, or only one that is too old
 */
export async function findRedisBinary(log: StoreLog): Promise<RedisBinary> {
  const found = await searchPath()
  if (found) return found
  const installed = process.getuid?.() === 0 ? await installAlone(log) : null
  if (installed) return installed
  throw new Error(`No redis-server or valkey-server on the PATH. ${INSTALL_LINES}`)
}

/**
 * The settings of the embedded store as arguments of redis-server. Names are relative to `directory`, so the limit of
 * 107 bytes on a socket's path never binds the server.
 * @param more.memoryBytes the ceiling; by default half of what this machine or its cgroup has
 * @param more.port a port of the loopback beside the socket
 */
export function redisArguments(
  directory: string,
  durability: Durability,
  { memoryBytes = memoryBytesDefault(), port = 0 }: { memoryBytes?: number; port?: number } = {},
): string[] {
  const settings: Record<string, string> = {
    dir: directory,
    // Beside the socket, where processes of this machine reach it by a URL; 0: not at all.
    port: String(port),
    bind: '127.0.0.1',
    unixsocket: 'redis.sock',
    unixsocketperm: '700',
    pidfile: 'redis.pid',
    daemonize: 'no',
    save: '',
    appendonly: 'yes',
    appendfsync: appendFsync(durability),
    'no-appendfsync-on-rewrite': 'no',
    'auto-aof-rewrite-min-size': String(REWRITE_BYTES_MIN),
    maxmemory: String(memoryBytes),
    'maxmemory-policy': 'noeviction',
    'lazyfree-lazy-expire': 'yes',
    // Both would keep the arguments of commands, and those can be personal data that an erasure must reach.
    'slowlog-log-slower-than': '-1',
    'crash-log-enabled': 'no',
  }
  return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value])
}

/** The value of `appendfsync` that a durability needs at least. */
export function appendFsync(durability: Durability): 'always' | 'everysec' {
  return durability === 'memory' ? 'everysec' : 'always'
}

/** Half of what this machine or its cgroup has. */
export function memoryBytesDefault(): number {
  const limit = process.constrainedMemory()
  const total = limit > 0 ? Math.min(limit, totalmem()) : totalmem()
  return Math.max(MEMORY_BYTES_MIN, Math.floor(total * MEMORY_SHARE))
}

async function searchPath(): Promise<RedisBinary | null> {
  for (const { command, versionMin } of PROGRAMS) {
    const text = await outputOf(command, ['--version'])
    if (text === null) continue
    const [, version = '', major, minor] = /v=((\d+)\.(\d+)[^ ]*)/.exec(text) ?? []
    const isNew = Number(major) > versionMin[0] || (Number(major) === versionMin[0] && Number(minor) >= versionMin[1])
    if (!isNew)
      throw new Error(
        `${command} ${version || 'of unknown version'} is too old: ${versionMin.join('.')} or newer is required`,
      )
    return { command, version }
  }
  return null
}

/** Standard output of a program, or null when there is no such program on the PATH. */
async function outputOf(command: string, args: string[]): Promise<string | null> {
  try {
    return (await run(command, args, { timeout: INSTALL_MS_MAX, maxBuffer: OUTPUT_BYTES_MAX })).stdout
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** Installs redis-server, or waits for the process that does: two apt-gets at once stop each other. */
async function installAlone(log: StoreLog): Promise<RedisBinary | null> {
  for (let step = 0; step < INSTALL_STEPS_MAX; step++) {
    const lock = await lockDirectory('/')
    if (lock !== null) {
      try {
        const found = await searchPath()
        if (found) return found
        return (await installWithApt(log)) ? await searchPath() : null
      } finally {
        await lock.release()
      }
    }
    await pause(INSTALL_STEP_MS)
  }
  return null
}

async function installWithApt(log: StoreLog): Promise<boolean> {
  if ((await outputOf('apt-get', ['--version'])) === null) return false
  log.info({}, 'No redis-server on this machine: installing it with apt-get')
  // Said with env(1), so that this folder reads no environment of its own.
  const apt = ['DEBIAN_FRONTEND=noninteractive', 'apt-get', '-q', '-y']
  await outputOf('env', [...apt, 'update'])
  await outputOf('env', [...apt, 'install', '--no-install-recommends', 'redis-server'])
  log.info({}, 'Installed redis-server; a service that the package starts on port 6379 is not used and may be disabled')
  return true
}
