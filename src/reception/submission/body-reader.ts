/**
 * body-reader - reads submitted messages: small ones here, large ones in a thread, each within its time and memory
 *
 * Spec submission.log
 */

import { WorkerPool } from '../../process/worker-pool.ts'
import { readSubmittedBody, type SubmittedBody } from '../../sending/submitted-body.ts'

/** A message of up to this much is read within a millisecond, which is less than the way to a thread. */
const SMALL_BYTES_MAX = 32 * 1024
const READ_MS_MAX = 20_000
const HEAP_MB_MAX = 256

export interface BodyInput {
  readonly edited: Buffer
  readonly isKeyed: boolean
}

export interface BodyReader {
  /**
   * Reads a message. `busy`: too much is waiting, it took too long, or the thread ended; the message may well be read
   * at the next try. Never rejects.
   */
  read(input: BodyInput): SubmittedBody | Promise<SubmittedBody | 'busy'>
  close(): Promise<void>
}

/** Makes the pool; its thread begins with the first large message. */
export function makeBodyReader(readMsMax: number = READ_MS_MAX): BodyReader {
  const pool = new WorkerPool<BodyInput, SubmittedBody>({
    body: new URL('./body-reader-worker.js', import.meta.url),
    jobMsMax: readMsMax,
    heapMbMax: HEAP_MB_MAX,
  })
  return {
    read(input) {
      if (input.edited.length <= SMALL_BYTES_MAX) return readSubmittedBody(input)
      return pool.run(input).then((run) => (run.how === 'done' ? run.result : 'busy'))
    },
    close: () => pool.close(),
  }
}
