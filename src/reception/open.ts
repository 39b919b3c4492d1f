/**
 * open - the listener of a process with the role `mx`: received mail, bounces, complaints and reports, over SMTP
 *
 * It makes no decisions itself: the owner of a mail's shard, in this process or another, decides about it.
 */

import { SHARDS } from '../../cluster/id.ts'
import type { Contents } from '../content/contents.ts'
import type { EdgeLog } from '../http/request.ts'
import type { CertificateWatch } from '../process/certificate-watch.ts'
import type { Config } from '../process/config.ts'
import type { InheritedSockets } from '../process/listening/inherited-sockets.ts'
import type { Metrics } from '../process/metrics.ts'
import { makeAddresseeFinder } from '../views/inbound/address.ts'
import { readLastErasedMs } from '../views/operator/erasure-figures.ts'
import type { ReadKeys } from '../views/read-keys.ts'
import type { InboundMailDeps } from './inbound-mail.ts'
import type { MailJudge } from './mail-judge.ts'
import { makeMxMail } from './mx-mail.ts'
import { makeReportMails } from './reports/report-mail.ts'
import { makeReportReader } from './reports/report-reader.ts'
import { makeReturnedMail, type ReturnedMailDeps } from './returned/returned-mail.ts'
import { makeReturnedParser } from './returned/returned-parser.ts'
import { makeUnreadReports } from './returned/unread-reports.ts'
import { makeSenderRate } from './sender-rate.ts'

const ALL_SHARDS = Array.from({ length: SHARDS }, (_, shard) => shard)

/** Dependencies of the role. */
export interface MxDeps {
  readonly handlers: Omit<ReturnedMailDeps, 'parser' | 'received' | 'unread'> &
    Pick<InboundMailDeps, 'secrets' | 'freshMails'> & {
      /** The resource that has no room for new mail; null if there is room. */
      readonly roomLack: () => string | null
      /** Null: this installation has no content store. */
      readonly contents: Contents | null
      readonly metrics: Pick<Metrics, 'received'>
      readonly readKeys: ReadKeys
      /** Judges the senders of reports. */
      readonly judges: Pick<MailJudge, 'judge'>
    }
  readonly openCertificate: () => CertificateWatch
  readonly sockets: InheritedSockets
  readonly log: EdgeLog
}

/** Where mail is received without a place for it. */
export class NoContentStore extends Error {}

/** Starts the listener on MX_PORT; null if the port is 0. Throws Error when it is taken, NoContentStore. */
export async function startMx(
  config: Config,
  { handlers, openCertificate, sockets, log }: MxDeps,
): Promise<{ close(): Promise<void> } | null> {
  if (config.mxPort === 0) return null
  const { contents, metrics } = handlers
  if (contents === null)
    throw new NoContentStore(
      'MX_PORT: received mail has no place: set CONTENT_STORE to file, with a DATA_DIR that all processes share, or to s3://bucket/prefix; or MX_PORT to 0, then this process receives none',
    )
  const { dataDir, smtpHostname: name, inboundDomain } = config
  // Processes that receive no mail do without the library.
  const { startMxListener } = await import('./mx-listener.ts')
  const parser = makeReturnedParser()
  const reportReader = makeReportReader()
  const unread = makeUnreadReports({
    dataDir,
    clientHmac: handlers.secrets.clientHmac,
    nowMs: handlers.nowMs,
    lastErasedMs: () => readLastErasedMs(handlers.readKeys, ALL_SHARDS),
    log,
  })
  const received = (kind: string) => metrics.received(kind)
  const findAddressee = makeAddresseeFinder(handlers.read)
  const listener = await startMxListener({
    host: config.smtpHost,
    port: config.mxPort,
    fd: sockets.take(config.mxPort),
    name,
    certificate: openCertificate(),
    proxies: config.proxyProtocolFrom,
    rate: makeSenderRate(() => performance.now()),
    handlers: makeMxMail({
      inbound: {
        ...handlers,
        hasRoom: () => handlers.roomLack() === null,
        contents,
        findAddressee,
        random: Math.random,
        received,
      },
      returned: makeReturnedMail({ ...handlers, parser, unread, received }),
      reports: makeReportMails({ ...handlers, reader: reportReader, receiver: name, received }),
      inboundDomain,
      received,
    }),
    log,
  })
  return {
    async close() {
      await listener.close()
      await Promise.all([parser.close(), reportReader.close()])
      await unread.close()
    },
  }
}
