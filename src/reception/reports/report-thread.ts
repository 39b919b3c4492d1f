/** report-thread - the body of the thread that reads aggregate reports, one after the other, and adds their rows up. */

import { parentPort } from 'node:worker_threads'
import type { ThreadMessage } from '../../process/job-thread.ts'
import { type ReadReport, type ReportJob, readReport } from './read-report.ts'

const port = parentPort!
const post = (message: ThreadMessage<ReadReport>): void => port.postMessage(message)

post({ ready: true })
port.on('message', (job: ReportJob) => {
  readReport(job).then(
    (done) => post({ done }),
    () => post({ failed: true }),
  )
})
