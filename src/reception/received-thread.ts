/**
 * received-thread - the body of the thread that parses received mail: it posts the top fields first, then the whole
 * result.
 */

import { parentPort } from 'node:worker_threads'
import { parseReceivedMail, type ReceivedMail } from '../mail/mime/received-mail.ts'
import type { ThreadMessage } from '../process/job-thread.ts'
import { type ParsedMail, packMail } from './parsed-mail.ts'

const port = parentPort!
const post = (message: ThreadMessage<ParsedMail, ReceivedMail>): void => port.postMessage(message)

post({ ready: true })
port.on('message', (raw: Uint8Array) => {
  try {
    const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
    post({ done: packMail(parseReceivedMail(bytes, (told) => post({ told }))) })
  } catch {
    // Reported as `parser_error`; the mail stays as it was received.
    post({ failed: true })
  }
})
