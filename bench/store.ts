/**
 * store - the redis-server of one measurement: fresh directory on a real disk, unix socket, fsync before each answer
 *
 * Guarantees: every contestant gets the same settings, those of the embedded store; none sees another's data; nothing
 * is left behind.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { redisArguments } from '../cluster/embedded/binary.ts'
import { ROOT } from '../test/support/machine/root.ts'

const MEMORY_BYTES = 8 * 1024 ** 3
const READY_STEPS_MAX = 6000
const READY_STEP_MS = 20
/** `f_type` of tmpfs, on which an fsync costs nothing and a measurement is meaningless. */
const TMPFS = 0x01021994
const SOCKET_PATH_BYTES_MAX = 103
const SCAN_COUNT = 1000

export interface BenchStore {
  readonly socketPath: string
  /** Parent of the data directories of this measurement, which is removed with the store. */
  readonly dir: string
  readonly pid: number
  /** For reads outside of the measurement. */
  readonly client: Redis
  /** Ends it with SIGKILL and reads everything again from its append-only file. */
  reread(): Promise<void>
  /** Ends it and removes its directory. */
  stop(): Promise<void>
}

/** Starts a store. Throws Error when its directory is in memory or its path too long for a socket. */
export async function startStore(): Promise<BenchStore> {
  mkdirSync(join(ROOT, 'data'), { recursive: true })
  const dir = mkdtempSync(join(ROOT, 'data', 'bench-'))
  const socketPath = join(dir, 'redis.sock')
  if (statfsSync(dir).type === TMPFS) throw new Error(`${dir} is in memory: run the benchmark on a disk`)
  if (Buffer.byteLength(socketPath) > SOCKET_PATH_BYTES_MAX) throw new Error(`${socketPath} is too long for a socket`)
  let server = launch(dir)
  const endWithUs = (): void => void server.kill('SIGKILL')
  process.once('exit', endWithUs)
  let client = await connect(socketPath, server)
  return {
    socketPath,
    dir,
    get pid() {
      return server.pid as number
    },
    get client() {
      return client
    },
    async reread() {
      client.disconnect()
      await end(server)
      server = launch(dir)
      client = await connect(socketPath, server)
    },
    async stop() {
      client.disconnect()
      await end(server)
      process.removeListener('exit', endWithUs)
      // A rewrite of the file may have been running; its process ends a moment after its parent.
      rmSync(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    },
  }
}

/** Every key that matches a pattern. */
export async function keysOf(client: Redis, pattern: string): Promise<string[]> {
  const found = new Set<string>()
  for await (const keys of client.scanStream({ match: pattern, count: SCAN_COUNT })) {
    for (const key of keys as string[]) found.add(key)
  }
  return [...found]
}

/** Sum of one reading over keys, in bounded pipelines. */
export async function sumOf(
  client: Redis,
  keys: readonly string[],
  read: (pipeline: ReturnType<Redis['pipeline']>, key: string) => void,
): Promise<number> {
  let sum = 0
  for (let start = 0; start < keys.length; start += SCAN_COUNT) {
    const pipeline = client.pipeline()
    for (const key of keys.slice(start, start + SCAN_COUNT)) read(pipeline, key)
    for (const [error, value] of (await pipeline.exec()) ?? []) {
      if (error) throw error
      sum += Number(value)
    }
  }
  return sum
}

function launch(dir: string): ChildProcess {
  const output = openSync(join(dir, 'redis.log'), 'a')
  const args = redisArguments(dir, 'fsync', { memoryBytes: MEMORY_BYTES })
  return spawn('redis-server', args, { cwd: dir, stdio: ['ignore', output, output] })
}

/** Waits until the store answers and has read its file. */
async function connect(socketPath: string, server: ChildProcess): Promise<Redis> {
  const client = new Redis({ path: socketPath, lazyConnect: true, retryStrategy: null, maxRetriesPerRequest: 0 })
  client.on('error', () => undefined)
  for (let step = 0; step < READY_STEPS_MAX; step++) {
    if (server.exitCode !== null) throw new Error(`redis-server ended: ${readLog(socketPath)}`)
    const answer = await client
      .connect()
      .then(() => client.ping())
      .catch(() => '')
    if (answer === 'PONG') return client
    client.disconnect()
    await pause(READY_STEP_MS)
  }
  throw new Error('redis-server does not answer')
}

function readLog(socketPath: string): string {
  return readFileSync(join(socketPath, '..', 'redis.log'), 'utf8').slice(-1000)
}

async function end(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  const gone = once(server, 'exit')
  server.kill('SIGKILL')
  await gone
}

/** Keys of one kind: `{s017}:head:<server>:<segment>` is of the family `head`. */
export interface Family {
  readonly keys: number
  readonly bytes: number
}

/** Keys and bytes (MEMORY USAGE of every element) of each family. */
export async function measureFamilies(client: Redis): Promise<Map<string, Family>> {
  const names = new Map<string, string[]>()
  for (const key of await keysOf(client, '*')) {
    const name = key.split(':')[1] ?? key
    const known = names.get(name)
    if (known === undefined) names.set(name, [key])
    else known.push(key)
  }
  const families = new Map<string, Family>()
  for (const [name, keys] of names) {
    const bytes = await sumOf(client, keys, (pipeline, key) => pipeline.memory('USAGE', key, 'SAMPLES', 0))
    families.set(name, { keys: keys.length, bytes })
  }
  return families
}

/** One field of INFO as a number. */
export async function readInfo(client: Redis, section: string, field: string): Promise<number> {
  const value = new RegExp(`^${field}:(\\S+)`, 'm').exec(await client.info(section))?.[1]
  if (value === undefined) throw new Error(`INFO ${section} says nothing of ${field}`)
  return Number(value)
}
