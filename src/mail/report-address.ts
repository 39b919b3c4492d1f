/**
 * report-address - the address to which receivers send the aggregate reports about one domain: `d-<token>@<host>`
 *
 * A token is 40 characters of base32: `type<<4|keyId` (1 byte), the uuid of the domain (16), HMAC-SHA256 over both,
 * truncated to 8 bytes. It is in a public DNS record, so it is no secret: it only saves a lookup for addresses that
 * were never given out.
 *
 * Spec reports.address
 */

import { createHmac, timingSafeEqual } from 'node:crypto'
import { decodeBase32, encodeBase32 } from './base32.ts'

/** 1 is that of return paths, 2 that of unsubscribe links. */
const TOKEN_TYPE = 3
const KEY_ID = 0
const PREFIX = 'd-'
const MAC_AT = 17
const MAC_BYTES = 8
const TOKEN_BYTES = MAC_AT + MAC_BYTES
const TOKEN_CHARS = 40
const TOKEN_PATTERN = /^[a-z2-7]{40}$/

/** The local part of the address of a domain. Takes the key that signs tokens and the domain's uuid. */
export function formatReportMailbox(key: Buffer, domainId: string): string {
  const bytes = Buffer.alloc(TOKEN_BYTES)
  bytes[0] = (TOKEN_TYPE << 4) | KEY_ID
  bytes.write(domainId.replaceAll('-', ''), 1, 'hex')
  macOf(key, bytes).copy(bytes, MAC_AT)
  return `${PREFIX}${encodeBase32(bytes)}`
}

/** Whether a local part has the form of such an address, forged or not. */
export function isReportMailbox(localPart: string): boolean {
  return localPart.length === PREFIX.length + TOKEN_CHARS && localPart.toLowerCase().startsWith(PREFIX)
}

/** The uuid of the domain that a local part names, in any case; null for any other text and for a forged one. */
export function parseReportMailbox(key: Buffer, localPart: string): string | null {
  const token = localPart.toLowerCase().slice(PREFIX.length)
  if (!isReportMailbox(localPart) || !TOKEN_PATTERN.test(token)) return null
  const bytes = decodeBase32(token)
  // Compared in constant time: how much of a guess was right must not show.
  if (!timingSafeEqual(macOf(key, bytes), bytes.subarray(MAC_AT))) return null
  if (bytes[0] !== ((TOKEN_TYPE << 4) | KEY_ID)) return null
  const hex = bytes.toString('hex', 1, MAC_AT)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

function macOf(key: Buffer, bytes: Buffer): Buffer {
  return createHmac('sha256', key).update(bytes.subarray(0, MAC_AT)).digest().subarray(0, MAC_BYTES)
}

/** The text of the record that lets reports about other domains come here (RFC 7489 7.1, RFC 9990 4). */
export const REPORT_AUTHORIZATION = 'v=DMARC1'

/** The name below which reporters look for that record, for the addresses of a host. */
export function reportAuthorization(host: string): string {
  return `_report._dmarc.${host}`
}
