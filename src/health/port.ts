/**
 * port - whether mail gets out: the relay, or port 25 of receivers that are always there
 *
 * Spec operator.health
 */

import { lookup } from 'node:dns/promises'
import type { Finding } from '../../schemas/operator/health.ts'
import type { Resolver } from '../dns/resolve.ts'
import { isPublicAddress } from '../mail/ip-address.ts'
import { parseRelayUrl, type RelayTarget } from '../outbound/thread/relay.ts'
import type { Config } from '../process/config.ts'
import { failed, well } from './finding.ts'
import { type Probed, probeSmtp } from './probe-smtp.ts'
import { isPublishable } from './service-records.ts'

/** Three, so that one that is away is not taken for a closed port. */
const RECEIVERS = ['gmail.com', 'outlook.com', 'yahoo.com']

export interface PortDeps {
  readonly resolver: Resolver
  readonly config: Pick<Config, 'relayUrl' | 'deliveryPort' | 'privateNetworksAllowed'>
}

/** What was found, and the public address that connections go out from where that shows. */
export interface PortFound {
  readonly finding: Finding
  /** Null: it does not show (network address translation, or a relay that hides it). */
  readonly outAddress: string | null
}

/** Connects as delivery would, and says nothing but QUIT. */
export async function examinePort({ resolver, config }: PortDeps): Promise<PortFound> {
  const target = config.relayUrl === null ? null : parseRelayUrl(config.relayUrl)
  if (target !== null) return { finding: relayFinding(target, await probeRelay(target)), outAddress: null }
  const probes = await Promise.all(RECEIVERS.map((domain) => probeReceiver(domain, { resolver, config })))
  const port = config.deliveryPort
  for (const probed of probes)
    if (probed.ok) {
      const isPublic = isPublishable(probed.localAddress, config.privateNetworksAllowed)
      const finding = well('outbound-port', `Receiving servers answer on port ${port}`)
      return { finding, outAddress: isPublic ? probed.localAddress : null }
    }
  const texts = probes.map((probed) => (probed.ok ? '' : probed.text))
  const fix = `Have the provider of this machine open port ${port} to the outside, or set RELAY_URL to a relay that may be reached`
  return {
    finding: failed('outbound-port', `No receiving server was reached: ${texts.join('; ')}`, fix),
    outAddress: null,
  }
}

function relayFinding({ host, port }: RelayTarget, probed: Probed): Finding {
  if (probed.ok) return well('outbound-port', `The relay ${host}:${port} answers`)
  return failed('outbound-port', `The relay was not reached: ${probed.text}`, 'Start the relay, or mend RELAY_URL')
}

async function probeRelay({ host, port, isImplicitTls }: RelayTarget): Promise<Probed> {
  const found = await lookup(host).catch((error: NodeJS.ErrnoException) => error.code ?? 'EUNKNOWN')
  if (typeof found === 'string') return { ok: false, text: `${host}: ${found}` }
  return probeSmtp({ host, address: found.address, port, greets: !isImplicitTls })
}

async function probeReceiver(domain: string, { resolver, config }: PortDeps): Promise<Probed> {
  const exchanges = await resolver.look('MX', domain)
  const host = exchanges.status === 'ok' ? exchanges.records[0]?.exchange : undefined
  if (host === undefined) return { ok: false, text: `MX of ${domain} was not resolved` }
  const addresses = await resolver.look('A', host)
  const all = addresses.status === 'ok' ? addresses.records : []
  const address = all.find((one) => isPublicAddress(one, config.privateNetworksAllowed))
  if (address === undefined) return { ok: false, text: `${host} has no address` }
  return probeSmtp({ host, address, port: config.deliveryPort, greets: true })
}
