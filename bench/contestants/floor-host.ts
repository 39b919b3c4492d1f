/**
 * floor-host - contestant (a): the body is checked and written with one XADD, and the answer follows that of Redis
 *
 * The least that a service which keeps messages on Redis can do, and so the measure of the others.
 */

import { Redis } from 'ioredis'
import { listenBare } from './bare-http.ts'
import { obey } from './host-side.ts'

/** The one stream that holds everything. */
const STREAM = 'floor'

obey(async ({ socketPath }) => {
  const redis = new Redis({ path: socketPath })
  const listener = listenBare(async (bytes) => (await redis.xadd(STREAM, '*', 'body', bytes)) ?? '')
  return {
    ready: { port: listener.port, operatorPort: null, keys: ['none'], domain: 'simulator.test' },
    async stop() {
      listener.close()
      redis.disconnect()
    },
  }
})
