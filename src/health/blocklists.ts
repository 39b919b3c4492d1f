/**
 * blocklists - whether the sending addresses are on a DNS blocklist
 *
 * Spec operator.health, blocklist.check
 */

import type { Finding } from '../../schemas/operator/health.ts'
import { askBlocklists, type BlocklistResult } from '../dns/blocklist.ts'
import { isPublicAddress } from '../mail/ip-address.ts'
import type { Config } from '../process/config.ts'
import { type DnsDeps, lookUpAddresses } from './dns.ts'
import { warning, well } from './finding.ts'

const REASONS: Readonly<Record<Exclude<BlocklistResult['unusable'], null>, string>> = {
  no_answer: 'does not answer',
  refused: 'refuses the resolver of this machine',
  no_test_entry: 'does not list its test entry',
  lists_everything: 'lists every address',
  bad_answer: 'answers with addresses outside of 127.0.0.0/8',
}

/** Asks the lists of the settings. Takes the public outgoing addresses, as far as they are known, and of sources. */
export async function examineBlocklists(
  { resolver, config }: DnsDeps & { readonly config: Pick<Config, 'blocklists'> },
  outAddresses: readonly string[],
  sources: readonly string[] = [],
): Promise<Finding> {
  const { blocklists: lists, smtpHostname, privateNetworksAllowed } = config
  if (lists.length === 0) return well('blocklists', 'BLOCKLISTS names no list')
  const named = outAddresses.length > 0 ? outAddresses : ((await lookUpAddresses(resolver, smtpHostname)) ?? [])
  const all = [...new Set([...named, ...sources])]
  const addresses = all.filter((one) => isPublicAddress(one, privateNetworksAllowed))
  if (addresses.length === 0) return well('blocklists', 'No public sending address is known: no list was asked')
  return blocklistFinding(await askBlocklists(resolver, { lists, addresses }), addresses)
}

/** What the results mean. */
export function blocklistFinding(results: readonly BlocklistResult[], addresses: readonly string[]): Finding {
  const listed = results.flatMap(({ list, listings }) => listings.map((one) => ({ list, ...one })))
  if (listed.length > 0) {
    const texts = listed.map(({ list, address, codes, reason }) =>
      [`${address} is on ${list} (${codes.join(', ')})`, reason].filter(Boolean).join(': '),
    )
    return warning('blocklists', texts.join('; '), 'Find what was sent, stop it, then ask the list for removal')
  }
  const unusable = results.filter((one) => one.unusable !== null)
  if (unusable.length === 0)
    return well('blocklists', `${addresses.join(', ')} on none of ${results.map(({ list }) => list).join(', ')}`)
  const texts = unusable.map(({ list, unusable: why }) => `${list} ${REASONS[why as keyof typeof REASONS]}`)
  return warning(
    'blocklists',
    texts.join('; '),
    'Set DNS_SERVERS to your own resolver, or remove the list from BLOCKLISTS',
  )
}
