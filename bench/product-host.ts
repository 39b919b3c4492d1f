/**
 * product-host - contestants (c) and (c2), and the service of `memory` and `lifecycle`: all of it, in one process
 */

import { readConfig } from '../src/config.ts'
import { SIMULATOR_DOMAIN } from '../src/mail/simulator.ts'
import { startService } from '../src/main.ts'
import { freePort } from './free-port.ts'
import { obey } from './host-side.ts'
import { LIVE_DOMAIN, seedAccounts } from './seed.ts'

function mxSettings({ dnsServer, port }: { dnsServer: string; port: number }): Record<string, string> {
  return { DNS_SERVERS: dnsServer, DELIVERY_PORT: String(port), PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8' }
}

const SECRET_KEY = 'a secret of the benchmark, long enough'

obey(async ({ socketPath, dir, accounts, isHeld, mode, relayUrl, mx }) => {
  const keys = await seedAccounts({ socketPath, accounts, mode, secretKey: SECRET_KEY })
  const [port, operatorPort] = [await freePort(), await freePort()]
  const result = readConfig({
    REDIS_URL: `unix://${socketPath}`,
    SECRET_KEY,
    DATA_DIR: dir,
    HTTP_PORT: String(port),
    OPERATOR_PORT: String(operatorPort),
    MX_PORT: '0',
    EDGE_RATE: '0',
    LOG_LEVEL: 'error',
    ...(relayUrl === null ? {} : { RELAY_URL: relayUrl }),
    ...(mx === null ? {} : mxSettings(mx)),
  })
  if (!result.ok) throw new Error(result.mistakes.join('; '))
  const service = await startService(result.config, {
    print: () => undefined,
    ...(isHeld ? { room: () => 0 } : {}),
  })
  return {
    ready: { port, operatorPort, keys, domain: mode === 'live' ? LIVE_DOMAIN : SIMULATOR_DOMAIN },
    stop: () => service.stop(),
  }
})
