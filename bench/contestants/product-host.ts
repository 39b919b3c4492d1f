/**
 * product-host - contestants (c), (c2) and (d), and the service of `memory` and `lifecycle`: either one process, or
 * one that listens and further ones with the actors
 */

import { SIMULATOR_DOMAIN } from '../../src/mail/simulator.ts'
import { until } from '../../test/support/machine/until.ts'
import { type Host, startHost } from './host.ts'
import { obey } from './host-side.ts'
import { readFigure } from './product-figures.ts'
import { SECRET_KEY, startProduct } from './product-service.ts'
import { LIVE_DOMAIN, seedAccounts } from './seed.ts'

const SHARDS = 256
const SHARES_MS_MAX = 60_000
/** Shards are stable after this time without a move; the first move waits five seconds. */
const CALM_MS = 7_000
const LOOK_MS = 500

obey(async (order) => {
  const { socketPath, seeds, accounts, mode, workers } = order
  const keys = await seedAccounts({ socketPath, seeds, accounts, mode, secretKey: SECRET_KEY })
  const others: Host[] = []
  for (let n = 0; n < workers; n += 1) others.push(await startHost('actors', order, { ...order, workers: 0 }))
  const { port, operatorPort, submissionPort, service } = await startProduct(order, workers === 0 ? 'all' : 'http')
  const ports = others.map(({ ready }) => ready.operatorPort ?? 0)
  if (workers > 1) await haveShares(ports)
  return {
    ready: {
      port,
      operatorPort,
      submissionPort,
      keys,
      domain: mode === 'live' ? LIVE_DOMAIN : SIMULATOR_DOMAIN,
      workers: others.map(({ pid }, place) => ({ pid, operatorPort: ports[place] ?? 0 })),
    },
    async stop() {
      await service.stop()
      await Promise.all(others.map((other) => other.stop()))
    },
  }
})

/** Resolves when every worker has its share of the shards and they are stable. */
async function haveShares(ports: readonly number[]): Promise<void> {
  let before = ''
  let sinceMs = performance.now()
  await until(async () => {
    const shares = await Promise.all(ports.map((port) => readFigure(port, 'sendwright_shards_running')))
    const now = shares.join()
    if (now !== before) sinceMs = performance.now()
    before = now
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    const isWhole = shares.reduce<number>((sum, share) => sum + (share ?? 0), 0) === SHARDS
    return isWhole && performance.now() - sinceMs > CALM_MS
  }, SHARES_MS_MAX)
}
