/** parse-thread - the body of the thread that takes received mail apart, one after the other. */

import { parentPort } from 'node:worker_threads'
import type { ReportMail } from '../mail/report/report-mail.ts'
import { parseMail } from './parse.ts'

const port = parentPort!

port.on('message', (bytes: Uint8Array) => {
  parseMail(bytes).then(
    (mail: ReportMail | null) => port.postMessage(mail),
    () => port.postMessage(null),
  )
})
