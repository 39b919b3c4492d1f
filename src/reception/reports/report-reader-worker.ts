/** report-reader-worker - reads aggregate reports, one after the other, and adds their rows up */

import { serveJobs } from '../../process/serve-jobs.ts'
import { readReport } from './read-report.ts'

serveJobs(readReport)
