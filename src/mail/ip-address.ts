/**
 * ip-address - IP addresses as texts: public addresses, internal ones, and the client behind an address.
 *
 * Public is what the registries of special-purpose addresses (RFC 6890) leave: of IPv6 only 2000::/3 less its reserved
 * parts, so that nothing that carries an IPv4 address in it (mapped, compatible, NAT64, 6to4, Teredo) is public.
 *
 * Spec webhook.private, request.rate, mx.rate
 */

import ipaddr from 'ipaddr.js'

type Address = ReturnType<typeof ipaddr.parse>

/** In a global unicast address the first three bits are 001 (RFC 4291 2.4). */
const GLOBAL_MASK = 0xe000
const GLOBAL_BITS = 0x2000
/** Parts of 16 bits that name the network of an IPv6 client. */
const CLIENT_PARTS = 4
/** Kinds of address that never leave a site: loopback, RFC 1918, RFC 4193, link-local. */
const INSIDE: ReadonlySet<string> = new Set(['loopback', 'private', 'uniqueLocal', 'linkLocal'])

/**
 * True if connections to the IP address are allowed, because it is public or within `allowedCidrs`; an IPv4-mapped
 * form counts as its IPv4 address. False for anything that is not an IP address, and for one with a zone.
 */
export function isPublicAddress(address: string, allowedCidrs: readonly string[]): boolean {
  const parsed = parseStrictly(address)
  if (parsed === null) return false
  return isPublic(parsed) || isWithin(address, allowedCidrs)
}

/**
 * True if the IP address is in one of the networks; an IPv4-mapped form is also the IPv4 address that it contains.
 * In: networks as CIDRs. Anything that is not an IP address is false.
 */
export function isWithin(address: string, cidrs: readonly string[]): boolean {
  const parsed = parseStrictly(address)
  if (parsed === null) return false
  const forms = [parsed, unmap(parsed)]
  return cidrs.some((cidr) => {
    const [network, bits] = ipaddr.parseCIDR(cidr)
    return forms.some((form) => network.kind() === form.kind() && form.match(network, bits))
  })
}

/**
 * True if packets to the address stay on this machine or in its network. This is not the opposite of public, because a
 * reserved address, or one that embeds another, may lead outside.
 */
export function isInsideAddress(address: string): boolean {
  const parsed = parseStrictly(address.replace(/%.*$/, ''))
  return parsed !== null && INSIDE.has(unmap(parsed).range())
}

/**
 * The client behind an address, for counting. An IPv4 address, also one mapped into IPv6 (RFC 4291 2.5.5.2), is one
 * client; all IPv6 addresses of a /64 are one client, because they belong together, or on request those of a /56,
 * which many providers assign to one customer. Other texts stay as they are.
 */
export function clientNetwork(address: string, bits: 64 | 56 = 64): string {
  if (!address.includes(':') || !ipaddr.IPv6.isValid(address)) return address
  const parsed = ipaddr.IPv6.parse(address)
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString()
  const parts = parsed.parts.slice(0, CLIENT_PARTS)
  if (bits === 56) parts[CLIENT_PARTS - 1] = (parts[CLIENT_PARTS - 1] as number) & 0xff00
  return parts.map((part) => part.toString(16)).join(':')
}

/** An IP address in the one form in which it is compared (RFC 5952); null for anything else. */
export function normalAddress(text: string): string | null {
  const parsed = parseStrictly(text.trim())
  return parsed === null ? null : unmap(parsed).toString()
}

function isPublic(parsed: Address): boolean {
  if (parsed.range() !== 'unicast') return false
  return !(parsed instanceof ipaddr.IPv6) || ((parsed.parts[0] as number) & GLOBAL_MASK) === GLOBAL_BITS
}

/** Accepts only four decimal numbers, because the library would also read 0x7f.1 and 017700000001. */
function parseStrictly(address: string): Address | null {
  if (ipaddr.IPv4.isValidFourPartDecimal(address)) return ipaddr.IPv4.parse(address)
  return !address.includes('%') && ipaddr.IPv6.isValid(address) ? ipaddr.IPv6.parse(address) : null
}

function unmap(parsed: Address): Address {
  return parsed instanceof ipaddr.IPv6 && parsed.isIPv4MappedAddress() ? parsed.toIPv4Address() : parsed
}
