/** parse-thread - the body of the thread that takes returned mail apart, one after the other. */

import { parentPort } from 'node:worker_threads'
import type { ReportMail } from '../mail/report/report-mail.ts'
import type { ThreadMessage } from '../process/thread-room.ts'
import { parseMail } from './parse.ts'

const port = parentPort!

port.on('message', (bytes: Uint8Array) => {
  parseMail(bytes).then(
    (done) => port.postMessage({ done } satisfies ThreadMessage<ReportMail>),
    () => port.postMessage({ failed: true } satisfies ThreadMessage<ReportMail>),
  )
})
