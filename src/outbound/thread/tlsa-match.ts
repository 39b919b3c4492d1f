/**
 * tlsa-match - which certificates a TLSA record names (RFC 6698 2.1, RFC 7671, RFC 7672 3.1). No clock, no socket:
 * paths and names are checked by TLS.
 */

import { createHash, type X509Certificate } from 'node:crypto'
import type { TlsaRecord } from '../../dns/answer.ts'

/** The usages of mail: an issuer (DANE-TA) or the server's own certificate (DANE-EE). */
const USAGES = { issuer: 2, own: 3 } as const
const SPKI = 1
const EXACT = 0
const DIGESTS: Readonly<Record<number, { readonly name: string; readonly chars: number }>> = {
  1: { name: 'sha256', chars: 64 },
  2: { name: 'sha512', chars: 128 },
}
/** Of strangers; each costs a comparison. */
const RECORDS_MAX = 64
/** Tags of DER (X.690 8.1.2): a number, a sequence, and the version of a certificate. */
const INTEGER = 0x02
const SEQUENCE = 0x30
const VERSION = 0xa0

/**
 * The records that can be used: usages 2 and 3, since the authorities of 0 and 1 are unknown in mail (RFC 7672 3.1.3),
 * with a selector and a matching type that exist, and a digest of the right length.
 */
export function usableRecords(records: readonly TlsaRecord[]): readonly TlsaRecord[] {
  return records.filter(isUsable).slice(0, RECORDS_MAX)
}

function isUsable({ usage, selector, matching, data }: TlsaRecord): boolean {
  if (usage !== USAGES.issuer && usage !== USAGES.own) return false
  if (selector !== 0 && selector !== SPKI) return false
  return matching === EXACT ? data !== '' : DIGESTS[matching]?.chars === data.length
}

/** Whether a record of the usage names the certificate. Takes usable records. */
export function isNamedAs(
  usage: keyof typeof USAGES,
  certificate: X509Certificate,
  records: readonly TlsaRecord[],
): boolean {
  const known = new Map<number, string>()
  return records.some(({ usage: code, selector, matching, data }) => {
    if (code !== USAGES[usage]) return false
    const form = selector * 4 + matching
    const text = known.get(form) ?? formOf(certificate, selector, matching)
    known.set(form, text)
    return text === data
  })
}

function formOf(certificate: X509Certificate, selector: number, matching: number): string {
  const bytes = selector === SPKI ? publicKeyOf(certificate.raw) : certificate.raw
  // No record is empty, so nothing matches.
  if (bytes === null) return ''
  const digest = DIGESTS[matching]
  return digest === undefined ? bytes.toString('hex') : createHash(digest.name).update(bytes).digest('hex')
}

/**
 * The SubjectPublicKeyInfo as it is in the certificate (RFC 5280 4.1): a key that is read and written again may have
 * other bytes. Null for a certificate of another form.
 */
export function publicKeyOf(raw: Buffer): Buffer | null {
  const whole = elementAt(raw, 0)
  const signed = whole?.tag === SEQUENCE ? elementAt(raw, whole.start) : null
  if (signed?.tag !== SEQUENCE) return null
  const first = elementAt(raw, signed.start)
  // The version is left out of certificates of version 1. Serial, algorithm, issuer, validity and subject follow.
  const wanted = [...(first?.tag === VERSION ? [VERSION] : []), INTEGER, SEQUENCE, SEQUENCE, SEQUENCE, SEQUENCE]
  let at = signed.start
  for (const tag of wanted) {
    const element = elementAt(raw, at)
    if (element?.tag !== tag) return null
    at = element.end
  }
  const key = elementAt(raw, at)
  return key?.tag === SEQUENCE && key.end <= signed.end ? raw.subarray(at, key.end) : null
}

/** The head of an element of DER; null if it is not whole. */
function elementAt(raw: Buffer, at: number): { tag: number; start: number; end: number } | null {
  const [tag, first] = raw.subarray(at, at + 2)
  if (tag === undefined || first === undefined) return null
  const more = first < 0x80 ? 0 : first & 0x7f
  const start = at + 2 + more
  if (more > 4 || start > raw.length) return null
  const length = more === 0 ? first : raw.readUIntBE(at + 2, more)
  return start + length <= raw.length ? { tag, start, end: start + length } : null
}
