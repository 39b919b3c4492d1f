/**
 * receiving-sites - the provider behind a mail server, by the end of the server's name
 *
 * Statistics are kept by these names. A provider with several domains has one name without a dot; every other mail
 * server counts under its registrable domain. The table is data: a provider is one row.
 */

import { getDomain } from 'tldts'

/** Providers with the ends of their mail servers' names. A server and day has room for ten names without a dot. */
const PROVIDERS: Readonly<Record<string, readonly string[]>> = {
  google: ['google.com', 'googlemail.com', 'smtp.goog'],
  microsoft: ['outlook.com', 'hotmail.com', 'office365.us', 'mx.microsoft'],
  yahoo: ['yahoodns.net'],
  apple: ['icloud.com', 'apple.com'],
  'united-internet': ['gmx.net', 'web.de', 'kundenserver.de', 'ionos.com', 'ionos.de', 'ionos.co.uk', '1and1.com'],
  proofpoint: ['pphosted.com', 'ppe-hosted.com', 'gpphosted.com'],
  mimecast: ['mimecast.com', 'mimecast.co.za', 'mimecast-offshore.com'],
  barracuda: ['barracudanetworks.com'],
}
const BY_SUFFIX: ReadonlyMap<string, string> = new Map(
  Object.entries(PROVIDERS).flatMap(([name, ends]) => ends.map((end) => [end, name] as const)),
)

/** No mail server was tried: the domain has none, or the DNS did not answer. */
export const NO_SITE = 'none'
/** Where the mail of test servers goes. */
export const SIMULATED_SITE = 'simulator'

/** The provider of a mail server, whose name is in lower case; null if it is not in the table. */
export function findProvider(host: string): string | null {
  for (let at = 0; at >= 0; at = nextLabel(host, at)) {
    const name = BY_SUFFIX.get(host.slice(at))
    if (name !== undefined) return name
  }
  return null
}

function nextLabel(host: string, at: number): number {
  const dot = host.indexOf('.', at)
  return dot < 0 ? -1 : dot + 1
}

/** The name under which a mail server counts: its provider or its registrable domain; null: it has neither. */
export function receivingSite(host: string): string | null {
  return findProvider(host) ?? getDomain(host, { validateHostname: false })
}
