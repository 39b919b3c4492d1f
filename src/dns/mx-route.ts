/**
 * mx-route - the route of mail for a domain: its mail servers in the order to try, their site, and the requirements of
 * its MTA-STS policy.
 *
 * Spec delivery.mx, delivery.sts
 */

import { makeUnasked } from '../mail/classify.ts'
import { planExchanges } from '../mail/mx.ts'
import { makeDeferred, type Outcome } from '../mail/outcome.ts'
import { type SiteLimits, type SiteLimitTable, siteLimits, siteName } from '../mail/site.ts'
import { isNamed, type StsPolicy } from '../mail/sts-policy.ts'
import type { Resolver } from './resolve.ts'
import type { StsPolicies } from './sts.ts'

/** Maximum number of exchanges considered; the others of a domain are ignored. */
const HOSTS_MAX = 10

export interface MxRoute {
  readonly site: string
  /** In the order to try; those of equal preference are shuffled each time. */
  readonly hosts: readonly string[]
  readonly limits: SiteLimits
  /** The mode of the domain's policy; null if it has none. */
  readonly sts: 'enforce' | 'testing' | null
  /** False if the policy is in testing mode and names none of the hosts. */
  readonly isNamed: boolean
  /** We receive for the domain ourselves: our own servers and addresses are the right ones. */
  readonly isOwn: boolean
  /** It is the operator's relay, which no rule of strangers holds for. */
  readonly isRelay: boolean
  /**
   * The domain and the name at which its aliases end, if the resolver has validated the list of mail servers: then DANE
   * applies to those (RFC 7672 2.2). Null otherwise.
   */
  readonly secureNames: readonly string[] | null
}

export interface MxRouteDeps {
  readonly resolver: Resolver
  readonly policies: StsPolicies
  readonly siteLimits: SiteLimitTable
  /** Names under which we receive: mail for others must not go there, it would come back. */
  readonly ownHosts: readonly string[]
  /** Domains that we receive for, with all below them. */
  readonly ownDomains: readonly string[]
  /** A random number, 0 to 1. */
  unit(): number
}

/** The route of mail through the operator's relay. Takes its limits. */
export function relayRoute(limits: SiteLimits): MxRoute {
  const policies = { sts: null, isNamed: true, secureNames: null }
  return { site: 'relay', hosts: [], limits, ...policies, isOwn: true, isRelay: true }
}

/** The route for a domain (A-labels, lower case), or the outcome if there is none. Never rejects. */
export async function findRoute(domain: string, deps: MxRouteDeps): Promise<MxRoute | Outcome> {
  const [found, policy] = await Promise.all([deps.resolver.look('MX', domain), deps.policies.find(domain)])
  if (found.status === 'nxdomain') return makeUnasked('no-domain')
  if (found.status === 'failure') return makeDeferred('dns', 'DNSFailure', `4.4.3 MX lookup failed: ${found.code}`)
  const records = found.status === 'ok' ? found.records : []
  const isOwn = deps.ownDomains.some((own) => domain === own || domain.endsWith(`.${own}`))
  const ownHosts = isOwn ? [] : deps.ownHosts
  const plan = planExchanges({ domain, records, units: records.map(() => deps.unit()), ownHosts })
  if (plan.kind === 'null-mx') return makeUnasked('null-mx')
  if (plan.kind === 'loop') return makeUnasked('loop')
  if (plan.kind === 'unusable') return makeUnasked('no-exchange')
  const secureNames = found.secure === undefined ? null : [...new Set([domain, found.secure.name])]
  return withPolicy(plan.hosts, { policy, isOwn, secureNames, deps })
}

function withPolicy(
  hosts: readonly string[],
  {
    policy,
    isOwn,
    secureNames,
    deps,
  }: Pick<MxRoute, 'isOwn' | 'secureNames'> & {
    readonly policy: StsPolicy | null
    readonly deps: MxRouteDeps
  },
): MxRoute | Outcome {
  const sts = policy === null || policy.mode === 'none' ? null : policy.mode
  const named = policy === null || sts === null ? hosts : hosts.filter((host) => isNamed(policy, host))
  // RFC 8461 5.1: only servers named by the policy may be used, but the mail does not bounce, because the policy
  // itself may be wrong.
  if (named.length === 0 && sts === 'enforce')
    return makeDeferred('conn', 'PolicyRelated', '4.7.0 No mail server matches the MTA-STS policy')
  return {
    site: siteName(hosts),
    hosts: (sts === 'enforce' ? named : hosts).slice(0, HOSTS_MAX),
    limits: siteLimits(hosts, deps.siteLimits),
    sts,
    isNamed: named.length > 0,
    isOwn,
    isRelay: false,
    secureNames,
  }
}
