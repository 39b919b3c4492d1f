/** start - `sendwright start`: runs the service until a signal or its own end.
 *
 *  States: starting | running | stopping. A first SIGTERM, SIGINT or SIGQUIT stops it (exit 0), a second one ends it
 *  at once (exit 1). A stop that takes longer than 10 s is given up (exit 1). Ctrl-C under `npm start` comes twice,
 *  from the terminal and passed on by npm: it counts once.
 */
import { closeSync, openSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import type { RunningService } from '../main.ts'
import { type Config, readConfig } from '../process/config.ts'
import { WrongFile } from '../process/named-file.ts'
import { provideRedis } from '../store/provide-redis.ts'
import { isAgreed } from './console/agreed.ts'

const STOP_MS_MAX = 10_000
/** 200 connections of each listener, those of deliveries and webhooks, and those of Node and the store. */
const DESCRIPTORS_MIN = 1024
/**
 * A process group gets a signal from the terminal or its supervisor and again from npm. A deliberate second signal
 * comes after this.
 */
const REPEAT_MS_MAX = 500
/** Levels of the log at which a failed start prints its stack. */
const DETAILED: readonly string[] = ['debug', 'trace']

export interface StartOptions {
  readonly acceptServiceDomain?: boolean
  /** Whether a missing redis-server is installed without a question. */
  readonly installRedis?: boolean
  /** Whether mail is neither sent nor received. */
  readonly testOnly?: boolean
}

/** Starts the service with the environment's settings. Resolves with the exit code; 2 when a setting is wrong. */
export async function start(options: StartOptions = {}): Promise<number> {
  const { acceptServiceDomain = false, installRedis = false, testOnly = false } = options
  return await run(async (settings) => {
    const config = testOnly ? { ...settings, mxPort: 0 } : settings
    await provideRedis(config, { isOrdered: installRedis, ask: isAgreed })
    const { startService } = await import('../main.ts')
    return await startService(config, { isWatched: true, acceptDomain: acceptServiceDomain, isTestOnly: testOnly })
  })
}

/** Runs the Redis of DATA_DIR alone, which listens on `port` of the loopback too. Resolves as `start` does. */
export async function startStore(port: number): Promise<number> {
  return await run(async (config) => {
    await provideRedis(config, { isOrdered: false, ask: isAgreed })
    const { runStore } = await import('../store/run-store.ts')
    return await runStore(config, port)
  })
}

async function run(begin: (config: Config) => Promise<RunningService>): Promise<number> {
  const result = readConfig()
  if (!result.ok) return refuse(result.mistakes)
  try {
    requireDescriptors()
    return await runUntilStopped(() => begin(result.config))
  } catch (error) {
    if (error instanceof WrongFile) return refuse([error.message])
    // For a taken port or an unreachable store, the sentence is for the operator, the stack for debugging.
    console.error(`Cannot run: ${(error as Error).message}`)
    if (DETAILED.includes(result.config.logLevel)) console.error((error as Error).stack)
    return 1
  }
}

function refuse(mistakes: readonly string[]): number {
  console.error(['Wrong settings:', ...mistakes.map((mistake) => `  ${mistake}`)].join('\n'))
  return 2
}

/** Throws if the limit of open files is too low for the listeners, deliveries and the store together. */
function requireDescriptors(): void {
  const most = descriptorsMax()
  if (most >= DESCRIPTORS_MIN) return
  throw new Error(
    `The limit of open files is ${most}, but ${DESCRIPTORS_MIN} are required: raise it with ulimit -n ${DESCRIPTORS_MIN}, or LimitNOFILE= in the unit`,
  )
}

/** The limit of open files of this process; unbounded if unknown. */
function descriptorsMax(): number {
  try {
    const [, soft = ''] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return soft === '' ? Number.POSITIVE_INFINITY : Number(soft)
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

/**
 * Runs a service and turns signals into its stop.
 * @returns the exit code; errors of `startService` are thrown
 */
export async function runUntilStopped(startService: () => Promise<RunningService>): Promise<number> {
  let wasAsked = false
  let stopNow: (code: null) => void = () => undefined
  const asked = new Promise<null>((resolve) => {
    stopNow = resolve
  })
  let askedAtMs = Number.NEGATIVE_INFINITY
  const onSignal = (): void => {
    if (performance.now() - askedAtMs < REPEAT_MS_MAX) return
    askedAtMs = performance.now()
    if (wasAsked) process.exit(1)
    wasAsked = true
    stopNow(null)
  }
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGQUIT'] as const) process.on(signal, onSignal)
  // SIGHUP from a terminal means that it was closed. From a service manager it means reload (certificate-watch.ts).
  process.on('SIGHUP', hasTerminal() ? onSignal : () => undefined)
  const service = await startService()
  const code = await Promise.race([service.exited, asked])
  if (code !== null) return code
  return await Promise.race([service.stop().then(() => 0), givenUp()])
}

/** Whether the process has a controlling terminal, even if its standard streams are redirected. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}

async function givenUp(): Promise<number> {
  await pause(STOP_MS_MAX)
  console.error(`Not stopped within ${STOP_MS_MAX / 1000} s: exiting`)
  return 1
}
