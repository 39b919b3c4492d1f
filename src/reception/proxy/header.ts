/**
 * header - the header of the PROXY protocol, version 2, with which a proxy names its client (haproxy.org,
 * proxy-protocol.txt, section 2.2)
 *
 * Pure: bytes in, a verdict out.
 */

import ipaddr from 'ipaddr.js'

/** No line of SMTP or TLS begins like this. */
const SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex')
/** Signature, version and command, family, length. */
export const PROXY_HEAD_BYTES = 16
/** The head and the bytes that it announces, addresses and extensions. */
export const PROXY_HEADER_BYTES_MAX = 536
const COMMANDS = { local: 0x20, proxy: 0x21 }
const TCP4 = { code: 0x11, bytes: 12, address: 4 }
const TCP6 = { code: 0x21, bytes: 36, address: 16 }

/** The client of a proxy. `local` means the proxy itself, for a health check. */
export type ProxyClient = 'local' | { readonly address: string; readonly port: number }

/** Bytes that follow a head; null if it is not a head of version 2, or announces more than the bound. */
export function announcedBytes(head: Buffer): number | null {
  if (head.length < PROXY_HEAD_BYTES || !head.subarray(0, SIGNATURE.length).equals(SIGNATURE)) return null
  const [command] = head.subarray(SIGNATURE.length)
  if (command !== COMMANDS.local && command !== COMMANDS.proxy) return null
  const bytes = head.readUInt16BE(PROXY_HEAD_BYTES - 2)
  return bytes + PROXY_HEAD_BYTES > PROXY_HEADER_BYTES_MAX ? null : bytes
}

/**
 * Reads a whole header. Takes its head and the announced bytes. Returns the client; null if its family is not TCP over
 * IPv4 or IPv6, or its addresses are incomplete. Extensions (TLVs) are ignored.
 */
export function readProxyHeader(head: Buffer, rest: Buffer): ProxyClient | null {
  if (head[SIGNATURE.length] === COMMANDS.local) return 'local'
  const family = [TCP4, TCP6].find(({ code }) => code === head[SIGNATURE.length + 1])
  if (family === undefined || rest.length < family.bytes) return null
  const address = ipaddr.fromByteArray([...rest.subarray(0, family.address)]).toString()
  return { address, port: rest.readUInt16BE(2 * family.address) }
}
