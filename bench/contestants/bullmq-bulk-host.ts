/**
 * bullmq-bulk-host - contestant (b) in bulk form: requests that arrive during a call are added by the next
 * `queue.addBulk`
 */

import { Queue } from 'bullmq'
import type { EmailBody } from '../../schemas/email.ts'
import { listenBare } from './bare-http.ts'
import { obey } from './host-side.ts'

/** As many as the product puts into one commit. */
const JOBS_MAX = 64

interface Waiting {
  readonly body: EmailBody
  readonly settle: (id: string) => void
  readonly fail: (error: Error) => void
}

obey(async ({ socketPath }) => {
  const queue = new Queue<EmailBody>('mail', { connection: { path: socketPath, enableOfflineQueue: false } })
  await queue.waitUntilReady()
  let waiting: Waiting[] = []
  let isUnderWay = false

  async function flush(): Promise<void> {
    isUnderWay = true
    while (waiting.length > 0) {
      const batch = waiting.slice(0, JOBS_MAX)
      waiting = waiting.slice(JOBS_MAX)
      try {
        const jobs = await queue.addBulk(batch.map(({ body }) => ({ name: 'send', data: body })))
        for (const [at, { settle }] of batch.entries()) settle(jobs[at]?.id ?? '')
      } catch (error) {
        for (const { fail } of batch) fail(error as Error)
      }
    }
    isUnderWay = false
  }

  const listener = listenBare(
    (_bytes, body) =>
      new Promise((settle, fail) => {
        waiting.push({ body, settle, fail })
        // At the end of the turn, so that all that this turn of the loop brings goes together.
        if (!isUnderWay) {
          isUnderWay = true
          setImmediate(() => void flush())
        }
      }),
  )
  return {
    ready: { port: listener.port, operatorPort: null, keys: ['none'], domain: 'simulator.test' },
    async stop() {
      listener.close()
      await queue.close()
    },
  }
})
