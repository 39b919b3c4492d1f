/**
 * product-service - the service as the benchmarks run it: on their store, with no limit of the edge, effects held or
 * not
 */

import { type RunningService, startService } from '../../src/main.ts'
import { readConfig } from '../../src/process/config.ts'
import { freePort } from '../free-port.ts'
import type { HostOrder } from './host-side.ts'

export const SECRET_KEY = 'a secret of the benchmark, long enough'

/** Starts it with `roles` in this process. */
export async function startProduct(
  {
    socketPath,
    seeds,
    dir,
    isHeld,
    relayUrl,
    mx,
    contentStore,
    isSubmission,
    engine,
  }: Omit<HostOrder, 'accounts' | 'mode' | 'workers'>,
  roles: string,
): Promise<{ port: number; operatorPort: number; submissionPort: number; service: RunningService }> {
  const [port, operatorPort] = [await freePort(), await freePort()]
  const submissionPort = isSubmission ? await freePort() : 0
  const result = readConfig({
    ROLES: roles,
    REDIS_URL: seeds?.join(',') ?? `unix://${socketPath}`,
    SECRET_KEY,
    DATA_DIR: dir,
    HTTP_PORT: String(port),
    OPERATOR_PORT: String(operatorPort),
    MX_PORT: '0',
    SUBMISSION_PORT: String(submissionPort),
    SUBMISSION_TLS_PORT: '0',
    EDGE_RATE: '0',
    LOG_LEVEL: 'error',
    HTTP_ENGINE: engine,
    ...(contentStore === null ? {} : { CONTENT_STORE: contentStore }),
    ...(relayUrl === null ? {} : { RELAY_URL: relayUrl }),
    ...(mx === null ? {} : mxSettings(mx)),
  })
  if (!result.ok) throw new Error(result.mistakes.join('; '))
  const service = await startService(result.config, {
    print: () => undefined,
    ...(isHeld ? { room: () => 0 } : {}),
  })
  return { port, operatorPort, submissionPort, service }
}

function mxSettings({ dnsServer, port }: { dnsServer: string; port: number }): Record<string, string> {
  return { DNS_SERVERS: dnsServer, DELIVERY_PORT: String(port), PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8' }
}
