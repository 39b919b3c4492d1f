/**
 * mx-role - what a process with the role `mx` listens with: bounces and complaints, over SMTP
 *
 * It decides nothing itself: what a mail means is asked of the owner of the message's shard, in this process or another.
 */

import type { EdgeLog } from '../http/request.ts'
import { openCertificate } from '../process/certificate.ts'
import type { Config } from '../process/config.ts'
import type { Metrics } from '../process/metrics.ts'
import { makeParseRoom } from './parse-room.ts'
import { makeReturnedMail, type ReturnedMailDeps } from './returned-mail.ts'
import { makeSenderRate } from './sender-rate.ts'

/** What the role needs of the service. */
export interface MxDeps {
  readonly handlers: Omit<ReturnedMailDeps, 'room' | 'received'> & { readonly metrics: Pick<Metrics, 'received'> }
  readonly log: EdgeLog
}

/** Starts the listener on MX_PORT; null where the port is 0. Throws Error when it is taken. */
export async function startMx(config: Config, { handlers, log }: MxDeps): Promise<{ close(): Promise<void> } | null> {
  if (config.mxPort === 0) return null
  const { tlsCert, tlsKey, dataDir, smtpHostname: name } = config
  // Processes that receive no mail do without the library.
  const { startMxListener } = await import('./mx-listener.ts')
  const room = makeParseRoom()
  const listener = await startMxListener({
    host: config.smtpHost,
    port: config.mxPort,
    name,
    tls: openCertificate({ tlsCert, tlsKey, dataDir, name }, Date.now()),
    rate: makeSenderRate(() => performance.now()),
    handlers: makeReturnedMail({ ...handlers, room, received: (kind) => handlers.metrics.received(kind) }),
    log,
  })
  return {
    async close() {
      await listener.close()
      await room.close()
    },
  }
}
