/**
 * secrets - the keys of the installation at work: keyed hashes of addresses and idempotency keys, keys that sign tokens
 *
 * The ring has one key for each purpose, so that no value made for one means anything to another. Hashes are
 * HMAC-SHA256 cut to 132 bits: 22 characters of base64url, short enough for a hash field and far from any collision.
 */

import { createHmac, hash } from 'node:crypto'
import { domainToASCII } from 'node:url'
import { encodeBase32 } from '../mail/base32.ts'
import type { HashKeys, Purpose, Ring } from '../state/ring/ring.ts'

/** Characters of a keyed hash: 132 bits. */
const HASH_CHARS = 22
/** Block and result of SHA-256 in bytes. */
const BLOCK_BYTES = 64
const DIGEST_BYTES = 32
/**
 * Texts of up to this many UTF-16 units are hashed in a buffer made once; every address with its account is shorter.
 */
const SHORT_CHARS_MAX = 340
const UTF8_PER_CHAR_MAX = 3
/** Owners whose last sender or tag is cached, and for how long at most. */
const REMEMBERED_MAX = 10_000
const REMEMBERED_MS = 600_000
/** Characters of a tag's hash: 48 bits; the tag itself is in the message's head and settles a collision. */
const TAG_CHARS = 8
/** Characters of an erased address, 60 bits, and the bytes that they encode, a multiple of five. */
const PSEUDONYM_CHARS = 12
const PSEUDONYM_BYTES = 10
/** Characters of an installation's name in the Feedback-ID, after its two letters. */
const SENDER_CHARS = 10
const NON_ASCII = /[^\p{ASCII}]/u

/** Everything that needs the keys of the installation that never change. */
export interface Hashes {
  /**
   * HMAC of an address within its account, independent of case and of A-labels or U-labels in its domain, in 22
   * characters.
   */
  addressHmac(accountId: string, address: string): string
  /** The same of a sender; the last one of each account is cached for ten minutes at most. */
  senderHmac(accountId: string, address: string): string
  /**
   * Local part of the pseudonym of an erased address, `erased-<12 characters>`. Takes the HMAC of the address within
   * its account, which is in links that recipients hold: so this is a keyed hash too.
   */
  pseudonymOf(addressHmac: string): string
  /** HMAC of an Idempotency-Key within its server: 22 characters. */
  idempotencyHash(serverId: string, idempotencyKey: string): string
  /** HMAC of a tag within its server: 8 characters. */
  tagHash(serverId: string, tag: string): string
  /** HMAC of the address of a sign-in, independent of case, whose first byte determines the user's shard. */
  loginHmac(address: string): string
  /** The same of a client's network. */
  clientHmac(client: string): string
  /** Signs the tokens of links into the dashboard. */
  readonly linkKey: Buffer
  /** Signs the state between two steps of signing in, or of setting up a second factor. */
  readonly challengeKey: Buffer
  /** Signs the cookies of devices in which a user has signed in. */
  readonly deviceKey: Buffer
  /** HMAC of a user's recovery code: 22 characters. */
  recoveryHmac(userId: string, code: string): string
  /** Signs the tokens of return paths and of unsubscribe links. */
  readonly tokenKey: Buffer
  /** Names the installation in the Feedback-ID of its mail: 12 characters. */
  readonly senderId: string
  /** All keys of this kind. A thread makes the same of them. */
  readonly hashKeys: HashKeys
}

/** Everything that needs the keys of the installation. */
export interface Secrets extends Hashes {
  /** Seals what is stored sealed. */
  readonly ring: Ring
}

/** The identity of an address: its lower-case form, with its domain in the form of the DNS. */
function knownAs(address: string): string {
  const text = address.toLowerCase()
  if (!NON_ASCII.test(text)) return text
  const at = text.lastIndexOf('@') + 1
  return `${text.slice(0, at)}${domainToASCII(text.slice(at)) || text.slice(at)}`
}

/** Puts the keys of a ring to work. */
export function makeSecrets(ring: Ring): Secrets {
  return { ...makeHashes(ring.keys.hash), ring }
}

