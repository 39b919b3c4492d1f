/** erase - `sendwright erase`: erases a person, waits until that is done, prints the receipt. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from 'commander'
import type { Erasure } from '../../schemas/erasure.ts'
import { type ClientOptions, makeClient } from './console/client.ts'
import { CommandFailure } from './console/failure.ts'
import { withClientOptions } from './console/options.ts'
import { type Ended, formatFields, print } from './console/print.ts'

const PATH = '/v1/erasures'
const FIRST_LOOK_MS = 100
const LOOK_MS_MAX = 2_000
/** While the content store is unreachable, an erasure may be pending for hours; it can be followed again by its id. */
const LOOKS_MAX = 1_800
/** Longer than any address, in bytes. */
const INPUT_BYTES_MAX = 4_096

interface EraseOptions extends ClientOptions {
  id?: string
  wait: boolean
}

/** Adds the command. `ended` is called with the exit code of the command that ran. */
export function addEraseCommand(program: Command, ended: Ended): void {
  withClientOptions(program.command('erase'))
    .description(
      'erase a person from all servers of the account: the content of all mail to and from an address. The command asks for the address or reads it from standard input, never from the command line, because shells record that',
    )
    .option('--id <erasureId>', 'follow an existing erasure until it is done')
    .option('--no-wait', 'do not wait for the end')
    .action(async (options: EraseOptions) => ended(await erase(options)))
}

async function erase(options: EraseOptions): Promise<number> {
  const client = makeClient(options, 'account')
  const ordered =
    options.id === undefined
      ? await client.post<Erasure>(PATH, { address: await readAddress() })
      : await client.get<Erasure>(`${PATH}/${encodeURIComponent(options.id)}`)
  if (!options.wait) return print(options, ordered, formatFields)
  const isTold = options.json !== true && process.stderr.isTTY === true
  const startedAtMs = Date.now()
  let seen = ordered
  let waitMs = FIRST_LOOK_MS
  for (let looks = 0; seen.status === 'pending' && looks < LOOKS_MAX; looks += 1) {
    await pause(waitMs)
    waitMs = Math.min(LOOK_MS_MAX, waitMs * 2)
    seen = await client.get<Erasure>(`${PATH}/${ordered.erasureId}`)
    if (isTold)
      process.stderr.write(`\rErasing ${ordered.erasureId}: ${Math.round((Date.now() - startedAtMs) / 1000)} s`)
  }
  if (isTold) process.stderr.write('\n')
  if (seen.status === 'done') return print(options, seen, formatFields)
  throw new CommandFailure(`The erasure is still pending: check it with sendwright erase --id ${ordered.erasureId}`)
}

/** The address: prompted for on a terminal, otherwise the first line of standard input. */
async function readAddress(): Promise<string> {
  const line = process.stdin.isTTY === true ? await ask() : await firstLine()
  const address = line.trim()
  if (address === '') throw new CommandFailure('No address given')
  return address
}

async function ask(): Promise<string> {
  const { createInterface } = await import('node:readline/promises')
  const asker = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return await asker.question('Address to erase: ')
  } finally {
    asker.close()
  }
}

async function firstLine(): Promise<string> {
  let text = ''
  for await (const piece of process.stdin) {
    text += String(piece)
    if (text.includes('\n') || text.length > INPUT_BYTES_MAX) break
  }
  return text.split('\n', 1)[0] ?? ''
}
