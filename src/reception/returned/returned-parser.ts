/**
 * returned-parser - the threads in which returned mail is parsed, started with the first one.
 *
 * Guarantees: a mail has a thread for at most a second; clients are served fairly, and one client never has all
 * threads (`process/worker-pool.ts`); the number of waiting mails is bounded.
 *
 * Spec bounce.unread
 */

import type { ReportMail } from '../../mail/report/report-mail.ts'
import { WorkerPool } from '../../process/worker-pool.ts'

/** Any mail of 256 KiB parses in milliseconds; a second leaves room for a busy machine. */
const PARSE_MS_MAX = 1000
/** Memory of a thread, far more than a mail and its decoded parts need. */
const HEAP_MB_MAX = 128
const THREADS = 2

/** `unreadable`: parsing failed, or was not done in time. `busy`: too much is waiting. */
export type Parsed = ReportMail | 'unreadable' | 'busy'

export interface ReturnedParser {
  /** Parses one mail of a client. Never rejects. */
  parse(bytes: Uint8Array, client: string): Promise<Parsed>
  /** Ends the threads; waiting mails get `busy`. */
  close(): Promise<void>
}

/** Makes the pool. `parseMsMax` is the time limit of one mail. */
export function makeReturnedParser(parseMsMax: number = PARSE_MS_MAX): ReturnedParser {
  const pool = new WorkerPool<Uint8Array, ReportMail>({
    body: new URL('./returned-parser-worker.js', import.meta.url),
    jobMsMax: parseMsMax,
    heapMbMax: HEAP_MB_MAX,
    threads: THREADS,
  })
  return {
    async parse(bytes, client) {
      const run = await pool.run(bytes, { client })
      if (run.how === 'done') return run.result
      return run.how === 'busy' ? 'busy' : 'unreadable'
    },
    close: () => pool.close(),
  }
}
