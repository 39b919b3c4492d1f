/**
 * dkim-key - the RSA key pair of a sending domain: made, named and published (RFC 6376, RFC 8301).
 */

import { generateKeyPair } from 'node:crypto'
import { promisify } from 'node:util'

/** RFC 8301 3.2: at least 1024, should be 2048; larger ones no longer fit one UDP answer. */
const MODULUS_BITS = 2048

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

/** The context that a sealed key is bound to. The domain has no id yet when its key is made. */
export function formatKeyOwner(of: { accountId: string; domain: string; selector: string }): string {
  return `${of.accountId} ${of.domain} ${of.selector}`
}
