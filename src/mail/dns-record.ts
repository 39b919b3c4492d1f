/**
 * dns-record - the two records that prove a sending domain, and whether the records in the DNS match them.
 *
 * returnPath: a CNAME whose target belongs to one domain of one account, so that no other account can verify with it.
 * dkim: a TXT record with the public key (RFC 6376 3.6.1).
 */

import { returnPathHost, serviceReturnPathHost } from './return-path.ts'

export type RecordCheck = 'ok' | 'missing' | 'mismatch'

export interface ExpectedRecord {
  readonly type: 'CNAME' | 'TXT'
  readonly host: string
  readonly value: string
}

/** The CNAME that a domain's owner publishes; `domainId` is the id of the sending domain. */
export function makeReturnPathRecord(input: {
  domain: string
  domainId: string
  serviceDomain: string
}): ExpectedRecord {
  const label = input.domainId.replaceAll('-', '').slice(-16)
  return {
    type: 'CNAME',
    host: returnPathHost(input.domain),
    value: `${label}.${serviceReturnPathHost(input.serviceDomain)}`,
  }
}

/** The TXT record that a domain's owner publishes; `value` comes from `formatDkimTxt`. */
export function makeDkimRecord(input: { domain: string; selector: string; value: string }): ExpectedRecord {
  return { type: 'TXT', host: `${input.selector}._domainkey.${input.domain}`, value: input.value }
}

/**
 * Compares the CNAME targets found with the expected one. `hasAddress` means that the name has its own address, as
 * with providers that flatten a CNAME, which proves nothing.
 */
export function compareCname(expected: string, found: readonly string[], hasAddress: boolean): RecordCheck {
  if (found.length === 0) return hasAddress ? 'mismatch' : 'missing'
  return found.length === 1 && normalizeName(found[0]!) === normalizeName(expected) ? 'ok' : 'mismatch'
}

/**
 * Compares the TXT records found, each a list of its strings, with the expected DKIM record: only the key matters, not
 * the form.
 */
export function compareDkimTxt(expected: string, found: readonly (readonly string[])[]): RecordCheck {
  if (found.length === 0) return 'missing'
  const keys = found.map((strings) => parseTags(strings.join(''))).filter((tags) => tags.has('p'))
  const only = keys.length === 1 ? keys[0]! : null
  // With several key records the result is undefined (RFC 6376 3.6.2.2).
  if (only === null) return 'mismatch'
  const key = only.get('p')!.replace(/\s+/g, '')
  const isRsa = (only.get('k') ?? 'rsa') === 'rsa' && (only.get('v') ?? 'DKIM1') === 'DKIM1'
  return isRsa && key !== '' && key === parseTags(expected).get('p') ? 'ok' : 'mismatch'
}

/** Tag list of RFC 6376 3.2; the first of a repeated tag counts. */
function parseTags(text: string): Map<string, string> {
  const tags = new Map<string, string>()
  for (const part of text.split(';')) {
    const at = part.indexOf('=')
    const name = part.slice(0, Math.max(at, 0)).trim()
    if (name !== '' && !tags.has(name)) tags.set(name, part.slice(at + 1).trim())
  }
  return tags
}

function normalizeName(name: string): string {
  return name.toLowerCase().replace(/\.$/, '')
}
