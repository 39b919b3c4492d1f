/**
 * sender - SPF (RFC 7208) for the MAIL FROM address and for the HELO name, each by itself.
 *
 * mailauth evaluates the record, by the letter of the RFC (`strict`): the whole record is parsed first, a malformed or
 * repeated modifier is an error, 10 look-ups and 2 void ones.
 *
 * Spec inbound.authentication.spf
 */

import ipaddr from 'ipaddr.js'
import { spf } from 'mailauth/lib/spf/index.js'
import { SPF_VERDICTS, type SpfVerdict } from '../../../schemas/inbound.ts'
import type { LookUp } from './look-up.ts'

const NONE: SpfVerdict = 'none'

/** Who sent, as the SMTP session told. */
export interface Sender {
  /** MAIL FROM, '' for `<>`. */
  readonly address: string
  readonly ip: string
  readonly helo: string
  /** Name of this host, for the macro `%{r}`. */
  readonly receiver: string
}

/** The verdicts, and the domain that MAIL FROM names. */
export interface SenderReport {
  readonly spf: SpfVerdict
  readonly spfHelo: SpfVerdict
  /** '' for none. */
  readonly domain: string
}

/** Checks both identities. Never rejects. */
export async function checkSender(sender: Sender, lookUp: LookUp): Promise<SenderReport> {
  const domain = sender.address.slice(sender.address.lastIndexOf('@') + 1)
  const [ofAddress, ofHelo] = await Promise.all([
    // RFC 7208 2.4 would check the HELO name in its place; the contract has a field for that.
    domain === '' ? NONE : check(sender.address, sender, lookUp),
    isHostName(sender.helo) ? check(`postmaster@${sender.helo}`, sender, lookUp) : NONE,
  ])
  return { spf: ofAddress, spfHelo: ofHelo, domain }
}

/** RFC 7208 2.3, 4.3: an address literal, or a name without a dot, has no record. */
function isHostName(helo: string): boolean {
  return helo.includes('.') && !helo.startsWith('[') && !ipaddr.isValid(helo)
}

async function check(address: string, { ip, helo, receiver }: Sender, lookUp: LookUp): Promise<SpfVerdict> {
  try {
    // The types of mailauth know no MX records.
    const resolver = lookUp as (name: string, type: string) => Promise<string[]>
    const { status } = await spf({ sender: address, ip, helo, mta: receiver, resolver, strict: true })
    return SPF_VERDICTS.find((verdict) => verdict === status.result) ?? 'permerror'
  } catch {
    // It answers every fault of a record or of the DNS by a result; what throws is a name that it cannot take.
    return 'permerror'
  }
}
