/** unless-stopped - abandons a work that may take seconds when the process stops; the next owner starts it again. */

import { NotPerformed } from '../../cluster/items/lane-runner.ts'

/** Time for a mail in progress when its process stops; nearly all end within it. */
export const MAIL_STOP_MS = 2_000

/**
 * Settles like `work`, but rejects with NotPerformed as soon as `signal` aborts; the outcome of the work is then
 * ignored.
 */
export function unlessStopped<Result>(signal: AbortSignal, work: Promise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(new NotPerformed('The process stops'))
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}
