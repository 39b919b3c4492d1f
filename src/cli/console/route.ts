/** route - the route of a delivery attempt in one line: server, addresses, encryption, milliseconds of each step */
import type { MessageEvent } from '../../../schemas/message.ts'

/** The line; empty if no mail server was tried. */
export function formatRoute(route: MessageEvent['route']): string {
  if (route === null) return ''
  const { host, address, sourceAddress, mtaSts, dane, connectionReused } = route
  const { dnsMs, connectMs, tlsMs, transactionMs } = route
  const steps = Object.entries({ dns: dnsMs, connect: connectMs, tls: tlsMs, smtp: transactionMs })
  const times = steps.flatMap(([name, ms]) => (ms === null ? [] : `${name} ${ms}`))
  return [
    host + (address === null ? '' : `[${address}]`) + (sourceAddress === null ? '' : ` from ${sourceAddress}`),
    ...(transactionMs === null ? [] : [formatTls(route)]),
    ...(mtaSts === null ? [] : [`MTA-STS ${mtaSts}`]),
    ...(dane === null ? [] : [`DANE ${dane}`]),
    ...(connectionReused ? ['connection reused'] : []),
    ...(times.length === 0 ? [] : [`${times.join(', ')} ms`]),
  ].join('; ')
}

function formatTls({ tlsVersion, cipher, certificateVerified }: NonNullable<MessageEvent['route']>): string {
  if (tlsVersion === null) return 'plaintext'
  return `${tlsVersion} ${cipher ?? ''} (certificate ${certificateVerified ? 'verified' : 'not verified'})`
}
