/** read-thread - the body of the thread that reads broadcasts: from UTF-8 to the stored form, or to the issues. */

import { parentPort } from 'node:worker_threads'
import type { ThreadMessage } from '../../process/job-thread.ts'
import { makeHashes } from '../../process/secrets.ts'
import type { PreviewResult, ReadJob, ReadResult } from './read.ts'
import { parseBroadcast, parsePreview } from './read.ts'

const port = parentPort!
const post = (message: ThreadMessage<ReadResult | PreviewResult>): void => port.postMessage(message)

post({ ready: true })
port.on('message', ({ pieces, hashKeys, accountId, serverId, isPreview }: ReadJob) => {
  try {
    const secrets = makeHashes(hashKeys)
    const hashes = {
      addressHmac: (address: string) => secrets.addressHmac(accountId, address),
      tagHash: (tag: string) => secrets.tagHash(serverId, tag),
    }
    const bytes = pieces.map((piece) => Buffer.from(piece))
    post({ done: isPreview ? parsePreview(bytes) : parseBroadcast(bytes, hashes) })
  } catch {
    post({ failed: true })
  }
})
