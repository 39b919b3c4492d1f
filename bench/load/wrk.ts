/**
 * wrk - the load of `accept`, closed loop, by wrk if it is installed, otherwise by autocannon
 *
 * Effects: starts a child process for each run, so that making requests costs the contestant's process nothing.
 */

import { execFile, fork } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { ROOT } from '../../test/support/machine/root.ts'
import type { CannonOrder } from './cannon.ts'
import type { Measured } from './measured.ts'
import { ADDRESSES, bodyTemplate, type Target, writeLoadFiles } from './message.ts'

const run = promisify(execFile)

/** Keep-alive connections of every load. */
export const CONNECTIONS = 64
const SCRIPT = join(ROOT, 'bench', 'load', 'load.lua')
const GRACE_MS = 30_000

interface WrkResult {
  requests: number
  refused: number
  broken: number
  microseconds: number
  p50Us: number
  p99Us: number
}

/** Which generator this machine has. */
export async function findGenerator(): Promise<'wrk' | 'autocannon'> {
  return run('wrk', ['-v']).then(
    () => 'wrk' as const,
    // Its version comes with exit status 1.
    (error: NodeJS.ErrnoException) => (error.code === 'ENOENT' ? ('autocannon' as const) : ('wrk' as const)),
  )
}

/** Loads a contestant for a time. Takes a directory for the generator's files. */
export async function load(
  generator: 'wrk' | 'autocannon',
  { target, seconds, dir }: { target: Target; seconds: number; dir: string },
): Promise<Measured> {
  return generator === 'wrk' ? loadWithWrk(target, seconds, dir) : loadWithCannon(target, seconds)
}

async function loadWithWrk(target: Target, seconds: number, dir: string): Promise<Measured> {
  const { keysPath, bodyPath } = writeLoadFiles(dir, target)
  const options = ['-t1', `-c${CONNECTIONS}`, `-d${seconds}s`, '--timeout', '10s', '-s', SCRIPT]
  const url = `http://127.0.0.1:${target.port}`
  const args = [...options, url, '--', keysPath, bodyPath, String(ADDRESSES)]
  const { stdout } = await run('wrk', args, { timeout: seconds * 1000 + GRACE_MS })
  const line = /RESULT (\{.*\})/.exec(stdout)?.[1]
  if (line === undefined) throw new Error(`wrk said nothing of its result: ${stdout.slice(-500)}`)
  const result = JSON.parse(line) as WrkResult
  const accepted = result.requests - result.refused
  return {
    accepted,
    refused: result.refused,
    broken: result.broken,
    perSecond: accepted / (result.microseconds / 1e6),
    p50Ms: result.p50Us / 1000,
    p99Ms: result.p99Us / 1000,
  }
}

function loadWithCannon(target: Target, seconds: number): Promise<Measured> {
  const child = fork(fileURLToPath(new URL('./cannon.js', import.meta.url)), { env: childEnvironment() })
  const order: CannonOrder = { target, seconds, connections: CONNECTIONS, template: bodyTemplate(target.domain) }
  child.send(order)
  return new Promise((resolve, reject) => {
    child.once('message', (measured) => resolve(measured as Measured))
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`autocannon ended with ${code}`)))
  })
}

/** The environment without the variables of a test runner or debugger. */
export function childEnvironment(): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: _, ...environment } = process.env
  return environment
}
