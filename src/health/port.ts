/**
 * port - whether mail gets out: the relay, or port 25 of receivers that are always there
 *
 * Spec operator.health
 */

import { lookup } from 'node:dns/promises'
import type { Finding } from '../../schemas/operator/health.ts'
import type { Resolver } from '../dns/resolve.ts'
import { isPublicAddress } from '../mail/ip-address.ts'
import { parseRelayUrl, type RelayTarget } from '../outbound/thread/relay-target.ts'
import type { Config } from '../process/config.ts'
import { failed, warning, well } from './finding.ts'
import { type Probed, probeSmtp } from './probe-smtp.ts'
import { isPublishable } from './service-records.ts'

/** Three, so that one that is away is not taken for a closed port. */
const RECEIVERS = ['gmail.com', 'outlook.com', 'yahoo.com']

export interface PortDeps {
  readonly resolver: Resolver
  readonly config: Pick<Config, 'relayUrl' | 'deliveryPort' | 'deliveryIpv6' | 'privateNetworksAllowed'>
}

/** The finding, and the public addresses of outgoing connections if they are visible. */
export interface PortFound {
  readonly finding: Finding
  /**
   * At most one of each family; empty if they are not visible (network address translation, or a relay that hides
   * them).
   */
  readonly outAddresses: readonly string[]
}

type Family = 'A' | 'AAAA'

/** Connects like a delivery, and sends nothing but QUIT. */
export async function examinePort({ resolver, config }: PortDeps): Promise<PortFound> {
  const target = config.relayUrl === null ? null : parseRelayUrl(config.relayUrl)
  if (target !== null) return { finding: relayFinding(target, await probeRelay(target)), outAddresses: [] }
  const families: Family[] = config.deliveryIpv6 ? ['A', 'AAAA'] : ['A']
  const found = await Promise.all(families.map((family) => probeAll(family, { resolver, config })))
  const outAddresses = found.flatMap(({ outAddress }) => outAddress ?? [])
  const unreached = found.filter(({ texts }) => texts.length > 0)
  const [first] = unreached
  if (first === undefined)
    return { finding: well('outbound-port', `Receiving servers answer on port ${config.deliveryPort}`), outAddresses }
  return { finding: unreached.length === found.length ? noneReached(first, config) : notOver(first), outAddresses }
}

/** The results of one family: the failure of each receiver, empty if one answers, and our own public address. */
interface FamilyProbed {
  readonly family: Family
  readonly texts: readonly string[]
  readonly outAddress: string | null
}

async function probeAll(family: Family, deps: PortDeps): Promise<FamilyProbed> {
  const probes = await Promise.all(RECEIVERS.map((domain) => probeReceiver(domain, family, deps)))
  const reached = probes.find((probed) => probed.ok)
  if (reached === undefined)
    return { family, texts: probes.map((probed) => (probed.ok ? '' : probed.text)), outAddress: null }
  const isPublic = isPublishable(reached.localAddress, deps.config.privateNetworksAllowed)
  return { family, texts: [], outAddress: isPublic ? reached.localAddress : null }
}

function noneReached({ texts }: FamilyProbed, { deliveryPort: port }: PortDeps['config']): Finding {
  const fix = `Ask the provider of the machine to open outbound port ${port}, or set RELAY_URL to a reachable relay`
  return failed('outbound-port', `No receiving server was reached: ${texts.join('; ')}`, fix)
}

function notOver({ family, texts }: FamilyProbed): Finding {
  const [name, other] = family === 'AAAA' ? ['IPv6', ', or set DELIVERY_IPV6=off'] : ['IPv4', '']
  return warning(
    'outbound-port',
    `No receiving server was reached over ${name}: ${texts.join('; ')}`,
    `Give this machine an ${name} address and route${other}`,
  )
}

function relayFinding({ host, port }: RelayTarget, probed: Probed): Finding {
  if (probed.ok) return well('outbound-port', `The relay ${host}:${port} answers`)
  return failed('outbound-port', `The relay was not reached: ${probed.text}`, 'Start the relay, or fix RELAY_URL')
}

async function probeRelay({ host, port, isImplicitTls }: RelayTarget): Promise<Probed> {
  const found = await lookup(host).catch((error: NodeJS.ErrnoException) => error.code ?? 'EUNKNOWN')
  if (typeof found === 'string') return { ok: false, text: `${host}: ${found}` }
  return probeSmtp({ host, address: found.address, port, greets: !isImplicitTls })
}

async function probeReceiver(domain: string, family: Family, { resolver, config }: PortDeps): Promise<Probed> {
  const exchanges = await resolver.look('MX', domain)
  const host = exchanges.status === 'ok' ? exchanges.records[0]?.exchange : undefined
  if (host === undefined) return { ok: false, text: `MX of ${domain} was not resolved` }
  const addresses = await resolver.look(family, host)
  const all = addresses.status === 'ok' ? addresses.records : []
  const address = all.find((one) => isPublicAddress(one, config.privateNetworksAllowed))
  if (address === undefined) return { ok: false, text: `${host} has no address` }
  return probeSmtp({ host, address, port: config.deliveryPort, greets: true })
}