/** The same without the keys that seal. */
export function makeHashes(hashKeys: HashKeys): Hashes {
  const keyOf = (purpose: Purpose): Buffer => Buffer.from(hashKeys[purpose])
  const hashAddress = makeKeyedHash(keyOf('address hmac'), HASH_CHARS)
  const hashIdempotencyKey = makeKeyedHash(keyOf('idempotency hmac'), HASH_CHARS)
  const hashLogin = makeKeyedHash(keyOf('login hmac'), HASH_CHARS)
  const hashRecovery = makeKeyedHash(keyOf('recovery hmac'), HASH_CHARS)
  const hashTag = makeKeyedHash(keyOf('tag hmac'), TAG_CHARS)
  const hashPseudonym = makeKeyedHash(keyOf('erased pseudonym'), HASH_CHARS)
  const addressHmac: OwnedHash = (accountId, address) => hashAddress(`${accountId}\0${knownAs(address)}`)
  return {
    addressHmac,
    senderHmac: rememberLast(addressHmac),
    pseudonymOf(hmac) {
      const bytes = Buffer.from(hashPseudonym(hmac), 'base64url').subarray(0, PSEUDONYM_BYTES)
      return `erased-${encodeBase32(bytes).slice(0, PSEUDONYM_CHARS)}`
    },
    idempotencyHash: (serverId, idempotencyKey) => hashIdempotencyKey(`${serverId}\0${idempotencyKey}`),
    tagHash: rememberLast((serverId, tag) => hashTag(`${serverId}\0${tag}`)),
    loginHmac: (address) => hashLogin(address.toLowerCase()),
    clientHmac: makeKeyedHash(keyOf('client hmac'), HASH_CHARS),
    linkKey: keyOf('link mac'),
    challengeKey: keyOf('challenge mac'),
    deviceKey: keyOf('device mac'),
    recoveryHmac: (userId, code) => hashRecovery(`${userId}\0${code}`),
    tokenKey: keyOf('token mac'),
    senderId: `sw${keyOf('feedback sender').toString('hex').slice(0, SENDER_CHARS)}`,
    hashKeys,
  }
}

/** A keyed hash of a text that belongs to an owner. */
type OwnedHash = (ownerId: string, text: string) => string

/**
 * HMAC-SHA256 (RFC 2104) as its two hashes, in one call each over buffers made once: half the cost of an Hmac object,
 * which every address of every message would need. Takes a key of at most one block.
 */
function makeKeyedHash(key: Buffer, chars: number): (text: string) => string {
  const inner = Buffer.alloc(BLOCK_BYTES + SHORT_CHARS_MAX * UTF8_PER_CHAR_MAX)
  const outer = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES)
  for (let at = 0; at < BLOCK_BYTES; at += 1) {
    const byte = key[at] ?? 0
    inner[at] = byte ^ 0x36
    outer[at] = byte ^ 0x5c
  }
  return function keyedHash(text) {
    if (text.length > SHORT_CHARS_MAX) return createHmac('sha256', key).update(text).digest('base64url').slice(0, chars)
    const end = BLOCK_BYTES + inner.write(text, BLOCK_BYTES)
    outer.write(hash('sha256', inner.subarray(0, end), 'binary'), BLOCK_BYTES, 'latin1')
    return hash('sha256', outer, 'base64url').slice(0, chars)
  }
}

/** Caches the last hash of each owner, because a busy server sends most mail from one address with one tag. */
function rememberLast(compute: OwnedHash): OwnedHash {
  const last = new Map<string, { readonly text: string; readonly hashed: string }>()
  return function ownedHash(ownerId, text) {
    const known = last.get(ownerId)
    if (known?.text === text) return known.hashed
    const hashed = compute(ownerId, text)
    // The stored data is personal: it goes whether or not anything is sent again.
    if (last.size === 0) setTimeout(() => last.clear(), REMEMBERED_MS).unref()
    if (known === undefined && last.size >= REMEMBERED_MAX) last.delete(last.keys().next().value as string)
    last.set(ownerId, { text, hashed })
    return hashed
  }
}
