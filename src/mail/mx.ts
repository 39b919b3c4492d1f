/**
 * mx - which hosts take mail for a domain, in which order (RFC 5321 5.1, RFC 7505).
 */

import ipaddr from 'ipaddr.js'

/**
 * Maximum number of records used. Large providers have a dozen, but a DNS message may have thousands, and each costs
 * time.
 */
const RECORDS_MAX = 32

export interface MxRecord {
  readonly exchange: string
  readonly priority: number
}

/**
 * `hosts`: in the order to try; `null-mx`: the domain accepts no mail; `loop`: only our own names are left;
 * `unusable`: no exchange is a usable host.
 */
export type MxPlan =
  | { readonly kind: 'hosts'; readonly hosts: readonly string[] }
  | { readonly kind: 'null-mx' }
  | { readonly kind: 'loop' }
  | { readonly kind: 'unusable' }

export interface MxInput {
  readonly domain: string
  /** Empty = the domain has no MX record, so its own name is the host (RFC 5321 5.1, implicit MX). */
  readonly records: readonly MxRecord[]
  /** One random number (0 to 1) per record: hosts of one preference are tried in random order. */
  readonly units: readonly number[]
  /** Names under which we receive: mail sent there would come back. */
  readonly ownHosts: readonly string[]
}

/** The hosts for a domain's MX records, in lower case without trailing dot, each once; of more than 32 the first. */
export function planExchanges(input: MxInput): MxPlan {
  const isOwn = (host: string) => input.ownHosts.includes(host)
  if (input.records.length === 0)
    return isOwn(input.domain) ? { kind: 'loop' } : { kind: 'hosts', hosts: [input.domain] }
  // A single record that names the root is a null MX (RFC 7505 3). Among others the root is only a mistake, and
  // dropped.
  if (input.records.length === 1 && normalizeHost(input.records[0]!.exchange) === '') return { kind: 'null-mx' }
  const hosts = takeFirst(input.records)
    .map((record, index) => ({ ...record, host: normalizeHost(record.exchange), unit: input.units[index] ?? 0 }))
    .sort((a, b) => a.priority - b.priority || a.unit - b.unit)
    .map((record) => record.host)
    .filter(isConnectableName)
  if (hosts.length === 0) return { kind: 'unusable' }
  const others = [...new Set(hosts)].filter((host) => !isOwn(host))
  return others.length === 0 ? { kind: 'loop' } : { kind: 'hosts', hosts: others }
}

/** Those to try first; which of one preference is decided by their names, so that it is the same each time. */
function takeFirst(records: readonly MxRecord[]): readonly MxRecord[] {
  if (records.length <= RECORDS_MAX) return records
  const byName = (a: MxRecord, b: MxRecord) => (a.exchange < b.exchange ? -1 : 1)
  return [...records].sort((a, b) => a.priority - b.priority || byName(a, b)).slice(0, RECORDS_MAX)
}

function normalizeHost(exchange: string): string {
  return exchange.toLowerCase().replace(/\.$/, '')
}

/**
 * An exchange must be a name (RFC 5321 5.1): addresses and the local host are mistakes or traps. So are the characters
 * that separate the names of a site, which would make it the site of others.
 */
function isConnectableName(host: string): boolean {
  if (host.includes(',') || host.includes('|')) return false
  if (host === '' || host === 'localhost' || host.endsWith('.localhost')) return false
  const name = host.replace(/^\[|\]$/g, '')
  const last = name.slice(name.lastIndexOf('.') + 1)
  // Parsing is slow; an address has a colon, or ends in a number, as no domain does.
  const mayBeAddress = name.includes(':') || (last >= '0' && last < ':')
  return !mayBeAddress || !ipaddr.isValid(name)
}
