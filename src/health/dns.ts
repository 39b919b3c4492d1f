/**
 * dns - the names that others know us by: the service's own records, and whether there is a resolver that answers
 *
 * Spec operator.health
 */

import ipaddr from 'ipaddr.js'
import type { Finding } from '../../schemas/operator/health.ts'
import type { DnsAnswer } from '../dns/answer.ts'
import type { Resolver } from '../dns/resolve.ts'
import { compareDkimTxt } from '../mail/dns-record.ts'
import { serviceReturnPathHost } from '../mail/return-path.ts'
import { quoteTxt } from '../mail/zone-file.ts'
import type { SigningKey } from '../outbound/thread/sign.ts'
import type { Config } from '../process/config.ts'
import { failed, recordToCreate, warning, well } from './finding.ts'
import { ADDRESS_PLACE, isPublishable, serviceDkimText, spfText } from './service-records.ts'

/** A domain that everybody's resolver knows. */
const KNOWN_DOMAIN = 'gmail.com'
/** Any label under a wildcard. */
const SOME_LABEL = '0123456789abcdef'

export interface DnsDeps {
  readonly resolver: Resolver
  readonly config: Pick<
    Config,
    'serviceDomain' | 'inboundDomain' | 'smtpHostname' | 'dnsServers' | 'privateNetworksAllowed'
  >
}

/** Whether questions are answered at all. */
export async function examineResolver({ resolver, config }: DnsDeps): Promise<Finding> {
  const answer = await resolver.look('MX', KNOWN_DOMAIN, { fresh: true })
  const servers =
    config.dnsServers.length > 0 ? `DNS_SERVERS (${config.dnsServers.join(', ')})` : "the system's resolver"
  if (answer.status === 'ok') return well('resolver', `Names are resolved by ${servers}`)
  const code = answer.status === 'failure' ? answer.code : answer.status
  return failed(
    'resolver',
    `MX of ${KNOWN_DOMAIN} was not resolved by ${servers}: ${code}`,
    'Set DNS_SERVERS to servers that answer, or fix /etc/resolv.conf',
  )
}

/** Whether the service has a real domain. */
export function examineServiceDomain({ serviceDomain }: Pick<Config, 'serviceDomain'>): Finding {
  if (!/(^|\.)(localhost|test|example|invalid|local)$/.test(serviceDomain))
    return well('service-domain', `The service's domain is ${serviceDomain}`)
  return failed(
    'service-domain',
    `${serviceDomain} is not a public domain: the names below were not checked`,
    'Set SERVICE_DOMAIN to a domain (or sub-domain) of yours, the same in every process',
  )
}

/** Whether the name in EHLO leads to us. Takes the public outgoing addresses, as far as they are known. */
export async function examineEhloName(deps: DnsDeps, outAddresses: readonly string[]): Promise<Finding> {
  const { smtpHostname, privateNetworksAllowed } = deps.config
  const addresses = await lookUpAddresses(deps.resolver, smtpHostname)
  const missing = outAddresses.find((one) => addresses?.includes(one) !== true)
  const expected = missing ?? outAddresses[0] ?? ADDRESS_PLACE
  const fix = recordToCreate(smtpHostname, typeOf(expected), expected)
  if (addresses === null) return unanswered('ehlo-name', smtpHostname)
  if (addresses.length === 0) return failed('ehlo-name', `${smtpHostname}, the name in EHLO, has no address`, fix)
  if (missing !== undefined)
    return failed('ehlo-name', `Mail goes out from ${missing}, but ${smtpHostname} is ${addresses.join(', ')}`, fix)
  const inside = addresses.find((one) => !isPublishable(one, privateNetworksAllowed))
  if (inside !== undefined)
    return failed('ehlo-name', `${smtpHostname} is ${inside}, which is not reachable from outside`, fix)
  return well('ehlo-name', `${smtpHostname} is ${addresses.join(', ')}`)
}

