/**
 * binary - finds the redis-server to run, and builds its settings.
 *
 * Guarantees: the result is at least Redis 7.0 or Valkey 7.2. Nothing is installed.
 */
import { execFile } from 'node:child_process'
import { totalmem } from 'node:os'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** The two suitable programs, in the order in which they are tried, with their oldest version. */
const PROGRAMS = [
  { command: 'redis-server', versionMin: [7, 0] },
  { command: 'valkey-server', versionMin: [7, 2] },
] as const

const VERSION_MS_MAX = 10_000
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

/** Logger of the embedded store; a pino logger is one. */
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
 * Finds redis-server or valkey-server on the PATH.
 * @throws Error with the install command if there is none, or only one that is too old
 */
export async function findRedisBinary(): Promise<RedisBinary> {
  const found = await searchRedis()
  if (found) return found
  throw new Error(`No redis-server or valkey-server on the PATH. ${INSTALL_LINES}`)
}

/** The same; null when there is none. @throws Error when there is only one that is too old */
export async function searchRedis(): Promise<RedisBinary | null> {
  for (const { command, versionMin } of PROGRAMS) {
    const text = await askVersion(command)
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

/**
 * The settings of the embedded store as arguments of redis-server. Names are relative to `directory`, so the limit of
 * 107 bytes on a socket's path never binds the server.
 * @param more.memoryBytes the ceiling; by default half of the memory of this machine or its cgroup
 * @param more.port a port of the loopback beside the socket
 */
export function redisArguments(
  directory: string,
  durability: Durability,
  { memoryBytes = memoryBytesDefault(), port = 0 }: { memoryBytes?: number; port?: number } = {},
): string[] {
  const settings: Record<string, string> = {
    dir: directory,
    // The port for processes of this machine that use a URL; 0 means the socket only.
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

/** Half of the memory of this machine or its cgroup. */
export function memoryBytesDefault(): number {
  const limit = process.constrainedMemory()
  const total = limit > 0 ? Math.min(limit, totalmem()) : totalmem()
  return Math.max(MEMORY_BYTES_MIN, Math.floor(total * MEMORY_SHARE))
}

/** The version that a program prints, or null if there is no such program on the PATH. */
async function askVersion(command: string): Promise<string | null> {
  try {
    return (await run(command, ['--version'], { timeout: VERSION_MS_MAX })).stdout
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}
