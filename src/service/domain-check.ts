/**
 * domain-check - the lookups about sending domains, by the resolver and the servers that the settings name
 */

import { checkDomain } from '../dns/check-domain.ts'
import type { Resolver } from '../dns/resolve.ts'
import { makeSendingAddresses } from '../dns/sending-addresses.ts'
import { isPublicAddress } from '../mail/ip-address.ts'
import type { DomainLaneDeps } from '../outbound/domain-lanes.ts'
import type { Config } from '../process/config.ts'
import { monotonicMs } from '../process/fence.ts'

/** Port of name servers, for the second opinion of a domain's check. */
const DNS_PORT = 53

/** What is looked up about sending domains. */
export interface DomainLookups {
  /** Looks up the records of a domain: at the operator's name servers, otherwise also at the zone's own. */
  readonly check: DomainLaneDeps['check']
  /** Reads the public addresses from which mail is sent. */
  readonly sendingAddresses: () => Promise<readonly string[]>
}

/** Makes the lookups. Takes the addresses of sources of outgoing mail. */
export function makeDomainLookups(config: Config, resolver: Resolver, sources: () => readonly string[]): DomainLookups {
  const { dnsServers, privateNetworksAllowed } = config
  const own = makeSendingAddresses(config, resolver)
  const publicOf = (addresses: readonly string[]) =>
    addresses.filter((one) => isPublicAddress(one, privateNetworksAllowed))
  const authoritative = dnsServers.length > 0 ? null : { port: DNS_PORT, privateNetworksAllowed }
  return {
    check: (job) => checkDomain(job, { resolver, nowMs: monotonicMs, authoritative }),
    sendingAddresses: async () => [...new Set([...(await own()), ...publicOf(sources())])],
  }
}
