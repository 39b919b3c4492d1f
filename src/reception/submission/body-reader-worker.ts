/** body-reader-worker - reads large submitted messages, one after the other */

import { asBuffer, serveJobs } from '../../process/serve-jobs.ts'
import { readSubmittedBody } from '../../sending/submitted-body.ts'
import type { BodyInput } from './body-reader.ts'

serveJobs(({ edited, isKeyed }: BodyInput) => readSubmittedBody({ edited: asBuffer(edited), isKeyed }))
