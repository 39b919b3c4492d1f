/**
 * provide-redis - installs redis-server for `npm start` on a machine without one.
 *
 * Guarantees: an installation happens only as root on a system with apt-get, if no Redis is on the PATH, and one of
 * these holds: the user has agreed on the terminal; --install-redis is given; or there is no terminal and the machine
 * is a temporary one, such as CI or a container. A Redis service that the package starts is stopped and disabled,
 * unless one ran before. If several processes start at once, one installs.
 */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { searchRedis } from '../../cluster/embedded/binary.ts'
import { lockDirectory } from '../../cluster/embedded/directory-lock.ts'
import { type Config, isContinuousIntegration } from '../process/config.ts'

/** A mirror that does not answer must not hold a start for ever. */
const INSTALL_MS_MAX = 300_000
/** How often a process checks whether another one has finished its installation. */
const STEP_MS = 100
const STEPS_MAX = (2 * INSTALL_MS_MAX) / STEP_MS
const CONNECT_MS_MAX = 1_000
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024
/** Root's alone, and gone with the next boot. */
const LOCK_DIRECTORY = '/run/sendwright-install'
/** There if systemd is the machine's init (sd_booted(3)): containers have another one, or none. */
const BOOTED_WITH_SYSTEMD = '/run/systemd/system'

export interface ProvideOptions {
  /** --install-redis is given. */
  readonly isOrdered: boolean
  /** Asks on the terminal. */
  readonly ask: (question: string) => Promise<boolean>
}

/**
 * Installs redis-server if the settings need an embedded Redis and it is not installed. Without apt-get, or as another
 * user than root, it does nothing: the store names the command for each system.
 * @throws Error with the commands to choose from, if the user has not agreed
 */
export async function provideRedis(
  { redisUrls, dataDir }: Pick<Config, 'redisUrls' | 'dataDir'>,
  { isOrdered, ask }: ProvideOptions,
): Promise<void> {
  if (redisUrls.length > 0 || (await searchRedis()) !== null || (await answers(join(dataDir, 'redis.sock')))) return
  if (process.getuid?.() !== 0 || (await runForExitCode('apt-get', ['--version'])) !== 0) return
  if (!isOrdered && !(await mayInstall(ask)))
    throw new Error(
      'redis-server is not installed: run `apt-get install redis-server`, or start with --install-redis (`npm start -- --install-redis`)',
    )
  await installAlone()
}

/** Whether a Redis listens on a socket: it is adopted. One that was killed leaves the file, and does not answer. */
function answers(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath)
    socket.setTimeout(CONNECT_MS_MAX, () => socket.destroy())
    socket.once('connect', () => {
      resolve(true)
      socket.destroy()
    })
    // EAGAIN: its queue is full.
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code === 'EAGAIN'))
    socket.once('close', () => resolve(false))
  })
}

async function mayInstall(ask: ProvideOptions['ask']): Promise<boolean> {
  // CI may have a terminal without a user.
  if (isContinuousIntegration()) return true
  if (process.stdin.isTTY === true) return await ask('redis-server is not installed. Install it with apt-get now?')
  return !existsSync(BOOTED_WITH_SYSTEMD)
}

/** Installs it, or waits for the process that does: because two apt-gets at once block each other. */
async function installAlone(): Promise<void> {
  mkdirSync(LOCK_DIRECTORY, { recursive: true, mode: 0o700 })
  for (let step = 0; step < STEPS_MAX; step++) {
    const lock = await lockDirectory(LOCK_DIRECTORY)
    if (lock !== null) {
      try {
        if ((await searchRedis()) === null) await install()
        return
      } finally {
        await lock.release()
      }
    }
    await pause(STEP_MS)
  }
  throw new Error('Another process is installing redis-server and has not finished')
}

async function install(): Promise<void> {
  const ranBefore = (await runForExitCode('service', ['redis-server', 'status'])) === 0
  console.error('Installing redis-server with apt-get ...')
  await run('apt-get', ['-q', '-y', 'update'])
  await run('apt-get', ['-q', '-y', 'install', '--no-install-recommends', 'redis-server'])
  if (ranBefore) return
  // Sendwright runs its own Redis: the one on port 6379 would only use memory. Both commands work with systemd.
  await runForExitCode('service', ['redis-server', 'stop'])
  await runForExitCode('update-rc.d', ['redis-server', 'disable'])
  console.error('Installed redis-server. The service on port 6379 that the package starts is stopped and disabled')
}

/** Rejects with the output of the program if it fails. */
async function run(command: string, args: readonly string[]): Promise<void> {
  // Set with env(1): because only one file may read the environment.
  const named = ['DEBIAN_FRONTEND=noninteractive', command, ...args]
  await promisify(execFile)('env', named, { timeout: INSTALL_MS_MAX, maxBuffer: OUTPUT_BYTES_MAX })
}

/** Null when there is no such program on the PATH. */
async function runForExitCode(command: string, args: readonly string[]): Promise<number | null> {
  return await run(command, args).then(
    () => 0,
    (error: { code?: unknown }) => (typeof error.code === 'number' ? error.code : null),
  )
}
