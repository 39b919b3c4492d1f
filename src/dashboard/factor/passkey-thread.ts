/**
 * passkey-thread - the thread in which answers about passkeys are verified
 *
 * Loading the library takes some 0.4 s and several megabytes. The thread starts with the first answer and ends when
 * none came for a minute.
 */

import { WorkerPool } from '../../process/worker-pool.ts'
import { MINUTE_MS } from '../../state/calendar.ts'
import type { PasskeyJob, PasskeyResult } from './passkey-worker.ts'

const JOB_MS_MAX = 5_000
const HEAP_MB_MAX = 64
const WAITING_MAX = 100

let pool: WorkerPool<PasskeyJob, PasskeyResult> | null = null
let ending: NodeJS.Timeout | undefined

/** Verifies an answer. Null: it does not match the request, or could not be verified. */
export async function runPasskeyJob(job: PasskeyJob): Promise<PasskeyResult> {
  pool ??= new WorkerPool({
    body: new URL('./passkey-worker.js', import.meta.url),
    jobMsMax: JOB_MS_MAX,
    heapMbMax: HEAP_MB_MAX,
    waitingMax: WAITING_MAX,
  })
  const run = await pool.run(job)
  clearTimeout(ending)
  ending = setTimeout(end, MINUTE_MS).unref()
  return run.how === 'done' ? run.result : null
}

function end(): void {
  void pool?.close()
  pool = null
}
