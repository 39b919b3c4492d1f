/**
 * return-path - envelope senders that name the recipient they were sent to (VERP), and the tokens in them.
 *
 * A token is 40 characters of base32 (RFC 4648 section 6, lower case): `type<<4|keyId` (1 byte), the message's uuid
 * (16), the recipient's index (1), HMAC-SHA256 over all these, truncated to 7 bytes. Changing the case of an address
 * does not harm it, and without the key no valid token can be made, so a forged one is refused without a lookup.
 *
 * Spec bounce.token, bounce.address
 */

import { createHmac, timingSafeEqual } from 'node:crypto'
import { decodeBase32, encodeBase32 } from './base32.ts'

/** Purpose of the token; 2 is that of unsubscribe links (`unsubscribe-token.ts`). */
const TOKEN_TYPE = 1

/** A recipient of a message. */
export interface TokenRecipient {
  /** uuid */
  readonly messageId: string
  /** From 0, at most 255. */
  readonly recipient: number
}

/** Label under which a sending domain points to the service. */
export const RETURN_PATH_LABEL = 'sw-bounce'

/** Which of up to 16 keys signed: there is one, until the installation's secret can be changed. */
const KEY_ID = 0
const PREFIX = 'b-'
const MAC_AT = 18
const MAC_BYTES = 7
const TOKEN_BYTES = MAC_AT + MAC_BYTES
const TOKEN_CHARS = 40
const TOKEN_PATTERN = /^[a-z2-7]{40}$/

/** The token of a recipient, 40 characters. Takes the key that signs tokens. */
export function formatReturnToken(key: Buffer, { messageId, recipient }: TokenRecipient): string {
  const bytes = Buffer.alloc(TOKEN_BYTES)
  bytes[0] = (TOKEN_TYPE << 4) | KEY_ID
  bytes.write(messageId.replaceAll('-', ''), 1, 'hex')
  bytes[17] = recipient
  computeMac(key, bytes).copy(bytes, MAC_AT)
  return encodeBase32(bytes)
}

/** Data of a token; null for one of another type, or one made without the key. */
export function parseToken(key: Buffer, token: string): TokenRecipient | null {
  const lower = token.toLowerCase()
  if (!TOKEN_PATTERN.test(lower)) return null
  const bytes = decodeBase32(lower)
  // Compared in constant time: how much of a guess was right must not show.
  if (!timingSafeEqual(computeMac(key, bytes), bytes.subarray(MAC_AT))) return null
  if (bytes[0] !== ((TOKEN_TYPE << 4) | KEY_ID)) return null
  const hex = bytes.toString('hex', 1, 17)
  const messageId = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
  return { messageId, recipient: bytes[17] as number }
}

/** The envelope sender of one attempt: `b-<token>@<host>`. */
export function formatReturnPath(key: Buffer, { host, ...of }: TokenRecipient & { readonly host: string }): string {
  return `${PREFIX}${formatReturnToken(key, of)}@${host}`
}

/** Whether a local part has the form of a return path, forged or not. */
export function isReturnPath(localPart: string): boolean {
  return localPart.length === PREFIX.length + TOKEN_CHARS && localPart.toLowerCase().startsWith(PREFIX)
}

/** The recipient that the local part of a return path names; null for any other text and for a forged one. */
export function parseReturnPath(key: Buffer, localPart: string): TokenRecipient | null {
  return isReturnPath(localPart) ? parseToken(key, localPart.slice(PREFIX.length)) : null
}

/** The host of a sending domain's return paths. */
export function returnPathHost(domain: string): string {
  return `${RETURN_PATH_LABEL}.${domain}`
}

/** The host of return paths for domains without their own, and for other mail returned to the service. */
export function serviceReturnPathHost(serviceDomain: string): string {
  return `rp.${serviceDomain}`
}

function computeMac(key: Buffer, bytes: Buffer): Buffer {
  return createHmac('sha256', key).update(bytes.subarray(0, MAC_AT)).digest().subarray(0, MAC_BYTES)
}
