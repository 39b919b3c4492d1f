/**
 * sending-addresses - the public addresses from which this service sends mail: those of the name that it gives in EHLO
 *
 * Behind a router the machine does not know them, but receivers require that the name leads to them.
 */

import { isPublicAddress, normalAddress } from '../mail/ip-address.ts'
import type { Config } from '../process/config.ts'
import type { Resolver } from './resolve.ts'

/** Reads the addresses. There are none behind a relay, whose addresses are its own, and if they are unknown. */
export function makeSendingAddresses(
  config: Pick<Config, 'smtpHostname' | 'relayUrl' | 'privateNetworksAllowed'>,
  resolver: Pick<Resolver, 'look'>,
): () => Promise<readonly string[]> {
  const { smtpHostname, relayUrl, privateNetworksAllowed } = config
  return async () => {
    if (relayUrl !== null) return []
    const answers = await Promise.all([resolver.look('A', smtpHostname), resolver.look('AAAA', smtpHostname)])
    const found = answers.flatMap((answer) => (answer.status === 'ok' ? answer.records : [])).map(normalAddress)
    return found.filter((one): one is string => one !== null && isPublicAddress(one, privateNetworksAllowed))
  }
}
