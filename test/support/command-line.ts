/** command-line - runs `sendwright` as a user does: a process of its own, nothing set but what the test says. */
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { spawnNode } from './node.ts'

const MAIN = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url))

export interface Ran {
  readonly out: string
  readonly err: string
  readonly code: number
}

/** Runs the command line until it ends. */
export async function sendwright(args: readonly string[], environment: Record<string, string> = {}): Promise<Ran> {
  const env = { PATH: process.env.PATH, DATA_DIR: '/nonexistent', ...environment }
  const child = spawnNode([MAIN, ...args], { env })
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { out, err, code: code as number }
}
