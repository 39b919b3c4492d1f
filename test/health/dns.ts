/** dns - each record of the operator: there, not there, wrong, unanswered; and what is said to mend it. */

import { generateKeyPairSync } from 'node:crypto'
import t from 'tap'
import type { Finding } from '../../schemas/operator/health.ts'
import { createResolver } from '../../src/dns/resolve.ts'
import {
  type DnsDeps,
  examineDmarc,
  examineEhloName,
  examineMx,
  examinePtr,
  examineResolver,
  examineReturnPath,
  examineServiceDkim,
  examineServiceDomain,
  examineSpf,
  reverseName,
} from '../../src/health/dns.ts'
import { examineReportAuthorization } from '../../src/health/report-authorization.ts'
import { quoteTxt } from '../../src/mail/zone-file.ts'
import { startZone, type ZoneRecord } from '../support/peers/zone.ts'

const SERVICE = 'svc.acme.net'
const OUT = '192.0.2.7'
const OUT6 = '2606:4700::7'
const WILD = `0123456789abcdef.rp.${SERVICE}`
const zone = await startZone()
const resolver = createResolver({ servers: [zone.server], nowMs: () => 0 })
t.teardown(async () => {
  resolver.close()
  await zone.close()
})
const deps: DnsDeps = {
  resolver,
  config: {
    serviceDomain: SERVICE,
    inboundDomain: `in.${SERVICE}`,
    smtpHostname: `out.${SERVICE}`,
    dnsServers: [],
    privateNetworksAllowed: [],
  },
}
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const KEY = {
  domain: SERVICE,
  selector: 'own',
  privateKey: privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64'),
}
const PUBLISHED = `v=DKIM1; k=rsa; p=${publicKey.export({ format: 'der', type: 'spki' }).toString('base64')}`
const a = (address: string): ZoneRecord => ({ type: 'A', address })
const mx = (exchange: string, priority = 10): ZoneRecord => ({ type: 'MX', exchange, priority })
const txt = (text: string): ZoneRecord => ({ type: 'TXT', data: text.match(/.{1,255}/g) ?? [] })
const ptr = (domain: string): ZoneRecord => ({ type: 'PTR', domain })

interface Case {
  readonly title: string
  readonly zone?: Readonly<Record<string, readonly ZoneRecord[] | 'servfail'>>
  readonly look: () => Promise<Finding>
  readonly status: Finding['status']
  readonly fix?: string
}

const ehlo = () => examineEhloName(deps, [OUT])
const reverse = () => examinePtr(deps, [OUT])
const spf = () => examineSpf(deps, [OUT])
const bothSpf = (text: string) => ({ [`rp.${SERVICE}`]: [txt(text)], [WILD]: [txt(text)] })
const dkim = () => examineServiceDkim(deps, KEY)
const OWN = `own._domainkey.${SERVICE}`
/** The server that the operator's records are to lead to. */
const OWN_MX = { [`mx.${SERVICE}`]: [a(OUT)] }

