/** startup-summary - the log line of a process when it starts and stops, with its roles, listeners and store */

import type { EngineName } from '../http/engine/engine.ts'
import type { Config } from '../process/config.ts'

/** Facts about a process for the log. */
export interface RunFacts {
  readonly roles: readonly string[]
  /** By name: `host:port`. */
  readonly listeners: Readonly<Record<string, string>>
  /** The library that serves HTTP; null if this process does not listen for HTTP. */
  readonly httpEngine: EngineName | null
  /** Our own Redis's directory, or the host of another's; never a password. */
  readonly store: string
}

/** The facts of a process with these settings. */
export function startupSummary(config: Config, engine: EngineName): RunFacts {
  const { roles, httpHost, operatorHost, operatorPort, smtpHost, redisUrls, dataDir } = config
  const has = (role: Config['roles'][number]): boolean => roles.includes(role)
  const all: readonly (readonly [name: string, host: string, port: number])[] = [
    ['http', httpHost, has('http') ? config.httpPort : 0],
    ['operator', operatorHost, operatorPort],
    ['submission', smtpHost, has('submission') ? config.submissionPort : 0],
    ['submission with TLS', smtpHost, has('submission') ? config.submissionTlsPort : 0],
    ['mx', smtpHost, has('mx') ? config.mxPort : 0],
  ]
  const open = all.filter(([, , port]) => port !== 0)
  return {
    roles,
    listeners: Object.fromEntries(open.map(([name, host, port]) => [name, `${host}:${port}`])),
    httpEngine: has('http') || operatorPort !== 0 ? engine : null,
    store: redisUrls.length === 0 ? `redis in ${dataDir}` : redisUrls.map(hostOf).join(', '),
  }
}

/** A URL of Redis without user and password. */
function hostOf(url: string): string {
  const { protocol, host, pathname } = new URL(url)
  return `${protocol}//${host}${pathname}`
}
