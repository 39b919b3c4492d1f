/** download - the bytes of an answer, written to standard output or to a file */
import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type ClientOptions, makeClient } from './client.ts'

const DOWNLOAD_MS_MAX = 60_000

/** Downloads with a server's key. Returns the exit code. */
export async function download(options: ClientOptions & { readonly output?: string }, path: string): Promise<number> {
  const body = await makeClient(options, 'server').open(path, AbortSignal.timeout(DOWNLOAD_MS_MAX))
  const source = Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0])
  if (options.output !== undefined) await pipeline(source, createWriteStream(options.output))
  else await pipeline(source, process.stdout, { end: false })
  return 0
}
