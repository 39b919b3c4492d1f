/**
 * mx-port - whether bounces and complaints reach MX_PORT: port 25 of the service's mail server, tried from here
 *
 * The view from here may differ from that of others: a firewall in front of the machine passes its own connections,
 * and many routers do not route connections from inside back in. So each finding names its limits and a way to check
 * from outside.
 *
 * Spec operator.health
 */

import { networkInterfaces } from 'node:os'
import type { Finding } from '../../schemas/operator/health.ts'
import type { Resolver } from '../dns/resolve.ts'
import type { Config } from '../process/config.ts'
import { lookUpAddresses } from './dns.ts'
import { failed, warning, well } from './finding.ts'
import { probeSmtp } from './probe-smtp.ts'
import { isPublishable } from './service-records.ts'

export interface MxPortDeps {
  readonly resolver: Resolver
  readonly config: Pick<Config, 'serviceDomain' | 'smtpHostname' | 'deliveryPort' | 'privateNetworksAllowed'>
  /** Reads the roles of the living processes. */
  readonly livingRoles: () => Promise<ReadonlySet<string>>
}

/** Addresses that are tried. */
const TRIED_MAX = 4

/** Connects like a sender of bounces, and sends nothing but QUIT. */
export async function examineMxPort({ resolver, config, livingRoles }: MxPortDeps): Promise<Finding> {
  const { serviceDomain, smtpHostname, deliveryPort: port, privateNetworksAllowed } = config
  if (!(await livingRoles()).has('mx'))
    return well('mx-port', 'Not checked: no process receives bounces and complaints')
  const host = `mx.${serviceDomain}`
  const addresses = await lookUpAddresses(resolver, host)
  if (addresses === null)
    return warning('mx-port', `DNS did not answer about ${host}`, 'Fix resolver, then run doctor again')
  if (addresses.length === 0) return failed('mx-port', `${host} has no address`, 'Fix mx first')
  const elsewhere = `To check from another machine: nc -v ${host} ${port} must greet with ${smtpHostname}`
  for (const address of addresses.slice(0, TRIED_MAX)) {
    if (!isPublishable(address, privateNetworksAllowed))
      return failed(
        'mx-port',
        `${host} is ${address}, which is not reachable from outside`,
        `Put the public address into the DNS record ${host} ${address.includes(':') ? 'AAAA' : 'A'}, and forward its port ${port} to MX_PORT`,
      )
    const probed = await probeSmtp({ host, address, port, greets: true })
    if (!probed.ok)
      return warning(
        'mx-port',
        `${address} did not answer on port ${port} from here (${probed.text}). A router without hairpin NAT causes this too, so others may still reach the port`,
        `Forward port ${port} of ${address} to MX_PORT and open it in the firewall. ${elsewhere}`,
      )
    if (nameIn(probed.greeting) !== smtpHostname.toLowerCase())
      return failed(
        'mx-port',
        `Another server answers on port ${port} of ${address}: ${probed.greeting}`,
        `Forward port ${port} of ${address} to MX_PORT of the process that receives bounces. ${elsewhere}`,
      )
  }
  const isOwn = addresses.every((address) => ownAddresses().has(address))
  const unknown = isOwn
    ? 'these are addresses of the machine itself, so a firewall in front may still block others'
    : 'a firewall may still block others'
  return well('mx-port', `${host} (${addresses.join(', ')}) greets on port ${port}; ${unknown}. ${elsewhere}`)
}

/** The name that a greeting begins with (RFC 5321 4.2). */
function nameIn(greeting: string): string {
  return greeting.slice(4).split(/[\s]/)[0]?.toLowerCase() ?? ''
}

function ownAddresses(): ReadonlySet<string> {
  return new Set(Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address)))
}
