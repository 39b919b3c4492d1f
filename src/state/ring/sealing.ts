/**
 * sealing - values sealed under the ring: private keys and secrets by AES-256-GCM, keys of mails by AES key wrap
 *
 * A sealed secret is `1, nonce, tag, bytes` of generation 0, and `2, generation (2 bytes), nonce, tag, bytes` of later
 * ones; its context is authenticated with it, so that a value copied to another owner does not open there. A wrapped
 * key (RFC 3394) is 40 bytes in base64url, of later generations after `<generation>.`; it needs no nonce, and a changed
 * one does not open. Deleting the row that has it erases the mail, wherever copies of its objects are.
 */

import { createCipheriv, createDecipheriv } from 'node:crypto'
import type { Ring } from './ring.ts'

/** What sealing functions take. */
export type SealingRing = Pick<Ring, 'sealing' | 'opening'>

const KEY_BYTES = 32
const TAG_BYTES = 16
/** Bytes of a nonce for `sealSecret`, never used twice. */
export const NONCE_BYTES = 12
const FIRST_VERSION = 1
const NAMED_VERSION = 2
const NAMED_BYTES = 3
const WRAP = 'id-aes256-wrap'
/** RFC 3394 2.2.3.1 */
const FIRST_VALUE = Buffer.alloc(8, 0xa6)
const DOT = '.'

/** Seals bytes; `owner` must be the same when opening. Throws RingNotReady. */
export function sealSecret(ring: SealingRing, input: { secret: Buffer; owner: string; nonce: Buffer }): Buffer {
  const { generation, secret: key } = ring.sealing()
  const cipher = createCipheriv('aes-256-gcm', key, input.nonce, { authTagLength: TAG_BYTES })
  cipher.setAAD(Buffer.from(input.owner))
  const sealed = Buffer.concat([cipher.update(input.secret), cipher.final()])
  return Buffer.concat([headOf(generation), input.nonce, cipher.getAuthTag(), sealed])
}

/**
 * Opens the result of `sealSecret`; null if its generation was removed, the owner is another one or the bytes were
 * changed. Throws RingNotReady.
 */
export function openSecret(ring: SealingRing, input: { sealed: Buffer; owner: string }): Buffer | null {
  const { sealed } = input
  const generation = generationOfSecret(sealed)
  const key = generation === null ? null : ring.opening(generation)
  const nonceAt = sealed[0] === FIRST_VERSION ? 1 : NAMED_BYTES
  const bodyAt = nonceAt + NONCE_BYTES + TAG_BYTES
  if (key === null || sealed.length <= bodyAt) return null
  const nonce = sealed.subarray(nonceAt, nonceAt + NONCE_BYTES)
  const decipher = createDecipheriv('aes-256-gcm', key.secret, nonce, { authTagLength: TAG_BYTES })
  decipher.setAAD(Buffer.from(input.owner))
  decipher.setAuthTag(sealed.subarray(nonceAt + NONCE_BYTES, bodyAt))
  const opened = decipher.update(sealed.subarray(bodyAt))
  try {
    return Buffer.concat([opened, decipher.final()])
  } catch {
    // final() cannot report a wrong tag in another way.
    return null
  }
}

/** The generation of the key of a sealed secret; null if it is none. */
export function generationOfSecret(sealed: Buffer): number | null {
  if (sealed[0] === FIRST_VERSION) return 0
  return sealed[0] === NAMED_VERSION && sealed.length >= NAMED_BYTES ? sealed.readUInt16BE(1) : null
}

function headOf(generation: number): Buffer {
  if (generation === 0) return Buffer.from([FIRST_VERSION])
  const head = Buffer.from([NAMED_VERSION, 0, 0])
  head.writeUInt16BE(generation, 1)
  return head
}

/** Wraps the key of a mail: 54 characters, some more for later generations. Throws RingNotReady. */
export function wrapMailKey(ring: SealingRing, key: Buffer): string {
  const { generation, mail } = ring.sealing()
  const cipher = createCipheriv(WRAP, mail, FIRST_VALUE)
  const sealed = Buffer.concat([cipher.update(key), cipher.final()]).toString('base64url')
  return generation === 0 ? sealed : `${generation}${DOT}${sealed}`
}

/** Opens a wrapped key; null if its generation was removed or it was changed. Throws RingNotReady. */
export function openMailKey(ring: SealingRing, sealed: string): Buffer | null {
  const keys = ring.opening(generationOfMailKey(sealed))
  if (keys === null) return null
  try {
    const decipher = createDecipheriv(WRAP, keys.mail, FIRST_VALUE)
    const bytes = Buffer.from(sealed.slice(sealed.indexOf(DOT) + 1), 'base64url')
    const key = Buffer.concat([decipher.update(bytes), decipher.final()])
    return key.length === KEY_BYTES ? key : null
  } catch {
    // The cipher has no other way to report a failure.
    return null
  }
}

/** The generation of the key that wraps a mail's key. */
export function generationOfMailKey(sealed: string): number {
  const dot = sealed.indexOf(DOT)
  const generation = dot < 0 ? 0 : Number(sealed.slice(0, dot))
  // A damaged value opens with no key.
  return Number.isInteger(generation) && generation >= 0 ? generation : 0
}