const CASES: readonly Case[] = [
  {
    title: 'no answer to what everybody knows',
    look: () => examineResolver(deps),
    status: 'failed',
    fix: 'Set DNS_SERVERS',
  },
  { title: 'an answer', zone: { 'gmail.com': [mx('mx.g.test')] }, look: () => examineResolver(deps), status: 'ok' },
  { title: 'no address of the name in EHLO', look: ehlo, status: 'failed', fix: `out.${SERVICE} A ${OUT}` },
  {
    title: 'another address',
    zone: { [`out.${SERVICE}`]: [a('192.0.2.8')] },
    look: ehlo,
    status: 'failed',
    fix: `out.${SERVICE} A ${OUT}`,
  },
  {
    title: 'an address that nobody outside reaches',
    zone: { [`out.${SERVICE}`]: [a('10.1.2.3')] },
    look: () => examineEhloName(deps, []),
    status: 'failed',
    fix: `out.${SERVICE} A <public address of the machine>`,
  },
  {
    title: 'never a private address in a record to create',
    zone: { [`out.${SERVICE}`]: [a('10.1.2.3'), a('100.64.0.9')] },
    look: () => examineSpf(deps, []),
    status: 'failed',
    fix: `rp.${SERVICE} TXT "v=spf1 ip4:<public address of the machine> -all"`,
  },
  { title: 'the right address', zone: { [`out.${SERVICE}`]: [a('192.0.2.8'), a(OUT)] }, look: ehlo, status: 'ok' },
  {
    title: 'no answer about it',
    zone: { [`out.${SERVICE}`]: 'servfail' },
    look: ehlo,
    status: 'warning',
    fix: 'Fix resolver',
  },
  {
    title: 'an address that nobody knows',
    look: () => examineEhloName(deps, []),
    status: 'failed',
    fix: '<public address',
  },
  { title: 'no PTR', look: reverse, status: 'failed', fix: `7.2.0.192.in-addr.arpa PTR out.${SERVICE}` },
  {
    title: 'the provider’s PTR',
    zone: { '7.2.0.192.in-addr.arpa': [ptr('7.pool.example')] },
    look: reverse,
    status: 'failed',
    fix: `PTR out.${SERVICE}`,
  },
  { title: 'the right PTR', zone: { '7.2.0.192.in-addr.arpa': [ptr(`Out.${SERVICE}`)] }, look: reverse, status: 'ok' },
  {
    title: 'no PTR of the second of two addresses',
    zone: { '7.2.0.192.in-addr.arpa': [ptr(`out.${SERVICE}`)] },
    look: () => examinePtr(deps, [OUT, OUT6]),
    status: 'failed',
    fix: `ip6.arpa PTR out.${SERVICE}`,
  },
  {
    title: 'a second address that the name in EHLO does not have',
    zone: { [`out.${SERVICE}`]: [a(OUT)] },
    look: () => examineEhloName(deps, [OUT, OUT6]),
    status: 'failed',
    fix: `out.${SERVICE} AAAA ${OUT6}`,
  },
  {
    title: 'an SPF record without the second address',
    zone: bothSpf(`v=spf1 ip4:${OUT} -all`),
    look: () => examineSpf(deps, [OUT, OUT6]),
    status: 'failed',
    fix: `"v=spf1 ip4:${OUT} ip6:${OUT6} -all"`,
  },
  { title: 'a PTR of nothing', look: () => examinePtr(deps, []), status: 'failed', fix: 'ehlo-name' },
  { title: 'no MX', look: () => examineMx(deps), status: 'failed', fix: `in.${SERVICE} MX 10 mx.${SERVICE}` },
  {
    title: 'an MX without address',
    zone: { [`in.${SERVICE}`]: [mx(`mx.${SERVICE}`)] },
    look: () => examineMx(deps),
    status: 'failed',
    fix: `mx.${SERVICE} A`,
  },
  {
    title: 'an MX',
    zone: { [`in.${SERVICE}`]: [mx(`mx.${SERVICE}`)], [`mx.${SERVICE}`]: [a(OUT)] },
    look: () => examineMx(deps),
    status: 'ok',
  },
  {
    title: 'an MX that is another server',
    zone: { ...OWN_MX, [`in.${SERVICE}`]: [mx('mx.other.example')], 'mx.other.example': [a('198.51.100.9')] },
    look: () => examineMx(deps),
    status: 'failed',
    fix: `in.${SERVICE} MX 10 mx.${SERVICE}`,
  },
  {
    title: 'an MX that does not exist',
    zone: { ...OWN_MX, [`in.${SERVICE}`]: [mx('mx.other.example')] },
    look: () => examineMx(deps),
    status: 'failed',
    fix: `in.${SERVICE} MX 10 mx.${SERVICE}`,
  },
  {
    title: 'an MX beside a preferred other one',
    zone: { ...OWN_MX, [`in.${SERVICE}`]: [mx(`mx.${SERVICE}`), mx('mx.other.example', 5)] },
    look: () => examineMx(deps),
    status: 'failed',
    fix: `in.${SERVICE} MX 10 mx.${SERVICE}`,
  },
  {
    title: 'another MX for when ours is away',
    zone: { ...OWN_MX, [`in.${SERVICE}`]: [mx('mx.other.example', 20), mx(`mx.${SERVICE}`)] },
    look: () => examineMx(deps),
    status: 'warning',
    fix: `Remove the DNS record in.${SERVICE} MX 20 mx.other.example`,
  },
  {
    title: 'an MX by another name of ours',
    zone: { ...OWN_MX, [`in.${SERVICE}`]: [mx('in2.acme.net')], 'in2.acme.net': [a(OUT)] },
    look: () => examineMx(deps),
    status: 'ok',
  },
  {
    title: 'an MX in capital letters',
    zone: { ...OWN_MX, [`in.${SERVICE}`]: [mx(`MX.${SERVICE.toUpperCase()}`)] },
    look: () => examineMx(deps),
    status: 'ok',
  },
  {
    title: 'an MX whose addresses nobody tells',
    zone: { [`in.${SERVICE}`]: [mx(`mx.${SERVICE}`)], [`mx.${SERVICE}`]: 'servfail' },
    look: () => examineMx(deps),
    status: 'warning',
    fix: 'Fix resolver',
  },
  {
    title: 'a return path that is another server’s',
    zone: { ...OWN_MX, [`rp.${SERVICE}`]: [mx(`mx.${SERVICE}`)], [WILD]: [mx('mx.other.example')] },
    look: () => examineReturnPath(deps),
    status: 'failed',
    fix: `*.rp.${SERVICE} MX 10 mx.${SERVICE}`,
  },
  {
    title: 'a return path with another server beside ours, and no wildcard',
    zone: { ...OWN_MX, [`rp.${SERVICE}`]: [mx(`mx.${SERVICE}`), mx('mx.other.example', 20)] },
    look: () => examineReturnPath(deps),
    status: 'failed',
    fix: `*.rp.${SERVICE} MX 10 mx.${SERVICE}`,
  },
  {
    title: 'a return path without wildcard',
    zone: { [`rp.${SERVICE}`]: [mx(`mx.${SERVICE}`)], [`mx.${SERVICE}`]: [a(OUT)] },
    look: () => examineReturnPath(deps),
    status: 'failed',
    fix: `*.rp.${SERVICE} MX 10 mx.${SERVICE}`,
  },
  {
    title: 'a return path',
    zone: { [`rp.${SERVICE}`]: [mx(`mx.${SERVICE}`)], [WILD]: [mx(`mx.${SERVICE}`)], [`mx.${SERVICE}`]: [a(OUT)] },
    look: () => examineReturnPath(deps),
    status: 'ok',
  },
  { title: 'no SPF', look: spf, status: 'failed', fix: `rp.${SERVICE} TXT "v=spf1 ip4:${OUT} -all"` },
  {
    title: 'SPF of another address',
    zone: bothSpf('v=spf1 ip4:192.0.2.70 -all'),
    look: spf,
    status: 'failed',
    fix: `ip4:${OUT}`,
  },
  {
    title: 'SPF without wildcard',
    zone: { [`rp.${SERVICE}`]: [txt(`v=spf1 ip4:${OUT} -all`)] },
    look: spf,
    status: 'failed',
    fix: `*.rp.${SERVICE} TXT`,
  },
  {
    title: 'two SPF records',
    zone: { [`rp.${SERVICE}`]: [txt('v=spf1 -all'), txt('v=spf1 a')] },
    look: spf,
    status: 'failed',
  },
  { title: 'SPF', zone: bothSpf(`v=spf1 ip4:${OUT} -all`), look: spf, status: 'ok' },
  { title: 'SPF of its network', zone: bothSpf('v=spf1 ip4:192.0.2.0/24 -all'), look: spf, status: 'ok' },
  {
    title: 'SPF of another network',
    zone: bothSpf('v=spf1 ip4:192.0.3.0/24 ip6:::/0 -all'),
    look: spf,
    status: 'failed',
  },
  {
    title: 'SPF of a network that is none',
    zone: bothSpf('v=spf1 ip4:192.0.2.0/99 ip4:x -all'),
    look: spf,
    status: 'failed',
  },
  { title: 'SPF that asks others', zone: bothSpf('v=spf1 include:spf.provider.example -all'), look: spf, status: 'ok' },
  {
    title: 'no key of the service',
    look: () => examineServiceDkim(deps, null),
    status: 'warning',
    fix: 'SERVICE_DKIM',
  },
  { title: 'a key that is not published', look: dkim, status: 'failed', fix: `${OWN} TXT ${quoteTxt(PUBLISHED)}` },
  {
    title: 'another key',
    zone: { [OWN]: [txt('v=DKIM1; p=AAAA')] },
    look: dkim,
    status: 'failed',
    fix: quoteTxt(PUBLISHED),
  },
  { title: 'the key', zone: { [OWN]: [txt(PUBLISHED)] }, look: dkim, status: 'ok' },
  {
    title: 'no authorization of reports',
    zone: {
      [`*.rp.${SERVICE}`]: [txt('v=spf1 -all')],
      [`example.com._report._dmarc.rp.${SERVICE}`]: [txt('v=spf1 -all')],
    },
    look: () => examineReportAuthorization(deps),
    status: 'warning',
    fix: `*._report._dmarc.rp.${SERVICE} TXT "v=DMARC1"`,
  },
  {
    title: 'reports are authorized',
    zone: { [`example.com._report._dmarc.rp.${SERVICE}`]: [txt('v=DMARC1')] },
    look: () => examineReportAuthorization(deps),
    status: 'ok',
  },
  {
    title: 'no DMARC',
    look: () => examineDmarc(deps),
    status: 'warning',
    fix: `_dmarc.${SERVICE} TXT "v=DMARC1; p=reject"`,
  },
  {
    title: 'DMARC',
    zone: { [`_dmarc.${SERVICE}`]: [txt('v=DMARC1; p=none')] },
    look: () => examineDmarc(deps),
    status: 'ok',
  },
]

for (const { title, zone: names = {}, look, status, fix } of CASES) {
  t.test(`health: ${title}: ${status} [operator.health]`, async (t) => {
    for (const [name, records] of Object.entries(names))
      if (records === 'servfail') zone.fail(name, records)
      else zone.set(name, ...records)
    const finding = await look()
    for (const name of Object.keys(names)) zone.remove(name)
    t.equal(finding.status, status, finding.message)
    t.equal(finding.fix === null, status === 'ok')
    if (fix !== undefined) t.ok(finding.fix?.includes(fix), finding.fix ?? '')
  })
}

t.test('health: a domain that nobody can look up [operator.health]', async (t) => {
  for (const name of ['sendwright.localhost', 'mail.acme.test', 'localhost'])
    t.match(examineServiceDomain({ serviceDomain: name }), { status: 'failed', fix: /SERVICE_DOMAIN/ })
  t.equal(examineServiceDomain({ serviceDomain: SERVICE }).status, 'ok')
})

t.test('health: reverse names of both families', async (t) => {
  t.equal(reverseName('192.0.2.7'), '7.2.0.192.in-addr.arpa')
  t.equal(reverseName('2001:db8::1'), '1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa')
})
