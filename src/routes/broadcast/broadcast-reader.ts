/**
 * broadcast-reader - the thread in which bodies of broadcasts are read, one after the other: 57 MB take it two
 * seconds, which no send waits for
 *
 * Spec broadcast.body
 */

import { WorkerPool } from '../../process/worker-pool.ts'
import type { PreviewResult, ReadJob, ReadResult } from './read.ts'

/** The largest body takes some seconds, on a busy machine some tens. */
const READ_MS_MAX = 60_000
const HEAP_MB_MAX = 1024
/** Enough for small ones; the total size of bodies is bounded earlier. */
const WAITING_MAX = 64

/** A body, and whose it is. */
export type ReadBody = Omit<ReadJob, 'isPreview'>

export interface BroadcastReader {
  /** Reads a body; `busy` if the thread has too much to do, `failed` if it failed. Never rejects. */
  read(body: ReadBody): Promise<ReadResult | 'busy' | 'failed'>
  /** Reads a body of which one message is shown; otherwise the same. */
  preview(body: ReadBody): Promise<PreviewResult | 'busy' | 'failed'>
  close(): Promise<void>
}

/** Makes the pool; its thread begins with the first body. */
export function makeBroadcastReader(): BroadcastReader {
  const pool = new WorkerPool<ReadJob, ReadResult | PreviewResult>({
    body: new URL('./broadcast-reader-worker.js', import.meta.url),
    jobMsMax: READ_MS_MAX,
    heapMbMax: HEAP_MB_MAX,
    waitingMax: WAITING_MAX,
    transfer: (job: ReadJob) => job.pieces,
  })
  const run = async (job: ReadJob) => {
    const ran = await pool.run(job)
    if (ran.how === 'done') return ran.result
    return ran.how === 'busy' ? 'busy' : 'failed'
  }
  return {
    read: (body) => run({ ...body, isPreview: false }) as Promise<ReadResult | 'busy' | 'failed'>,
    preview: (body) => run({ ...body, isPreview: true }) as Promise<PreviewResult | 'busy' | 'failed'>,
    close: () => pool.close(),
  }
}
