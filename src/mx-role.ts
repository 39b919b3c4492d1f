/**
 * mx-role - what a process with the role `mx` listens with: bounces and complaints, over SMTP
 *
 * It decides nothing itself: what a mail means is asked of the owner of the message's shard, in this process or another.
 */

import type { Config } from './config.ts'
import type { EdgeLog } from './edge/request.ts'
import { makeSenderRate } from './edge/sender-rate.ts'
import { makeParseRoom } from './effects/parse-room.ts'
import type { Metrics } from './metrics.ts'
import { makeReturnedMail, type ReturnedMailDeps } from './routes/returned-mail.ts'
import { openCertificate } from './self-signed.ts'

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
  const { startMxListener } = await import('./edge/mx-listener.ts')
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
