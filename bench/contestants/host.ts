/** host - the benchmark's side of a contestant in a process of its own */

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { childEnvironment } from '../load/wrk.ts'
import type { BenchStore } from '../store.ts'
import type { HostAnswer, HostCall, HostOrder, Ready } from './host-side.ts'

/** Options of `npm start` for every contestant, and those of `HOST_OPTIONS`. */
export const NODE_OPTIONS = ['--max-semi-space-size=32', ...optionsOf(process.env.HOST_OPTIONS)]

/** Programs that a contestant can be. */
export type HostName = 'floor' | 'bullmq' | 'bullmq-bulk' | 'product' | 'actors'

export interface Host {
  readonly pid: number
  readonly ready: Ready
  /** Samples the work of its main thread until `profiled` writes the profile. */
  profile(): Promise<void>
  profiled(path: string): Promise<void>
  stop(): Promise<void>
}

/** Starts a contestant on a store. Rejects with its output if it cannot start. */
export async function startHost(
  name: HostName,
  store: Pick<BenchStore, 'socketPath' | 'dir'> & { readonly seeds?: readonly string[] | null },
  order: Partial<Omit<HostOrder, 'socketPath' | 'dir'>> = {},
): Promise<Host> {
  const child = fork(fileURLToPath(new URL(`./${name}-host.js`, import.meta.url)), {
    env: childEnvironment(),
    execArgv: NODE_OPTIONS,
  })
  const endWithUs = (): void => void child.kill('SIGKILL')
  process.once('exit', endWithUs)
  const dir = mkdtempSync(join(store.dir, 'host-'))
  const all = {
    accounts: 1,
    isHeld: true,
    mode: 'test' as const,
    relayUrl: null,
    mx: null,
    workers: 0,
    isSubmission: false,
    contentStore: null,
    engine: 'auto' as const,
    seeds: store.seeds ?? null,
    ...order,
  }
  const answer = await ask(child, { call: 'start', order: { ...all, socketPath: store.socketPath, dir } })
  if (!('ready' in answer)) throw new Error(`${name} did not start`)
  return {
    pid: child.pid as number,
    ready: answer.ready,
    async profile() {
      await ask(child, { call: 'profile' })
    },
    async profiled(path) {
      await ask(child, { call: 'profiled', path })
    },
    async stop() {
      const gone = once(child, 'exit')
      await ask(child, { call: 'stop' })
      await gone
      process.removeListener('exit', endWithUs)
    },
  }
}

/** Options of node in a text, with blanks between them. */
function optionsOf(text = ''): string[] {
  return text.split(' ').filter((option) => option !== '')
}

function ask(child: ChildProcess, call: HostCall): Promise<HostAnswer> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null): void => reject(new Error(`A contestant ended with ${code}`))
    child.once('exit', ended)
    child.once('message', (message) => {
      child.removeListener('exit', ended)
      const answer = message as HostAnswer
      if ('fault' in answer) reject(new Error(answer.fault))
      else resolve(answer)
    })
    child.send(call)
  })
}
