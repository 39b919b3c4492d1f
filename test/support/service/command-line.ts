/**
 * command-line - runs `sendwright` as a user does, with only the settings of the test.
 *
 * `sendwright` is a separate process. `startCommandLine` runs the same commands one after another in one process, for
 * tests with many.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { spawnNode } from '../machine/node.ts'
import type { CommandCall } from './command-host.ts'

const MAIN = fileURLToPath(new URL('../../../src/cli/main.js', import.meta.url))

export interface Ran {
  readonly out: string
  readonly err: string
  readonly code: number
}

type Variables = Readonly<Record<string, string>>

export interface CommandLine {
  run(args: readonly string[], environment?: Variables): Promise<Ran>
  stop(): void
}

/** Runs the command line until it ends. */
export async function sendwright(args: readonly string[], environment: Variables = {}): Promise<Ran> {
  const child = spawnNode([MAIN, ...args], { env: variables(environment) })
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { out, err, code: code as number }
}

/** Starts a process that runs commands, one after another in the order of the calls. */
export async function startCommandLine(): Promise<CommandLine> {
  const args = ['-u', 'NODE_OPTIONS', process.execPath, join(import.meta.dirname, 'command-host.js')]
  const host = spawn('/usr/bin/env', args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  await once(host, 'spawn')
  const waiting: { resolve(ran: Ran): void; reject(error: Error): void }[] = []
  host.on('message', (ran: Ran) => waiting.shift()?.resolve(ran))
  host.once('exit', (code) => {
    for (const { reject } of waiting) reject(new Error(`The process of the commands ended with ${code}`))
  })
  return {
    run: (args, environment = {}) =>
      new Promise<Ran>((resolve, reject) => {
        waiting.push({ resolve, reject })
        const call: CommandCall = { args, env: variables(environment) }
        host.send(call, (error) => error !== null && reject(error))
      }),
    stop: () => host.disconnect(),
  }
}

function variables(environment: Variables): Record<string, string> {
  return { PATH: process.env.PATH ?? '', DATA_DIR: '/nonexistent', ...environment }
}
