/**
 * start - seconds from `npm start` to the first 200, fresh and after kill -9, and the cost of an idle process
 *
 * It starts the built service as a user would, with the Redis that it runs itself. After the kill that Redis lives on
 * and is adopted. The first start of all is not counted: it may compile.
 */

import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { ROOT } from '../../test/support/machine/root.ts'
import { until } from '../../test/support/machine/until.ts'
import { freePort } from '../free-port.ts'
import { childEnvironment } from '../load/wrk.ts'
import { formatNumber, formatTable } from '../table.ts'
import { residentBytes, shareOfCore } from '../usage.ts'

const START_MS_MAX = 120_000
const STOP_MS_MAX = 15_000
/** After the first answer the process still loads the parts that were not needed for it. */
const CALM_MS = 5000
const IDLE_MS = 10_000
const START_TARGET_SECONDS = 2
const CPU_TARGET_PERCENT = 1
const RSS_TARGET_MB = 150
const MB = 1024 * 1024

export type Command = readonly [string, ...string[]]
const NPM: Command = ['npm', 'start']
/** The service as a unit starts it. */
export const NODE: Command = [process.execPath, 'src/service/launch.mjs', 'start']

/** A data directory with its ports. */
export interface Place {
  readonly dir: string
  readonly port: number
  readonly environment: NodeJS.ProcessEnv
}

/** Starts and kills it the given number of times, measures an idle process, and prints the best of each. */
export async function benchStart(rounds: number): Promise<void> {
  await withPlace(async (place) => {
    const { child } = await start(NODE, place)
    await stop(child, place)
  })
  const fresh: number[] = []
  const killed: number[] = []
  for (let round = 0; round < rounds; round++) {
    await withPlace(async (place) => {
      const first = await start(NPM, place)
      fresh.push(first.seconds)
      await kill(first.child)
      const second = await start(NPM, place)
      killed.push(second.seconds)
      await stop(second.child, place)
    })
  }
  const { cpuPercent, rssMb, storePercent } = await withPlace(measureIdle)
  const verdict = (value: number, max: number): string => (value <= max ? 'reached' : 'missed')
  const row = (what: string, values: readonly number[], max: number): string[] => {
    const best = Math.min(...values)
    return [what, formatNumber(best, 2), `<= ${max}`, verdict(best, max)]
  }
  console.log(
    formatTable([
      [`start, best of ${rounds}`, 'is', 'target', ''],
      row('npm start to the first 200, s', fresh, START_TARGET_SECONDS),
      row('the same after kill -9, s', killed, START_TARGET_SECONDS),
      row('idle: CPU, % of a core', [cpuPercent], CPU_TARGET_PERCENT),
      row('idle: RSS, MB', [rssMb], RSS_TARGET_MB),
      ['idle: CPU of its Redis, %', formatNumber(storePercent, 2), '', ''],
    ]),
  )
}

async function measureIdle(place: Place): Promise<{ cpuPercent: number; rssMb: number; storePercent: number }> {
  const { child } = await start(NODE, place)
  await pause(CALM_MS)
  const pid = child.pid as number
  const storePid = Number(readFileSync(join(place.dir, 'redis.pid'), 'utf8'))
  const { percents } = await shareOfCore([pid, storePid], () => pause(IDLE_MS))
  const rssMb = (residentBytes(pid) ?? Number.NaN) / MB
  await stop(child, place)
  return { cpuPercent: percents[0] ?? Number.NaN, rssMb, storePercent: percents[1] ?? Number.NaN }
}

/** Starts the service; out: seconds to the first 200 of a send. */
export async function start(command: Command, place: Place): Promise<{ child: ChildProcess; seconds: number }> {
  const startedAtMs = performance.now()
  const [program, ...args] = command
  const stdio: StdioOptions = ['ignore', 'ignore', 'inherit']
  const child = spawn(program, args, { cwd: ROOT, env: place.environment, stdio, detached: true })
  endWithUs(child)
  await until(() => {
    if (child.exitCode !== null) throw new Error(`The service ended with ${child.exitCode}`)
    return sendsMessage(place)
  }, START_MS_MAX)
  return { child, seconds: (performance.now() - startedAtMs) / 1000 }
}

async function sendsMessage({ dir, port }: Place): Promise<boolean> {
  const path = join(dir, 'first-run.json')
  if (!existsSync(path)) return false
  const { testServer } = JSON.parse(readFileSync(path, 'utf8')) as { testServer: { token: string } }
  const body = { from: 'you@simulator.test', to: ['someone@simulator.test'], subject: 'Hello', text: 'It works.' }
  return fetch(`http://127.0.0.1:${port}/v1/email`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${testServer.token}`,
      'content-type': 'application/json',
      connection: 'close',
    },
    body: JSON.stringify(body),
  }).then(
    ({ status }) => status === 200,
    () => false,
  )
}

/** Ends a group of processes when this process ends before it. */
export function endWithUs(child: ChildProcess): void {
  const end = (): void => signal(child, 'SIGKILL')
  process.once('exit', end)
  child.once('exit', () => process.off('exit', end))
}

/** Signals the whole group: npm and its children. Its Redis has a group of its own. */
export function signal(child: ChildProcess, name: NodeJS.Signals): void {
  try {
    process.kill(-(child.pid as number), name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

async function kill(child: ChildProcess): Promise<void> {
  const gone = once(child, 'exit')
  signal(child, 'SIGKILL')
  await gone
}

/** Ends a process, and waits for the end of its Redis. */
export async function stop(child: ChildProcess, { dir }: Place): Promise<void> {
  signal(child, 'SIGTERM')
  await exited(child)
  await until(() => !existsSync(join(dir, 'redis.pid')), STOP_MS_MAX)
}

/** Waits until a process has ended. */
export async function exited(child: ChildProcess): Promise<void> {
  await until(() => child.exitCode !== null || child.signalCode !== null, STOP_MS_MAX)
}

/** Does `work` in a new directory on the disk, and removes it. */
export async function withPlace<T>(work: (place: Place) => Promise<T>): Promise<T> {
  mkdirSync(join(ROOT, 'data'), { recursive: true })
  const dir = mkdtempSync(join(ROOT, 'data', 'bench-start-'))
  const port = await freePort()
  const names = ['OPERATOR_PORT', 'MX_PORT', 'SUBMISSION_PORT', 'SUBMISSION_TLS_PORT']
  const others = await Promise.all(names.map(async (name) => [name, String(await freePort())] as const))
  const ports = { HTTP_PORT: String(port), ...Object.fromEntries(others) }
  const environment = { ...childEnvironment(), DATA_DIR: dir, ...ports, LOG_LEVEL: 'error', EDGE_RATE: '0' }
  try {
    return await work({ dir, port, environment })
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}
