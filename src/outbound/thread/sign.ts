/**
 * sign - the DKIM signatures of a message, made in the thread pool: the RSA operation costs more than all the rest
 *
 * Guarantees: the same message, keys and time give the same bytes, so a repeated attempt sends the bytes of the first
 * one (RSASSA-PKCS1-v1_5 has no salt).
 *
 * Spec dkim.signed
 */

import { createPrivateKey, type KeyObject, sign } from 'node:crypto'
import { promisify } from 'node:util'
import { draftSignature, finishSignature, makeSubject } from '../../mail/compose/dkim.ts'

/** Keys that stay parsed: parsing one costs as much as signing with it. */
const PARSED_MAX = 1000

/** A private key with the name under which its public half is published. Plain data: it crosses to a thread. */
export interface SigningKey {
  readonly domain: string
  readonly selector: string
  /** PKCS #8, DER, base64. */
  readonly privateKey: string
}

/** Puts a signature for each key before the message; the first key's comes first. */
export type Signer = (
  message: Buffer,
  of: { readonly keys: readonly SigningKey[]; readonly signedAtMs: number },
) => Promise<Buffer>

const signInPool = promisify<string, Buffer, KeyObject, Buffer>(sign)

/** A signer with its own memory of parsed keys. */
export function makeSigner(): Signer {
  const parsed = new Map<string, KeyObject>()
  const parse = (privateKey: string): KeyObject => {
    const known = parsed.get(privateKey)
    if (known !== undefined) return known
    const key = createPrivateKey({ key: Buffer.from(privateKey, 'base64'), format: 'der', type: 'pkcs8' })
    if (parsed.size >= PARSED_MAX) parsed.delete(parsed.keys().next().value as string)
    parsed.set(privateKey, key)
    return key
  }
  return async (message, { keys, signedAtMs }) => {
    if (keys.length === 0) return message
    const subject = makeSubject(message)
    const fields = await Promise.all(
      keys.map(async ({ domain, selector, privateKey }) => {
        const draft = draftSignature(subject, { domain, selector, signedAtMs })
        return finishSignature(draft, await signInPool('sha256', draft.data, parse(privateKey)))
      }),
    )
    return Buffer.concat([Buffer.from(fields.join(''), 'latin1'), message])
  }
}
