/** unless-stopped - a work that may take seconds, given up when the process stops: the next owner begins it anew. */

import { NotPerformed } from '../../cluster/items/pump.ts'

/** What a mail under way is given when its process stops: nearly every one ends within it. */
export const MAIL_STOP_MS = 2_000

/**
 * Ends as `work` does; rejects with NotPerformed as soon as `signal` says so, and what becomes of the work is nobody's
 * matter then.
 */
export function unlessStopped<Result>(signal: AbortSignal, work: Promise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(new NotPerformed('The process stops'))
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}
