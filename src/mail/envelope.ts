/** envelope - the recipient of a transaction as RCPT takes it, split for those who route by its domain (RFC 5321 4.1.1.3). */

import { domainToASCII } from 'node:url'

export interface EnvelopeAddress {
  readonly local: string
  /** A-labels, lower case. */
  readonly domain: string
}

/** The two parts of an address; null where it cannot go out as plain SMTP (RFC 6531 is not spoken here). */
export function parseEnvelope(address: string): EnvelopeAddress | null {
  const at = address.lastIndexOf('@')
  const domain = domainToASCII(address.slice(at + 1)).toLowerCase()
  const local = address.slice(0, Math.max(at, 0))
  if (domain === '' || local === '' || /[^\x21-\x7e]|[<>]/.test(local)) return null
  return { local, domain }
}
