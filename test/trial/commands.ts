/**
 * commands - what a root types on a machine of the trial
 */
import type { Machine } from './machine.ts'

/** Debian's packages are fetched. Nothing else has a network, so the typed commands reach no registry of packages. */
const ONLINE = /^apt-get /m

export interface Place {
  readonly machine: Machine
  /** Whether the machine has nothing yet but a system. */
  readonly isEmpty: boolean
  say(line: string): void
}

/** Runs a command of the documents. Returns its output. Throws Error with its output if it fails. */
export async function must({ machine }: Place, code: string): Promise<string> {
  const ran = await machine.run(code, { isOnline: ONLINE.test(code) })
  if (ran.code === 0) return ran.out
  const log = await machine.run('journalctl --no-pager --lines=40 2>&1')
  throw new Error(`${code}\nended with ${ran.code}:\n${ran.out}${ran.err}\n${log.out}`)
}
