/**
 * received-parser-worker - parses received mail: it posts the top fields first, then the whole result. A mail that
 * fails is reported as `parser_error` and stays as it was received.
 */

import { parseReceivedMail, type ReceivedMail } from '../mail/mime/received-mail.ts'
import { asBuffer, serveJobs } from '../process/serve-jobs.ts'
import { type ParsedMail, packMail } from './parsed-mail.ts'

serveJobs<Uint8Array, ParsedMail, ReceivedMail>((raw, tell) => packMail(parseReceivedMail(asBuffer(raw), tell)))
