/** serve-jobs - the part of a pool's worker that all of them share: it takes one job after the other */

import { parentPort } from 'node:worker_threads'
import type { ThreadMessage } from './job-thread.ts'

/**
 * Serves the jobs of a `WorkerPool` in this thread. `work` returns the result of a job, and may pass a partial result
 * to `tell`; a job that throws or rejects is reported as failed, and the pool ends it as `crash`.
 */
export function serveJobs<Job, Result, Told = Result>(
  work: (job: Job, tell: (told: Told) => void) => Result | Promise<Result>,
): void {
  const port = parentPort!
  const post = (message: ThreadMessage<Result, Told>): void => port.postMessage(message)
  post({ ready: true })
  port.on('message', async (job: Job) => {
    try {
      post({ done: await work(job, (told) => post({ told })) })
    } catch {
      post({ failed: true })
    }
  })
}

/** The bytes of a job as a Buffer, without a copy: a thread receives a Buffer as a Uint8Array. */
export function asBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}