/** Whether each of our addresses has the name in EHLO, and no other. */
export async function examinePtr(deps: DnsDeps, outAddresses: readonly string[]): Promise<Finding> {
  const { smtpHostname } = deps.config
  const named = await lookUpAddresses(deps.resolver, smtpHostname)
  const addresses = outAddresses.length === 0 ? (named ?? []) : outAddresses
  if (addresses.length === 0)
    return failed('ptr', `${smtpHostname} has no address to look up the name of`, 'Fix ehlo-name first')
  for (const address of addresses) {
    const answer = await deps.resolver.look('PTR', reverseName(address), { fresh: true })
    if (answer.status === 'failure') return unanswered('ptr', address)
    const names = recordsOf(answer).map((name) => name.toLowerCase().replace(/\.$/, ''))
    if (!names.includes(smtpHostname.toLowerCase()))
      return failed(
        'ptr',
        `${address} has ${names.length === 0 ? 'no name' : `the name ${names.join(', ')}`}, not ${smtpHostname}`,
        `Ask the provider of the address to set its reverse DNS: ${reverseName(address)} PTR ${smtpHostname}`,
      )
  }
  return well('ptr', `${addresses.join(', ')} has the name ${smtpHostname}, and back`)
}

/** Whether received mail finds us. */
export function examineMx(deps: DnsDeps): Promise<Finding> {
  return examineExchanges(deps, 'mx', [deps.config.inboundDomain])
}

/** Whether bounces reach us: the service's return path, and those of customers. */
export function examineReturnPath(deps: DnsDeps): Promise<Finding> {
  const host = serviceReturnPathHost(deps.config.serviceDomain)
  return examineExchanges(deps, 'return-path', [host, `*.${host}`])
}

async function examineExchanges(
  { resolver, config }: DnsDeps,
  name: 'mx' | 'return-path',
  hosts: readonly string[],
): Promise<Finding> {
  const own = `mx.${config.serviceDomain}`.toLowerCase()
  const ownAddresses = await lookUpAddresses(resolver, own)
  if (ownAddresses === null) return unanswered(name, own)
  let remark: Finding | null = null
  for (const host of hosts) {
    const answer = await resolver.look('MX', host.replace('*', SOME_LABEL), { fresh: true })
    if (answer.status === 'failure') return unanswered(name, host)
    const exchanges = [...recordsOf(answer)].sort((a, b) => a.priority - b.priority)
    if (exchanges.length === 0) return failed(name, `${host} has no MX`, recordToCreate(host, 'MX', `10 ${own}`))
    for (const { exchange, priority } of exchanges) {
      const isOurs = await isExchange({ own, ownAddresses, exchange }, resolver)
      if (isOurs === null) return unanswered(name, exchange)
      if (isOurs) continue
      const instead = `Replace the existing records with this DNS record: ${host} MX 10 ${own}`
      if (priority === exchanges[0]?.priority)
        return failed(name, `The MX of ${host} is ${exchange}, which is not ${own}`, instead)
      const message = `Another server than ${own} is an MX of ${host} too: ${exchange}`
      remark ??= warning(name, message, `Remove the DNS record ${host} MX ${priority} ${exchange}`)
    }
  }
  if (ownAddresses.length === 0)
    return failed(name, `${own}, the service's mail server, has no address`, recordToCreate(own, 'A', ADDRESS_PLACE))
  return remark ?? well(name, `${hosts.join(' and ')} have ${own} as MX, ${ownAddresses.join(', ')}`)
}

/** Whether a mail server is ours, by its name or by all of its addresses. Null if DNS did not answer. */
async function isExchange(
  { own, ownAddresses, exchange }: { own: string; ownAddresses: readonly string[]; exchange: string },
  resolver: Resolver,
): Promise<boolean | null> {
  if (exchange.toLowerCase().replace(/\.$/, '') === own) return true
  const addresses = await lookUpAddresses(resolver, exchange)
  return addresses === null ? null : addresses.length > 0 && addresses.every((one) => ownAddresses.includes(one))
}

/** Whether an SPF record permits us, and each source, to send mail of our return paths (RFC 7208). */
export async function examineSpf(
  deps: DnsDeps,
  outAddresses: readonly string[],
  sources: readonly string[] = [],
): Promise<Finding> {
  const { resolver, config } = deps
  const named =
    outAddresses.length === 0 ? ((await lookUpAddresses(resolver, config.smtpHostname)) ?? []) : outAddresses
  const all = [...new Set([...named, ...sources])]
  const addresses = all.filter((one) => isPublishable(one, config.privateNetworksAllowed))
  const root = serviceReturnPathHost(config.serviceDomain)
  for (const host of [root, `*.${root}`]) {
    const answer = await resolver.look('TXT', host.replace('*', SOME_LABEL), { fresh: true })
    if (answer.status === 'failure') return unanswered('spf', host)
    const records = recordsOf(answer)
      .map((strings) => strings.join(''))
      .filter((text) => /^v=spf1( |$)/i.test(text))
    const fix = recordToCreate(host, 'TXT', quoteTxt(spfText(addresses)))
    if (records.length !== 1) return failed('spf', `${host} has ${records.length} SPF records, not one`, fix)
    const missing = addresses.find((one) => !isNamed(records[0] as string, one))
    if (missing !== undefined) return failed('spf', `The SPF record of ${host} does not name ${missing}`, fix)
  }
  return well('spf', `${root} and its subdomains have SPF records`)
}

