/**
 * open - the listeners of a process with the role `submission`: STARTTLS on one port, TLS on another
 *
 * It makes no decisions itself: the owner of the account's shard, in this process or another, accepts a message.
 */

import type { EdgeLog } from '../../http/request.ts'
import type { CertificateWatch } from '../../process/certificate-watch.ts'
import type { Config } from '../../process/config.ts'
import type { HeldBytes } from '../../process/held-bytes.ts'
import type { InheritedSockets } from '../../process/listening/inherited-sockets.ts'
import type { Metrics } from '../../process/metrics.ts'
import { makeBodyReader } from './body-reader.ts'
import { FailedLogins } from './failed-logins.ts'
import type { SubmissionHandlers, SubmissionListener } from './listener.ts'
import { checkLogin, type LoginDeps, logIn } from './login.ts'
import { codeOfReply } from './replies.ts'
import { refuseFull, type SubmitDeps, submit } from './submit.ts'

/** Dependencies of the role. */
export interface SubmissionDeps {
  readonly handlers: Omit<SubmitDeps, 'reader' | 'metrics'> & { readonly metrics: Metrics }
  readonly keys: LoginDeps['keys']
  /** Where messages are counted that are held in memory. */
  readonly held: HeldBytes
  readonly openCertificate: () => CertificateWatch
  readonly sockets: InheritedSockets
  readonly log: EdgeLog
}

/** Starts the listeners whose port is not 0; null if both are 0. Throws Error if a port is in use. */
export async function startSubmission(
  config: Config,
  { handlers: deps, keys, held, openCertificate, sockets, log }: SubmissionDeps,
): Promise<{ close(): Promise<void> } | null> {
  const { smtpHost: host, smtpHostname: name, proxyProtocolFrom: proxies } = config
  const ports = [
    { setting: 'SUBMISSION_PORT', port: config.submissionPort, isImplicitTls: false },
    { setting: 'SUBMISSION_TLS_PORT', port: config.submissionTlsPort, isImplicitTls: true },
  ].filter(({ port }) => port !== 0)
  if (ports.length === 0) return null
  // Processes that take no mail do without the library.
  const { startSubmissionListener } = await import('./listener.ts')
  const reader = makeBodyReader()
  const certificate = openCertificate()
  const failedLogins = new FailedLogins(() => performance.now())
  const handlers = makeHandlers({ ...deps, reader }, { keys, read: deps.read })
  const open: SubmissionListener[] = []
  const close = async () => {
    await Promise.all(open.map((listener) => listener.close()))
    await reader.close()
  }
  deps.metrics.watchSubmission(() => open.reduce((sum, { connections }) => sum + connections, 0))
  for (const one of ports) {
    const listener = startSubmissionListener({
      ...one,
      host,
      fd: sockets.take(one.port),
      name,
      certificate,
      proxies,
      offersReports: config.submissionDsn === 'on',
      failedLogins,
      held,
      handlers,
      log,
    })
    open.push(
      await listener.catch(async (error: Error) => {
        await close()
        throw error
      }),
    )
  }
  return { close }
}

function makeHandlers(deps: SubmitDeps & { readonly metrics: Metrics }, login: LoginDeps): SubmissionHandlers {
  return {
    logIn: (given) => logIn(login, given),
    begin: async (session) => refuseFull(deps) ?? (await checkLogin(login, session)),
    message: (session, mail) => submit(deps, session, mail),
    told: (what, answer) => deps.metrics.submitted(what, answer === 'cut' ? 'cut' : codeOfReply(answer)),
  }
}
