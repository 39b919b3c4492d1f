/**
 * service-records - every DNS record that an installation needs, as far as it is known here
 *
 * Guarantee: it never suggests publishing an address that others cannot reach. Behind a router the public address is
 * unknown here, and the record has a placeholder for it.
 *
 * Spec operator.health
 */

import { createPrivateKey, createPublicKey } from 'node:crypto'
import ipaddr from 'ipaddr.js'
import { formatDkimTxt } from '../mail/compose/dkim-key.ts'
import { isPublicAddress } from '../mail/ip-address.ts'
import { REPORT_AUTHORIZATION, reportAuthorization } from '../mail/report-address.ts'
import { serviceReturnPathHost } from '../mail/return-path.ts'
import type { ZoneFileRecord } from '../mail/zone-file.ts'
import type { SigningKey } from '../outbound/thread/sign.ts'
import type { Config } from '../process/config.ts'

/** Where the operator has to put an address that we cannot know. */
export const ADDRESS_PLACE = '<public address of the machine>'
const ADDRESS_REMARK = 'public address of the machine'

/** Kinds of address that are unreachable from outside, with any settings. */
const UNREACHABLE: ReadonlySet<string> = new Set([
  'private',
  'uniqueLocal',
  'linkLocal',
  'carrierGradeNat',
  'unspecified',
  'multicast',
  'broadcast',
])

/**
 * Whether an address may be in a public record. A loopback address may if delivery is allowed to reach it, which is an
 * installation on one machine that tests itself.
 */
export function isPublishable(address: string, privateNetworksAllowed: readonly string[]): boolean {
  if (!ipaddr.isValid(address)) return false
  const range = ipaddr.process(address).range()
  if (UNREACHABLE.has(range)) return false
  return range !== 'loopback' || isPublicAddress(address, privateNetworksAllowed)
}

export interface RecordsInput {
  readonly config: Pick<
    Config,
    'serviceDomain' | 'inboundDomain' | 'smtpHostname' | 'relayUrl' | 'privateNetworksAllowed'
  >
  readonly serviceKey: SigningKey | null
  /** The public addresses of outgoing and incoming mail, as far as they are known. */
  readonly outAddresses: readonly string[]
  readonly sourceAddresses?: readonly string[]
  readonly mxAddresses: readonly string[]
}

/** The records, in the order in which they are made. */
export function serviceRecords(input: RecordsInput): readonly ZoneFileRecord[] {
  const { config, serviceKey } = input
  const { serviceDomain, inboundDomain, smtpHostname, relayUrl, privateNetworksAllowed } = config
  const publishable = (addresses: readonly string[]): readonly string[] =>
    addresses.filter((one) => isPublishable(one, privateNetworksAllowed))
  const out = publishable(relayUrl === null ? input.outAddresses : [])
  const sources = input.sourceAddresses ?? []
  const mx = `mx.${serviceDomain}`
  const root = serviceReturnPathHost(serviceDomain)
  const roots = [root, `*.${root}`]
  const key = serviceKey === null ? [] : [dkimRecord(serviceKey)]
  // Behind a relay mail goes out from its addresses, under its name.
  const isDirect = relayUrl === null
  return [
    ...(isDirect ? addressRecords(smtpHostname, out) : []),
    ...(mx === smtpHostname && isDirect ? [] : addressRecords(mx, publishable(input.mxAddresses))),
    ...roots.map((host): ZoneFileRecord => ({ host, type: 'MX', value: `10 ${mx}` })),
    ...(isDirect || sources.length > 0 ? roots.map((host) => spfRecord(host, [...new Set([...out, ...sources])])) : []),
    { host: inboundDomain, type: 'MX', value: `10 ${mx}` },
    ...key,
    { host: `_dmarc.${serviceDomain}`, type: 'TXT', value: 'v=DMARC1; p=reject' },
    { host: `*.${reportAuthorization(root)}`, type: 'TXT', value: REPORT_AUTHORIZATION },
  ]
}

/** The text of an SPF record for the service's return paths. Takes the public addresses, empty if they are unknown. */
export function spfText(addresses: readonly string[]): string {
  const named = addresses.length === 0 ? [ADDRESS_PLACE] : addresses
  const mechanisms = named.map((address) => `${address.includes(':') ? 'ip6' : 'ip4'}:${address}`)
  return `v=spf1 ${mechanisms.join(' ')} -all`
}

/** The text of the record of the service's own DKIM key. */
export function serviceDkimText({ privateKey }: SigningKey): string {
  const key = createPrivateKey({ key: Buffer.from(privateKey, 'base64'), format: 'der', type: 'pkcs8' })
  return formatDkimTxt(createPublicKey(key).export({ format: 'der', type: 'spki' }).toString('base64'))
}

function dkimRecord(key: SigningKey): ZoneFileRecord {
  return { host: `${key.selector}._domainkey.${key.domain}`, type: 'TXT', value: serviceDkimText(key) }
}

function spfRecord(host: string, addresses: readonly string[]): ZoneFileRecord {
  if (addresses.length > 0) return { host, type: 'TXT', value: spfText(addresses) }
  return { host, type: 'TXT', value: null, remark: `"v=spf1 ip4:${ADDRESS_REMARK} -all"` }
}

function addressRecords(host: string, addresses: readonly string[]): readonly ZoneFileRecord[] {
  if (addresses.length === 0) return [{ host, type: 'A', value: null, remark: ADDRESS_REMARK }]
  return addresses.map((value) => ({ host, type: value.includes(':') ? 'AAAA' : 'A', value }))
}