/**
 * Whether an SPF record may pass an address: either one of its networks matches, or it refers to other names, which
 * are not followed here.
 */
function isNamed(record: string, address: string): boolean {
  const terms = record.toLowerCase().split(/\s+/).slice(1)
  return terms.some((term) => {
    const network = /^\+?ip[46]:(.+)$/.exec(term)?.[1]
    if (network !== undefined) return isWithin(address, network)
    return /^[+?~]?(include:|exists:|ptr\b|a\b|mx\b)|^redirect=|^\+?all$/.test(term)
  })
}

/** Whether an address equals another one, or is in a network `address/bits`; any other text matches nothing. */
function isWithin(address: string, network: string): boolean {
  const parsed = ipaddr.process(address)
  const [base = '', bits] = network.split('/')
  if (!ipaddr.isValid(base)) return false
  const own = ipaddr.process(base)
  if (own.kind() !== parsed.kind()) return false
  const all = parsed.kind() === 'ipv4' ? 32 : 128
  const length = bits === undefined ? all : Number(bits)
  return Number.isInteger(length) && length >= 0 && length <= all && parsed.match(own, length)
}

/** Whether the service's own signature can be verified. */
export async function examineServiceDkim({ resolver, config }: DnsDeps, key: SigningKey | null): Promise<Finding> {
  if (key === null)
    return warning(
      'service-dkim',
      'Mail is signed by its sending domain alone: feedback loops for SERVICE_DOMAIN receive no reports',
      `Create a key (openssl genrsa -out dkim.pem 2048), set SERVICE_DKIM to <selector>:dkim.pem, and publish it under <selector>._domainkey.${config.serviceDomain}`,
    )
  const host = `${key.selector}._domainkey.${key.domain}`
  const answer = await resolver.look('TXT', host, { fresh: true })
  if (answer.status === 'failure') return unanswered('service-dkim', host)
  const value = serviceDkimText(key)
  const found = compareDkimTxt(value, recordsOf(answer))
  if (found === 'ok') return well('service-dkim', `${host} holds the key that signs`)
  const what = found === 'missing' ? 'does not exist' : 'holds a different key than the one that signs'
  return failed('service-dkim', `${host} ${what}`, recordToCreate(host, 'TXT', quoteTxt(value)))
}

/** Whether a DMARC record covers forged mail of the service's domain. */
export async function examineDmarc({ resolver, config }: DnsDeps): Promise<Finding> {
  const host = `_dmarc.${config.serviceDomain}`
  const answer = await resolver.look('TXT', host, { fresh: true })
  if (answer.status === 'failure') return unanswered('dmarc', host)
  const has = recordsOf(answer).some((strings) => /^v=DMARC1\b/.test(strings.join('')))
  return has
    ? well('dmarc', `${host} exists`)
    : warning('dmarc', `${host} does not exist`, recordToCreate(host, 'TXT', '"v=DMARC1; p=reject"'))
}

/** A and AAAA of a name; null when that was not answered. */
export async function lookUpAddresses(resolver: Resolver, name: string): Promise<string[] | null> {
  const answers = [await resolver.look('A', name, { fresh: true }), await resolver.look('AAAA', name, { fresh: true })]
  if (answers.some(({ status }) => status === 'failure')) return null
  return answers.flatMap((answer) => recordsOf(answer))
}

function unanswered(name: Finding['name'], host: string): Finding {
  return warning(name, `DNS did not answer about ${host}`, 'Fix resolver, then run doctor again')
}

function recordsOf<T>(answer: DnsAnswer<T>): readonly T[] {
  return answer.status === 'ok' ? answer.records : []
}

function typeOf(address: string): 'A' | 'AAAA' {
  return address.includes(':') ? 'AAAA' : 'A'
}

/** The reverse name of an address (RFC 1035 3.5, RFC 3596 2.5). */
export function reverseName(address: string): string {
  if (!address.includes(':')) return `${address.split('.').reverse().join('.')}.in-addr.arpa`
  const digits = ipaddr
    .parse(address)
    .toByteArray()
    .map((byte) => byte.toString(16).padStart(2, '0'))
  return `${[...digits.join('')].reverse().join('.')}.ip6.arpa`
}
