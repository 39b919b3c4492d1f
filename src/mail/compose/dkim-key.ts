/**
 * dkim-key - the RSA key pair of a sending domain: made, named, published and kept sealed (RFC 6376, RFC 8301).
 *
 * The private key is kept under AES-256-GCM; its context is authenticated with it, so that a sealed key copied to
 * another domain cannot be opened there.
 */

import { createCipheriv, createDecipheriv, generateKeyPair, hkdfSync } from 'node:crypto'
import { promisify } from 'node:util'

/** RFC 8301 3.2: at least 1024, should be 2048; larger ones no longer fit one UDP answer. */
const MODULUS_BITS = 2048
const KEY_BYTES = 32
const TAG_BYTES = 16
/** Bytes of a nonce for `sealKey`, never used twice. */
export const NONCE_BYTES = 12
const SEALED_VERSION = 1

export interface DkimKeyPair {
  /** PKCS #8, DER. */
  readonly privateKey: Buffer
  /** SubjectPublicKeyInfo, DER, in base64: the `p=` of the record. */
  readonly publicKey: string
}

/** Makes a key pair in the thread pool (100 to 200 ms of CPU there). */
export async function makeDkimKeyPair(): Promise<DkimKeyPair> {
  const { privateKey, publicKey } = await promisify(generateKeyPair)('rsa', {
    modulusLength: MODULUS_BITS,
    publicKeyEncoding: { type: 'spki', format: 'der' },
    privateKeyEncoding: { type: 'pkcs8', format: 'der' },
  })
  return { privateKey, publicKey: publicKey.toString('base64') }
}

/** `sw20260131ab12` is the day (UTC) and 16 random bits; unique within a domain, shows the age of a key at a glance. */
export function makeSelector(nowMs: number, random: Buffer): string {
  const day = new Date(nowMs).toISOString().slice(0, 10).replaceAll('-', '')
  return `sw${day}${random.subarray(0, 2).toString('hex').padStart(4, '0')}`
}

/** The value of the TXT record of RFC 6376 3.6.1. */
export function formatDkimTxt(publicKey: string): string {
  return `v=DKIM1; k=rsa; p=${publicKey}`
}

/** The key that seals private keys, derived from the installation's secret (RFC 5869). */
export function deriveSealingKey(secret: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', 'sendwright dkim sealing v1', KEY_BYTES))
}

/** The context that a sealed key is bound to. The domain has no id yet when its key is made. */
export function formatKeyOwner(of: { accountId: string; domain: string; selector: string }): string {
  return `${of.accountId} ${of.domain} ${of.selector}`
}

/** Seals bytes; `owner` (`formatKeyOwner`) must be the same when opening. */
export function sealKey(sealingKey: Buffer, input: { privateKey: Buffer; owner: string; nonce: Buffer }): Buffer {
  const cipher = createCipheriv('aes-256-gcm', sealingKey, input.nonce, { authTagLength: TAG_BYTES })
  cipher.setAAD(Buffer.from(input.owner))
  const sealed = Buffer.concat([cipher.update(input.privateKey), cipher.final()])
  return Buffer.concat([Buffer.from([SEALED_VERSION]), input.nonce, cipher.getAuthTag(), sealed])
}

/** Opens the result of `sealKey`; null if the secret or the owner is another one or the bytes were changed. */
export function openKey(sealingKey: Buffer, input: { sealed: Buffer; owner: string }): Buffer | null {
  const { sealed } = input
  const bodyAt = 1 + NONCE_BYTES + TAG_BYTES
  if (sealed.length <= bodyAt || sealed[0] !== SEALED_VERSION) return null
  const nonce = sealed.subarray(1, 1 + NONCE_BYTES)
  const decipher = createDecipheriv('aes-256-gcm', sealingKey, nonce, { authTagLength: TAG_BYTES })
  decipher.setAAD(Buffer.from(input.owner))
  decipher.setAuthTag(sealed.subarray(1 + NONCE_BYTES, bodyAt))
  const opened = decipher.update(sealed.subarray(bodyAt))
  try {
    return Buffer.concat([opened, decipher.final()])
  } catch {
    // final() cannot report a wrong tag in another way.
    return null
  }
}
