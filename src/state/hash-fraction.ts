/**
 * hash-fraction - a number between 0 and 1 that follows from a text, and buckets that follow from an HMAC.
 *
 * Decisions draw no random numbers: work that must not happen everywhere at once is spread by a hash of its name.
 */

const FNV_OFFSET = 0x811c9dc5
const FNV_PRIME = 0x01000193

/** Maps an ASCII text to a fixed number in [0, 1), with FNV-1a of 32 bits and a final mix. */
export function hashFraction(text: string): number {
  let hash = FNV_OFFSET
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), FNV_PRIME)
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32
}

const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const SIX_BITS = new Uint8Array(128)
for (let index = 0; index < BASE64URL.length; index += 1) SIX_BITS[BASE64URL.charCodeAt(index)] = index
/** Bits of the first four characters of an HMAC. */
export const HMAC_PREFIX_BITS = 24

/** Bucket of an HMAC, 22 characters of base64url: its first byte. */
export function bucketOfHmac(hmac: string): number {
  return (SIX_BITS[hmac.charCodeAt(0)]! << 2) | (SIX_BITS[hmac.charCodeAt(1)]! >> 4)
}

/** The first bits of an HMAC as a number. */
export function prefixOfHmac(hmac: string): number {
  let prefix = 0
  for (let at = 0; at < HMAC_PREFIX_BITS / 6; at += 1) prefix = (prefix << 6) | SIX_BITS[hmac.charCodeAt(at)]!
  return prefix
}
