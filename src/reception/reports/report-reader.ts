/**
 * report-reader - the threads in which aggregate reports are read, started with the first one
 *
 * Guarantees: an authenticated report of the largest size is read; any other mail has a thread for a few seconds, so
 * strangers cannot hold the threads; clients are served fairly (`process/worker-pool.ts`).
 *
 * Spec reports.bounds
 */

import { WorkerPool } from '../../process/worker-pool.ts'
import type { ReadReport, ReportJob } from './read-report.ts'

/** The largest report takes about 20 s of a processor; a busy machine needs a multiple of that. */
const READ_MS_MAX = 120_000
const STRANGER_MS_MAX = 3_000
/** A TLS report of the largest size is parsed as a whole. */
const HEAP_MB_MAX = 768
const THREADS = 2
const WAITING_MAX = 100

/** `unreadable`: it took too long or too much memory. `busy`: too much is waiting. */
export type ReportRead = ReadReport | 'unreadable' | 'busy'

export interface ReportReader {
  /** Reads the report of a client. Never rejects. */
  read(job: ReportJob, of: { readonly client: string; readonly isAuthenticated: boolean }): Promise<ReportRead>
  /** Ends the threads; waiting mails get `busy`. */
  close(): Promise<void>
}

/** Makes the pool. `strangerMsMax` is the time limit of a mail that is not authenticated. */
export function makeReportReader(strangerMsMax: number = STRANGER_MS_MAX): ReportReader {
  const pool = new WorkerPool<ReportJob, ReadReport>({
    body: new URL('./report-reader-worker.js', import.meta.url),
    jobMsMax: READ_MS_MAX,
    heapMbMax: HEAP_MB_MAX,
    threads: THREADS,
    waitingMax: WAITING_MAX,
  })
  return {
    async read(job, { client, isAuthenticated }) {
      const run = await pool.run(job, { client, msMax: isAuthenticated ? READ_MS_MAX : strangerMsMax })
      if (run.how === 'done') return run.result
      return run.how === 'busy' ? 'busy' : 'unreadable'
    },
    close: () => pool.close(),
  }
}
