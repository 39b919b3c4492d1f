/**
 * sign-mail - DKIM and ARC fields by the RFCs' text, for tests of a verifier: it signs with any tags
 *
 * It shares no code with the verifier. The canonical forms are those of RFC 6376 3.4, implemented a second time.
 */
import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'

/** A mail as fields without line ends (folds inside) and a body with CRLF. */
export interface Draft {
  readonly fields: readonly string[]
  readonly body: string
}

/** Keys that are made once: RSA of 2048 and 768 bits, Ed25519. */
export const KEYS = {
  rsa: generateKeyPairSync('rsa', { modulusLength: 2048 }),
  short: generateKeyPairSync('rsa', { modulusLength: 768 }),
  ed25519: generateKeyPairSync('ed25519'),
}
export type KeyName = keyof typeof KEYS

/** The `p=` of a key record. */
export function publicKeyText(name: KeyName): string {
  const der = KEYS[name].publicKey.export({ type: 'spki', format: 'der' })
  // RFC 8463 4: only the 32 bytes.
  return (name === 'ed25519' ? der.subarray(-32) : der).toString('base64')
}

export interface Signing {
  /** The field up to its end; `{bh}` becomes the hash of the body, `{b}` the signature. */
  readonly field: string
  /** Names of `h=`, as they count. */
  readonly names: readonly string[]
  /** `header/body`. */
  readonly canon: string
  readonly key: KeyName
  /** Bytes of the canonical body that are hashed; absent = all. */
  readonly length?: number
}

/** The finished field. */
export function signField(mail: Draft, { field, names, canon, key, length }: Signing): string {
  const [headerCanon = '', bodyCanon = ''] = canon.split('/')
  const body = Buffer.from(canonicalBody(mail.body, bodyCanon), 'latin1').subarray(0, length)
  const hashed = field.replace('{bh}', createHash('sha256').update(body).digest('base64'))
  const left = [...mail.fields]
  const covered = names.flatMap((name) => {
    const at = left.findLastIndex((one) => nameOf(one) === name.toLowerCase())
    return at < 0 ? [] : left.splice(at, 1)
  })
  const data = [
    ...covered.map((one) => `${canonicalField(one, headerCanon)}\r\n`),
    canonicalField(hashed.replace('{b}', ''), headerCanon),
  ]
  return hashed.replace('{b}', signText(data.join(''), key))
}

/** The signature of a text. */
export function signText(text: string, key: KeyName): string {
  const data = Buffer.from(text, 'latin1')
  const privateKey: KeyObject = KEYS[key].privateKey
  if (key === 'ed25519') return sign(null, createHash('sha256').update(data).digest(), privateKey).toString('base64')
  return sign('sha256', data, privateKey).toString('base64')
}

/** The bytes of a mail. */
export function joinMail({ fields, body }: Draft): Buffer {
  return Buffer.from(`${fields.map((field) => `${field}\r\n`).join('')}\r\n${body}`, 'latin1')
}

export function nameOf(field: string): string {
  return field.slice(0, field.indexOf(':')).trim().toLowerCase()
}

/** RFC 6376 3.4.1, 3.4.2. */
export function canonicalField(field: string, canon: string): string {
  if (canon !== 'relaxed') return field
  const value = field.slice(field.indexOf(':') + 1).replace(/\r\n/g, '')
  return `${nameOf(field)}:${value.replace(/[ \t]+/g, ' ').trim()}`
}

/** RFC 6376 3.4.3, 3.4.4. */
function canonicalBody(body: string, canon: string): string {
  const reduced = canon === 'relaxed' ? body.replace(/[ \t]+(?=\r\n|$)/g, '').replace(/[ \t]+/g, ' ') : body
  const ended = reduced.replace(/(\r\n)*$/, '')
  if (ended === '') return canon === 'relaxed' ? '' : '\r\n'
  return `${ended}\r\n`
}
