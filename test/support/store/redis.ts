/** redis - a real redis-server for one test file: own directory, unix socket, the settings of the embedded one. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Durability, findRedisBinary, type RedisBinary, redisArguments } from '../../../cluster/embedded/binary.ts'
import { probeRedis } from '../../../cluster/embedded/probe.ts'
import { until } from '../machine/until.ts'

const READY_MS_MAX = 60_000

let found: Promise<RedisBinary> | null = null

export interface TestRedis {
  socketPath: string
  dir: string
  /** Process id of the redis that runs now. */
  readonly pid: number
  /** Sends a signal; after SIGKILL it resolves once the process has gone. */
  kill(signal: NodeJS.Signals): Promise<void>
  /** Starts it again on the same files, after ending it with SIGKILL if it still runs. */
  restart(): Promise<void>
  /** Ends it and removes its directory. */
  stop(): Promise<void>
}

/**
 * Starts a redis-server with an append-only file, fsynced on every write unless `durability` differs.
 *
 * @param options.memoryBytes its maxmemory, default 256 MiB
 * @param options.settings further settings by name, which win
 */
export async function startRedis(
  options: { durability?: Durability; memoryBytes?: number; settings?: Record<string, string> } = {},
): Promise<TestRedis> {
  const dir = mkdtempSync(join(process.env.STORES_DIR ?? tmpdir(), 'sendwright-test-'))
  const socketPath = join(dir, 'redis.sock')
  const memoryBytes = options.memoryBytes ?? 256 * 1024 * 1024
  const args = [
    ...redisArguments(dir, options.durability ?? 'fsync', { memoryBytes }),
    ...Object.entries(options.settings ?? {}).flatMap(([name, value]) => [`--${name}`, value]),
  ]
  const { command } = await binary()
  let child = await launch(command, args, dir)
  // No end of the test may leave a redis behind.
  const endWithUs = (): void => void child.kill('SIGKILL')
  process.once('exit', endWithUs)

  async function end(): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }

  return {
    socketPath,
    dir,
    get pid() {
      return child.pid as number
    },
    async kill(signal) {
      if (signal === 'SIGKILL') await end()
      else child.kill(signal)
    },
    async restart() {
      await end()
      child = await launch(command, args, dir)
    },
    async stop() {
      await end()
      process.removeListener('exit', endWithUs)
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** The program of the embedded store, looked for once. */
function binary(): Promise<RedisBinary> {
  found ??= findRedisBinary()
  return found
}

async function launch(command: string, args: string[], dir: string): Promise<ChildProcess> {
  const output = openSync(join(dir, 'redis.log'), 'a')
  const child = spawn(command, args, { cwd: dir, stdio: ['ignore', output, output] })
  closeSync(output)
  await once(child, 'spawn')
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`${command} ended\n${readFileSync(join(dir, 'redis.log'), 'utf8')}`)
    const probe = await probeRedis(join(dir, 'redis.sock'), dir)
    if (probe.state === 'ready') probe.client.disconnect()
    return probe.state === 'ready'
  }, READY_MS_MAX)
  return child
}
