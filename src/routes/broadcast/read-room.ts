/**
 * read-room - the thread in which bodies of broadcasts are read, one after the other: 57 MB take it two seconds, which
 * no send waits for
 *
 * Spec broadcast.body
 */

import { ThreadRoom } from '../../process/thread-room.ts'
import type { ReadJob, ReadResult } from './read.ts'

/** The largest body takes some seconds, on a busy machine some tens. */
const READ_MS_MAX = 60_000
const HEAP_MB_MAX = 1024
/** Of small ones: what all bodies hold together is bounded before. */
const WAITING_MAX = 64

export interface ReadRoom {
  /** Reads a body; `busy` where the thread has too much to do, `failed` where it could not. Never rejects. */
  read(job: ReadJob): Promise<ReadResult | 'busy' | 'failed'>
  close(): Promise<void>
}

/** Makes the room; its thread begins with the first body. */
export function makeReadRoom(): ReadRoom {
  const room = new ThreadRoom<ReadJob, ReadResult>({
    body: new URL('./read-thread.js', import.meta.url),
    jobMsMax: READ_MS_MAX,
    heapMbMax: HEAP_MB_MAX,
    waitingMax: WAITING_MAX,
    transfer: (job: ReadJob) => job.pieces,
  })
  return {
    async read(job) {
      const run = await room.run(job)
      if (run.how === 'done') return run.result
      return run.how === 'busy' ? 'busy' : 'failed'
    },
    close: () => room.close(),
  }
}
