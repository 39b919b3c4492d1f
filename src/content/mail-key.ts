/**
 * mail-key - the key of one mail's objects: of chance, and kept only sealed, in the mail's own row
 *
 * Sealed by AES key wrap (RFC 3394) under a key derived from SECRET_KEY: 40 bytes, without a nonce that could be used
 * twice; a changed one does not open. Deleting the row erases the mail, wherever copies of its objects are.
 */

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

const KEY_BYTES = 32
const ALGORITHM = 'id-aes256-wrap'
/** RFC 3394 2.2.3.1 */
const FIRST_VALUE = Buffer.alloc(8, 0xa6)

/** A mail's key, and as it is kept: 54 characters of base64url. */
export interface MailKey {
  readonly key: Buffer
  readonly sealed: string
}

/** Makes the key of a mail. Takes the key that seals content keys. */
export function makeMailKey(sealingKey: Buffer): MailKey {
  const key = randomBytes(KEY_BYTES)
  const cipher = createCipheriv(ALGORITHM, sealingKey, FIRST_VALUE)
  return { key, sealed: Buffer.concat([cipher.update(key), cipher.final()]).toString('base64url') }
}

/** Opens a sealed key; null if it was changed or sealed with another secret. */
export function openMailKey(sealingKey: Buffer, sealed: string): Buffer | null {
  try {
    const decipher = createDecipheriv(ALGORITHM, sealingKey, FIRST_VALUE)
    const key = Buffer.concat([decipher.update(Buffer.from(sealed, 'base64url')), decipher.final()])
    return key.length === KEY_BYTES ? key : null
  } catch {
    // The cipher has no other way to report a failure.
    return null
  }
}
