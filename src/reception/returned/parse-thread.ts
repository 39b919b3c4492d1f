/** parse-thread - the body of the thread that takes returned mail apart, one after the other. */

import { parentPort } from 'node:worker_threads'
import type { ReportMail } from '../../mail/report/report-mail.ts'
import type { ThreadMessage } from '../../process/job-thread.ts'
import { parseMail } from './parse.ts'

const port = parentPort!
const post = (message: ThreadMessage<ReportMail>): void => port.postMessage(message)

post({ ready: true })
port.on('message', (bytes: Uint8Array) => {
  try {
    post({ done: parseMail(bytes) })
  } catch {
    post({ failed: true })
  }
})
