/**
 * domain-check - the look-up of a sending domain's records, by the resolver and the servers that the settings name
 */

import { checkDomain } from '../dns/check-domain.ts'
import type { Resolver } from '../dns/resolve.ts'
import type { DomainLaneDeps } from '../outbound/domain-lanes.ts'
import type { Config } from '../process/config.ts'
import { monotonicMs } from '../process/fence.ts'

/** Port of name servers, for the second opinion of a domain's check. */
const DNS_PORT = 53

/** Looks up the records of sending domains: at the operator's name servers, otherwise also at the zone's own. */
export function makeDomainCheck(
  { dnsServers, privateNetworksAllowed }: Config,
  resolver: Resolver,
): DomainLaneDeps['check'] {
  const authoritative = dnsServers.length > 0 ? null : { port: DNS_PORT, privateNetworksAllowed }
  return (job) => checkDomain(job, { resolver, nowMs: monotonicMs, authoritative })
}
