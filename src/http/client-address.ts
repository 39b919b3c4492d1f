/**
 * client-address - the client's address: the peer, or the one reported by trusted proxies
 *
 * X-Forwarded-For is read from right to left as long as the reporting proxy is trusted; the first address that is not a
 * trusted proxy is the client. An invalid entry ends the chain at the proxy that reported it.
 *
 * Spec request.client
 */

import ipaddr from 'ipaddr.js'

type Range = ReturnType<typeof ipaddr.parseCIDR>

/** Maximum number of hops of X-Forwarded-For that are read. */
const HOPS_MAX = 32
/** Peers whose trust is cached. */
const PEERS_MAX = 1000

/** Names the client. Takes the peer's address as text and the X-Forwarded-For header ('' if absent). */
export type ClientAddress = (peer: string, forwardedFor: string) => string

/** Makes the reader. Takes CIDRs or addresses of trusted proxies. Throws Error if one does not parse. */
export function makeClientAddress(trustedProxies: readonly string[]): ClientAddress {
  const ranges = trustedProxies.map(parseRange)
  const trusted = new Map<string, boolean>()
  function isTrustedPeer(peer: string): boolean {
    const known = trusted.get(peer)
    if (known !== undefined) return known
    if (trusted.size >= PEERS_MAX) trusted.clear()
    const answer = isTrusted(ranges, peer)
    trusted.set(peer, answer)
    return answer
  }
  return function clientAddress(peer, forwardedFor) {
    if (forwardedFor === '' || !isTrustedPeer(peer)) return peer
    return lastUntrusted(ranges, peer, forwardedFor)
  }
}

function lastUntrusted(ranges: readonly Range[], peer: string, forwardedFor: string): string {
  let client = peer
  for (const hop of forwardedFor.split(',').reverse().slice(0, HOPS_MAX)) {
    const text = hop.trim()
    if (!ipaddr.isValid(text)) return client
    client = ipaddr.process(text).toString()
    if (!isTrusted(ranges, client)) return client
  }
  return client
}

function isTrusted(ranges: readonly Range[], text: string): boolean {
  if (!ipaddr.isValid(text)) return false
  const address = ipaddr.process(text)
  return ranges.some(([network, bits]) => network.kind() === address.kind() && address.match(network, bits))
}

function parseRange(text: string): Range {
  if (text.includes('/')) return ipaddr.parseCIDR(text)
  const address = ipaddr.process(text)
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}
