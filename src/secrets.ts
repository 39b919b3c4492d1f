/**
 * secrets - what the service derives from SECRET_KEY: keyed hashes of addresses and idempotency keys, the sealing key
 *
 * One key for each purpose (HKDF, RFC 5869), so that no value made for one means anything to another. Hashes are
 * HMAC-SHA256 cut to 132 bits: 22 characters of base64url, short enough for a hash field and far from any collision.
 */

import { createHmac, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto'
import { deriveSealingKey } from './mail/dkim-key.ts'

const KEY_BYTES = 32
/** Characters of a keyed hash: 132 bits. */
const HASH_CHARS = 22
/** Characters of a tag's hash: 48 bits; the tag itself stands in the message's head and settles a collision. */
const TAG_CHARS = 8

/** Everything that needs the installation's secret. */
export interface Secrets {
  /** HMAC of an address within its account, whatever the case it is written in: 22 characters. */
  addressHmac(accountId: string, address: string): string
  /** HMAC of an Idempotency-Key within its server: 22 characters. */
  idempotencyHash(serverId: string, idempotencyKey: string): string
  /** HMAC of a tag within its server: 8 characters. */
  tagHash(serverId: string, tag: string): string
  /** Seals private DKIM keys (AES-256). */
  readonly sealingKey: Buffer
  /** Tells two secrets apart without saying anything about them: 22 characters, kept in the store. */
  readonly check: string
}

/** Derives all keys from the installation's secret. */
export function makeSecrets(secretKey: string): Secrets {
  const addressKey = deriveKey(secretKey, 'address hmac')
  const idempotencyKeyKey = deriveKey(secretKey, 'idempotency hmac')
  const tagKey = deriveKey(secretKey, 'tag hmac')
  return {
    addressHmac: (accountId, address) => keyedHash(addressKey, `${accountId}\0${address.toLowerCase()}`, HASH_CHARS),
    idempotencyHash: (serverId, idempotencyKey) =>
      keyedHash(idempotencyKeyKey, `${serverId}\0${idempotencyKey}`, HASH_CHARS),
    tagHash: (serverId, tag) => keyedHash(tagKey, `${serverId}\0${tag}`, TAG_CHARS),
    sealingKey: deriveSealingKey(secretKey),
    check: keyedHash(deriveKey(secretKey, 'secret check'), '', HASH_CHARS),
  }
}

function deriveKey(secretKey: string, purpose: string): KeyObject {
  return createSecretKey(Buffer.from(hkdfSync('sha256', secretKey, '', `sendwright ${purpose} v1`, KEY_BYTES)))
}

function keyedHash(key: KeyObject, text: string, chars: number): string {
  return createHmac('sha256', key).update(text).digest('base64url').slice(0, chars)
}
