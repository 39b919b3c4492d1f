/** returned-parser-worker - parses returned mail, one after the other */

import { serveJobs } from '../../process/serve-jobs.ts'
import { parseMail } from './parse.ts'

serveJobs(parseMail)
