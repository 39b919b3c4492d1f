/**
 * host-addresses - the addresses of a mail server in the order to try: those of IPv4, alternating with those of IPv6
 * if they are used
 *
 * IPv4 is first, because receivers demand more of IPv6 clients (a reverse name, a signature), and a server that has
 * both is reached either way.
 *
 * Spec delivery.ipv6
 */

import type { Resolver } from './resolve.ts'

export interface HostAddresses {
  readonly addresses: readonly string[]
  /** It has addresses of both families, so a refusal at one may not apply to the other. */
  readonly isDual: boolean
  /** A question could not be answered: there may be more. */
  readonly hasFailed: boolean
}

/** Looks them up. Takes a name in A-labels, and which families are used; IPv4 is unless it is excluded. */
export async function hostAddresses(
  resolver: Pick<Resolver, 'look'>,
  host: string,
  { usesIpv4 = true, usesIpv6 }: { readonly usesIpv4?: boolean; readonly usesIpv6: boolean },
): Promise<HostAddresses> {
  const [a, aaaa] = await Promise.all([
    usesIpv4 ? resolver.look('A', host) : null,
    usesIpv6 ? resolver.look('AAAA', host) : null,
  ])
  const four = a?.status === 'ok' ? a.records : []
  const six = aaaa?.status === 'ok' ? aaaa.records : []
  const turns = Array.from({ length: Math.max(four.length, six.length) }, (_, n) => [four[n], six[n]])
  return {
    addresses: turns.flat().filter((one) => one !== undefined),
    isDual: four.length > 0 && six.length > 0,
    hasFailed: a?.status === 'failure' || aaaa?.status === 'failure',
  }
}
