/**
 * sender - SPF (RFC 7208) for the MAIL FROM address and for the HELO name, each by itself.
 *
 * mailauth evaluates the record, strictly by the RFC (`strict`): it parses the whole record first, a malformed or
 * repeated modifier is an error, and it allows 10 lookups and 2 void ones.
 *
 * Spec inbound.authentication.spf
 */

import ipaddr from 'ipaddr.js'
import { spf } from 'mailauth/lib/spf/index.js'
import { SPF_VERDICTS, type SpfVerdict } from '../../../schemas/inbound.ts'
import type { DnsLookUp } from './look-up.ts'
import { clip } from './reason.ts'

/** The sender, from the SMTP session. */
export interface Sender {
  /** MAIL FROM, '' for `<>`. */
  readonly address: string
  readonly ip: string
  readonly helo: string
  /** Name of this host, for the macro `%{r}`. */
  readonly receiver: string
}

/** Why a name was not asked for. */
export const NULL_SENDER = 'MAIL FROM is empty'
export const NO_HOST_NAME = 'the HELO name is no name of a host'

/** One identity. */
export interface SpfFinding {
  readonly verdict: SpfVerdict
  /** Whose record was asked for; '' for none. */
  readonly domain: string
  /** The verifier's reason, and the record that it found. */
  readonly reason: string | null
  readonly record: string | null
}

/** Both identities. */
export interface SenderReport {
  /** MAIL FROM. */
  readonly from: SpfFinding
  readonly helo: SpfFinding
}

/** Checks both identities. Never rejects. */
export async function checkSender(sender: Sender, lookUp: DnsLookUp): Promise<SenderReport> {
  const domain = sender.address.slice(sender.address.lastIndexOf('@') + 1)
  const [from, helo] = await Promise.all([
    // RFC 7208 2.4 would check the HELO name in its place; the contract has a field for that.
    domain === '' ? unasked(domain, NULL_SENDER) : check(sender.address, sender, lookUp),
    isHostName(sender.helo) ? check(`postmaster@${sender.helo}`, sender, lookUp) : unasked(sender.helo, NO_HOST_NAME),
  ])
  return { from, helo }
}

/** The verdict on a mail whose session is unknown. */
export const NO_SENDER: SenderReport = {
  from: { verdict: 'unchecked', domain: '', reason: 'who connected is not known', record: null },
  helo: { verdict: 'unchecked', domain: '', reason: 'who connected is not known', record: null },
}

function unasked(domain: string, reason: string): SpfFinding {
  return { verdict: 'none', domain: clip(domain), reason, record: null }
}

/** An address literal, or a name without a dot, has no record (RFC 7208 2.3, 4.3). */
function isHostName(helo: string): boolean {
  return helo.includes('.') && !helo.startsWith('[') && !ipaddr.isValid(helo)
}

async function check(address: string, { ip, helo, receiver }: Sender, lookUp: DnsLookUp): Promise<SpfFinding> {
  const domain = address.slice(address.lastIndexOf('@') + 1)
  try {
    // The types of mailauth know no MX records.
    const resolver = lookUp as (name: string, type: string) => Promise<string[]>
    const { status, rr } = await spf({ sender: address, ip, helo, mta: receiver, resolver, strict: true })
    const verdict = SPF_VERDICTS.find((one) => one === status.result) ?? 'permerror'
    const reason = status.comment ? clip(status.comment.replace(`${receiver}: `, '')) : null
    return { verdict, domain, reason, record: clip(rr ?? null) }
  } catch (error) {
    // It answers every fault of a record or of the DNS by a result; it throws only for a name that it cannot take.
    return { verdict: 'permerror', domain, reason: clip((error as Error).message), record: null }
  }
}
