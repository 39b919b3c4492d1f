/** bullmq-host - contestant (b): the checked body becomes a job by `queue.add`, and the answer follows it */

import { Queue } from 'bullmq'
import type { EmailBody } from '../../schemas/email.ts'
import { listenBare } from './bare-http.ts'
import { obey } from './host-side.ts'

obey(async ({ socketPath }) => {
  const queue = new Queue<EmailBody>('mail', { connection: { path: socketPath, enableOfflineQueue: false } })
  await queue.waitUntilReady()
  const listener = listenBare(async (_bytes, body) => (await queue.add('send', body)).id ?? '')
  return {
    ready: { port: listener.port, operatorPort: null, keys: ['none'], domain: 'simulator.test' },
    async stop() {
      listener.close()
      await queue.close()
    },
  }
})
