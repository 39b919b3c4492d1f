/** host - starts and ends the service as a separate process. */
import { once } from 'node:events'
import { get } from 'node:http'
import { join } from 'node:path'
import { spawnNode } from '../machine/node.ts'
import { until } from '../machine/until.ts'
import { ENV_OF_ONE_FILE } from './program.ts'

/** Long enough for a machine that runs much else. */
const READY_MS_MAX = 60_000
/** The program; the whole run has it in one file, which starts faster (test/all.ts). */
const PROGRAM = process.env.CRASH_HOST ?? join(import.meta.dirname, 'crash-host.js')
const PROGRAM_ENV = process.env.CRASH_HOST === undefined ? {} : ENV_OF_ONE_FILE

export interface Host {
  readonly pid: number
  readonly exited: Promise<number | null>
  isRunning(): boolean
  /** The end of its output. */
  said(): string
  kill(signal: NodeJS.Signals): Promise<void>
}

export interface HostOptions {
  /** A crash point. */
  readonly point?: string
  /** False: does not wait until it answers. */
  readonly ready?: boolean
  /** The number of characters of its output that are kept, from the end. */
  readonly keptChars?: number
  /** A checkout of another version, built; this one by default. */
  readonly checkout?: string | undefined
  /** Options of `node`. */
  readonly nodeArgs?: readonly string[]
}

/** Starts the service with its settings. */
export async function startHost(
  settings: Readonly<Record<string, string>>,
  { point, ready = true, checkout, keptChars = 4_000, nodeArgs = [] }: HostOptions = {},
): Promise<Host> {
  const mine = [PROGRAM, ...(point === undefined ? [] : [point])]
  const args = checkout === undefined ? mine : [join(checkout, 'build/src/cli/main.js'), 'start']
  const child = spawnNode([...nodeArgs, ...args], { env: { ...process.env, ...PROGRAM_ENV, ...settings } })
  let said = ''
  for (const output of [child.stdout, child.stderr])
    output.on('data', (piece: Buffer) => (said = (said + piece).slice(-keptChars)))
  const exited = once(child, 'exit').then(([code]) => code as number | null)
  const isRunning = (): boolean => child.exitCode === null && child.signalCode === null
  const host: Host = {
    pid: child.pid as number,
    exited,
    isRunning,
    said: () => said,
    async kill(signal) {
      if (isRunning()) child.kill(signal)
      await exited
    },
  }
  if (!ready) return host
  await until(async () => {
    if (!isRunning()) throw new Error(`The service ended: ${said}`)
    return (await readinessAt(Number(settings.OPERATOR_PORT))) === 200
  }, READY_MS_MAX)
  return host
}

/**
 * Status of /readyz; 0 without an answer. Without fetch(), because it is called a hundred times while a process
 * starts.
 */
export function readinessAt(operatorPort: number): Promise<number> {
  return new Promise((resolve) => {
    const asked = get({ host: '127.0.0.1', port: operatorPort, path: '/readyz', agent: false }, (answer) => {
      answer.resume().on('error', () => undefined)
      resolve(answer.statusCode ?? 0)
    })
    asked.on('error', () => resolve(0))
  })
}
