/**
 * dnssec - whether the name servers validate with DNSSEC, as DNSSEC=trusted says
 *
 * A name with a wrong signature must get no answer, and a signed one must be reported as validated. The way to the name
 * servers must be safe too, because nothing protects their word.
 *
 * Spec delivery.dane, operator.health
 */

import { getServers } from 'node:dns'
import ipaddr from 'ipaddr.js'
import type { Finding } from '../../schemas/operator/health.ts'
import type { Resolver } from '../dns/resolve.ts'
import type { Config } from '../process/config.ts'
import { failed, warning, well } from './finding.ts'

/** A name whose signature is wrong on purpose, and a signed one. */
const BAD_NAME = 'dnssec-failed.org'
const GOOD_NAME = 'ietf.org'
/** The code of a name whose validation has failed (RFC 4035 5.5). */
const BOGUS = 'ESERVFAIL'
const VALIDATE = 'Use a resolver that validates (unbound, BIND) in DNS_SERVERS, or set DNSSEC=off'

export interface DnssecDeps {
  readonly resolver: Resolver
  readonly config: Pick<Config, 'dnssec' | 'dnsServers'>
}

/** Asks for both names. */
export async function examineDnssec({ resolver, config }: DnssecDeps): Promise<Finding> {
  if (config.dnssec === 'off') return well('dnssec', 'DNSSEC=off: TLSA records of mail servers are not used (DANE)')
  const [bad, good] = await Promise.all([
    resolver.look('A', BAD_NAME, { fresh: true }),
    resolver.look('MX', GOOD_NAME, { fresh: true }),
  ])
  if (bad.status !== 'failure')
    return failed('dnssec', `The resolver answers for ${BAD_NAME}, whose signature is wrong`, VALIDATE)
  if (good.status !== 'ok' || bad.code !== BOGUS) {
    const [name, state] = good.status === 'ok' ? [BAD_NAME, bad.code] : [GOOD_NAME, good.status]
    return warning(
      'dnssec',
      `The resolver gave no answer about ${name}: ${state}`,
      'Fix resolver, then run doctor again',
    )
  }
  if (good.secure === undefined)
    return failed('dnssec', `The resolver does not report that ${GOOD_NAME} is validated (AD)`, VALIDATE)
  const servers = config.dnsServers.length > 0 ? config.dnsServers : getServers()
  const outside = servers.find((server) => !isLocal(server))
  if (outside !== undefined)
    return warning(
      'dnssec',
      `The resolver ${outside} validates, but is not on this machine: its replies can be forged on the way`,
      'Run a validating resolver on this machine, and set DNS_SERVERS to it',
    )
  return well('dnssec', `${servers.join(', ')} validates with DNSSEC: DANE is used`)
}

/** Takes `ip`, `ip:port` or `[ip]:port`. */
function isLocal(server: string): boolean {
  const host = /^\[([^\]]+)\]/.exec(server)?.[1] ?? (server.split(':').length === 2 ? server.split(':')[0] : server)
  return ipaddr.isValid(host ?? '') && ipaddr.process(host ?? '').range() === 'loopback'
}
