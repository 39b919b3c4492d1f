/** csv - an export of the API, written to standard output or to a file as it arrives */
import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Command } from 'commander'
import { EXPORT_MINUTES_MAX } from '../../../schemas/limits.ts'
import { type ClientOptions, type KeyOwner, makeClient } from './client.ts'
import { CommandFailure } from './failure.ts'

export interface CsvOptions extends ClientOptions {
  /** A file, or true for standard output. */
  csv?: string | true
  limit?: number
}

/** Adds the option to a command that lists. */
export function withCsv(command: Command): Command {
  return command.option('--csv [file]', 'export all matches as CSV, to standard output or to this file')
}

/**
 * Exports. In: the owner of the key, the route and its body. Returns exit code 0. Throws CommandFailure if the export
 * is refused or ends early; the rows so far are written then.
 */
export async function exportCsv(
  options: CsvOptions,
  { owner, path, body }: { readonly owner: KeyOwner; readonly path: string; readonly body: object },
): Promise<number> {
  if (options.limit !== undefined) throw new CommandFailure('--csv exports all matches: leave out --limit')
  const signal = AbortSignal.timeout(EXPORT_MINUTES_MAX * 60_000)
  const source = Readable.fromWeb(
    (await makeClient(options, owner).open(path, signal, { body })) as Parameters<typeof Readable.fromWeb>[0],
  )
  const written =
    typeof options.csv === 'string'
      ? pipeline(source, createWriteStream(options.csv))
      : pipeline(source, process.stdout, { end: false })
  await written.catch((error: NodeJS.ErrnoException) => {
    // Only a failed write has the number of a system error.
    if (error.errno === undefined)
      throw new CommandFailure('The export ended early, and its last rows are missing: run it again')
    throw new CommandFailure(`Cannot write the export: ${error.code ?? error.message}`)
  })
  return 0
}
