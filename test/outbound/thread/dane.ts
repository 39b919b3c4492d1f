/**
 * dane - which servers are used under which TLSA records (RFC 7672), as a table: real TLS, real certificate chains, and
 * a zone whose answers are validated where the case says so.
 */
import t, { type Test } from 'tap'
import { createResolver } from '../../../src/dns/resolve.ts'
import { issuer, makeCertificates, tlsaOf } from '../../support/dnssec/certificates.ts'
import { startMx } from '../../support/peers/mx.ts'
import { JOB, makeDeps, transmitJob } from '../../support/peers/sender.ts'
import { startZone, type ZoneRecord } from '../../support/peers/zone.ts'

const MX_NAME = 'subjectAltName=DNS:mx.test'
const made = makeCertificates([
  { name: 'root', extensions: issuer() },
  { name: 'middle', by: 'root', extensions: issuer() },
  { name: 'leaf', by: 'middle', extensions: MX_NAME },
  { name: 'expired', by: 'root', extensions: MX_NAME, days: -1 },
  { name: 'stranger', by: 'root', extensions: 'subjectAltName=DNS:elsewhere.test' },
  { name: 'domain', by: 'root', extensions: 'subjectAltName=DNS:a.test' },
  { name: 'client', by: 'root', extensions: `${MX_NAME}\nextendedKeyUsage=clientAuth` },
  { name: 'short', extensions: 'basicConstraints=critical,CA:TRUE,pathlen:0\nkeyUsage=critical,keyCertSign' },
  { name: 'below', by: 'short', extensions: issuer() },
  { name: 'deep', by: 'below', extensions: MX_NAME },
  { name: 'narrow', extensions: issuer('\nnameConstraints=critical,permitted;DNS:else.test') },
  { name: 'outside', by: 'narrow', extensions: MX_NAME },
  { name: 'own', extensions: 'subjectAltName=DNS:elsewhere.test', days: -1 },
  { name: 'no-issuer', by: 'root', extensions: 'basicConstraints=CA:FALSE' },
  { name: 'under-none', by: 'no-issuer', extensions: MX_NAME },
])
if (made === null) {
  t.pass('dane', { skip: 'no openssl' })
  process.exit(0)
}
const certificates = made
const certificate = (name: string) => certificates[name] as NonNullable<(typeof certificates)[string]>
/** The certificate of the last name first; the others follow. */
const chain = (...names: string[]) => ({
  key: certificate(names[0] as string).key,
  cert: names.map((name) => certificate(name).cert).join(''),
})
const tlsa = (form: string, name: string): string => tlsaOf(form, certificate(name))
const FULL = ['leaf', 'middle', 'root']

interface Case {
  readonly records: readonly string[]
  /** The certificates that the server presents; an empty list = it offers no TLS. */
  readonly shows: readonly string[]
  /** `verified`, `encrypted`, null, or the reason of the deferral. */
  readonly wanted: 'verified' | 'encrypted' | null | RegExp
}

const UNMATCHED =
  /^4\.7\.5 DANE: no verified TLS with mx\.test\[127\.0\.0\.1\]:\d+ \(no certificate matches a TLSA record\)$/
const reason = (code: string): RegExp => new RegExp(`^4\\.7\\.5 DANE: .*${code}`)
const FORMS = ['0 0', '0 1', '0 2', '1 0', '1 1', '1 2']
const CASES: readonly [what: string, row: Case][] = [
  ...FORMS.flatMap((form): [string, Case][] => [
    [`3 ${form}`, { records: [tlsa(`3 ${form}`, 'leaf')], shows: ['leaf'], wanted: 'verified' }],
    [`3 ${form} of another`, { records: [tlsa(`3 ${form}`, 'stranger')], shows: FULL, wanted: UNMATCHED }],
    [`2 ${form} of the root`, { records: [tlsa(`2 ${form}`, 'root')], shows: FULL, wanted: 'verified' }],
    [`2 ${form} of the middle`, { records: [tlsa(`2 ${form}`, 'middle')], shows: FULL, wanted: 'verified' }],
    [`2 ${form} of another root`, { records: [tlsa(`2 ${form}`, 'short')], shows: FULL, wanted: UNMATCHED }],
  ]),
  ['usage 3: neither names nor dates count', { records: [tlsa('3 1 1', 'own')], shows: ['own'], wanted: 'verified' }],
  ['usage 3 of an issuer', { records: [tlsa('3 1 1', 'root')], shows: FULL, wanted: UNMATCHED }],
  ['usage 2 of the server itself', { records: [tlsa('2 1 1', 'leaf')], shows: FULL, wanted: UNMATCHED }],
  [
    'usage 2, any order',
    { records: [tlsa('2 0 1', 'root')], shows: ['leaf', 'short', 'root', 'middle'], wanted: 'verified' },
  ],
  ['usage 2, root not shown', { records: [tlsa('2 0 1', 'root')], shows: ['leaf', 'middle'], wanted: UNMATCHED }],
  [
    'usage 2, middle not shown',
    {
      records: [tlsa('2 0 1', 'root')],
      shows: ['leaf', 'root'],
      wanted: reason('UNABLE_TO_GET_ISSUER|UNABLE_TO_VERIFY'),
    },
  ],
  [
    'usage 2 of one that has not signed',
    { records: [tlsa('2 0 1', 'short')], shows: [...FULL, 'short'], wanted: reason('connection failed') },
  ],
  [
    'usage 2, expired',
    { records: [tlsa('2 1 1', 'root')], shows: ['expired', 'root'], wanted: reason('CERT_HAS_EXPIRED') },
  ],
  [
    'usage 2, other name',
    { records: [tlsa('2 1 1', 'root')], shows: ['stranger', 'root'], wanted: reason('ALTNAME_INVALID') },
  ],
  ['usage 2, name of the domain', { records: [tlsa('2 1 1', 'root')], shows: ['domain', 'root'], wanted: 'verified' }],
  [
    'usage 2, for clients only',
    { records: [tlsa('2 1 1', 'root')], shows: ['client', 'root'], wanted: reason('INVALID_PURPOSE') },
  ],
  [
    'usage 2, path too long',
    { records: [tlsa('2 1 1', 'short')], shows: ['deep', 'below', 'short'], wanted: reason('PATH_LENGTH_EXCEEDED') },
  ],
  [
    'usage 2, path that is long enough',
    { records: [tlsa('2 1 1', 'below')], shows: ['deep', 'below', 'short'], wanted: 'verified' },
  ],
  [
    'usage 2, name not permitted',
    {
      records: [tlsa('2 1 1', 'narrow')],
      shows: ['outside', 'narrow'],
      wanted: reason('UNSPECIFIED|PERMITTED_VIOLATION'),
    },
  ],
  [
    'usage 2 of a server as issuer',
    {
      records: [tlsa('2 1 1', 'root')],
      shows: ['under-none', 'no-issuer', 'root'],
      wanted: reason('INVALID_CA|INVALID_PURPOSE'),
    },
  ],
  ['one of two', { records: [tlsa('3 1 1', 'own'), tlsa('3 1 1', 'leaf')], shows: FULL, wanted: 'verified' }],
  [
    'usage 3 fails, usage 2 holds',
    { records: [tlsa('3 1 1', 'own'), tlsa('2 1 1', 'root')], shows: FULL, wanted: 'verified' },
  ],
  [
    'usage 2 fails, usage 3 holds',
    { records: [tlsa('2 1 1', 'short'), tlsa('3 1 1', 'leaf')], shows: FULL, wanted: 'verified' },
  ],
  ['an empty one and a good one', { records: ['3 1 1', tlsa('3 1 1', 'leaf')], shows: FULL, wanted: 'verified' }],
  ['an empty one and a wrong one', { records: ['3 1 1', tlsa('3 1 1', 'own')], shows: FULL, wanted: UNMATCHED }],
  ['no TLS', { records: [tlsa('3 1 1', 'leaf')], shows: [], wanted: reason('connection failed') }],
  [
    'none that can be used, no TLS',
    { records: [tlsa('1 1 1', 'leaf')], shows: [], wanted: reason('connection failed') },
  ],
  ['an empty one', { records: ['3 1 1'], shows: ['own'], wanted: 'encrypted' }],
  ['usage 0', { records: [tlsa('0 1 1', 'root')], shows: FULL, wanted: 'encrypted' }],
  ['usage 1', { records: [tlsa('1 1 1', 'leaf')], shows: FULL, wanted: 'encrypted' }],
  ['usage 4', { records: [tlsa('4 1 1', 'leaf')], shows: FULL, wanted: 'encrypted' }],
  ['selector 2', { records: [tlsa('3 2 1', 'leaf')], shows: FULL, wanted: 'encrypted' }],
  ['matching type 3', { records: [`3 1 3 ${'ab'.repeat(32)}`], shows: FULL, wanted: 'encrypted' }],
  ['a digest too short', { records: [`3 1 1 ${'ab'.repeat(31)}`], shows: FULL, wanted: 'encrypted' }],
  ['a digest too long', { records: [`3 1 2 ${'ab'.repeat(65)}`], shows: FULL, wanted: 'encrypted' }],
  ['no records', { records: [], shows: ['own'], wanted: null }],
  ['no records, no TLS', { records: [], shows: [], wanted: null }],
]

async function setUp(t: Test, more: Parameters<typeof makeDeps>[2] = {}) {
  const [mx, zone] = await Promise.all([startMx({}), startZone()])
  zone.set('a.test', { type: 'MX', exchange: 'mx.test', priority: 10 })
  zone.set('mx.test', { type: 'A', address: '127.0.0.1' })
  zone.sign('test')
  const deps = makeDeps(zone, mx.port, more)
  t.teardown(async () => {
    deps.pool.close()
    await Promise.all([mx.close(), zone.close()])
  })
  /** One attempt with empty caches of the DNS. */
  const attempt = (recipient = JOB.recipient, isTrusted = true) => {
    const resolver = createResolver({ servers: [zone.server], isTrusted, nowMs: () => 0 })
    return transmitJob({ ...JOB, recipient }, { ...deps, resolver }).finally(() => resolver.close())
  }
  const show = (names: readonly string[]) =>
    mx.script(names.length === 0 ? { capabilities: [] } : { capabilities: ['STARTTLS'], tls: chain(...names) })
  const publish = (records: readonly string[], base = 'mx.test') =>
    zone.set(`_${mx.port}._tcp.${base}`, ...records.map((one): ZoneRecord => ({ type: 'TLSA', tlsa: one })))
  return { mx, zone, deps, attempt, show, publish }
}

for (const [what, { records, shows, wanted }] of CASES)
  t.test(`dane: ${what} [delivery.dane]`, async (t) => {
    const { mx, attempt, show, publish } = await setUp(t)
    show(shows)
    publish(records)
    const { outcome, route } = await attempt()
    if (wanted instanceof RegExp) {
      t.match(outcome, { result: 'deferred', classification: 'PolicyRelated', code: null, response: wanted })
      t.notMatch(mx.sessions.flatMap(({ commands }) => commands).join(), /MAIL/, 'no mail command')
    } else t.match(outcome, { result: 'delivered' }, outcome.response ?? '')
    t.equal(route?.dane, wanted instanceof RegExp ? 'failed' : wanted)
    if (wanted !== null && !(wanted instanceof RegExp)) t.ok(mx.sessions.at(-1)?.secure)
  })

const OWN = [tlsa('3 1 1', 'own')]
type Scene = Awaited<ReturnType<typeof setUp>>
/** What the DNS says, and whether the record counts. */
const LOOKUPS: readonly [what: string, set: (scene: Scene) => void, isUsed: boolean, asked: readonly string[]][] = [
  ['everything is validated', ({ publish }) => publish(OWN), true, ['mx.test']],
  [
    'a domain without MX',
    ({ zone, publish }) => {
      zone.set('a.test', { type: 'A', address: '127.0.0.1' })
      publish(OWN, 'a.test')
    },
    true,
    ['a.test'],
  ],
  [
    'an alias: its end first',
    ({ zone, publish }) => {
      zone.set('mx.test', { type: 'CNAME', domain: 'real.test' })
      zone.set('real.test', { type: 'A', address: '127.0.0.1' })
      publish(OWN, 'real.test')
    },
    true,
    ['real.test'],
  ],
  [
    'an alias: then its own name',
    ({ zone, publish }) => {
      zone.set('mx.test', { type: 'CNAME', domain: 'real.test' })
      zone.set('real.test', { type: 'A', address: '127.0.0.1' })
      publish(OWN)
    },
    true,
    ['real.test', 'mx.test'],
  ],
  [
    'a validated alias of an address that is not',
    ({ zone, publish }) => {
      zone.set('mx.test', { type: 'CNAME', domain: 'real.plain' })
      zone.set('real.plain', { type: 'A', address: '127.0.0.1' })
      publish(OWN)
    },
    true,
    ['mx.test'],
  ],
  [
    'a record behind an alias',
    ({ mx, zone }) => {
      zone.set(`_${mx.port}._tcp.mx.test`, { type: 'CNAME', domain: 'tlsa.test' })
      zone.set('tlsa.test', { type: 'TLSA', tlsa: OWN[0] as string })
    },
    true,
    ['mx.test'],
  ],
  [
    'a record behind an alias that is not validated',
    ({ mx, zone }) => {
      zone.set(`_${mx.port}._tcp.mx.test`, { type: 'CNAME', domain: 'tlsa.plain' })
      zone.set('tlsa.plain', { type: 'TLSA', tlsa: OWN[0] as string })
    },
    false,
    ['mx.test'],
  ],
  [
    'an MX that is not validated',
    ({ zone, publish }) => {
      zone.set('a.plain', { type: 'MX', exchange: 'mx.test', priority: 10 })
      publish(OWN)
    },
    false,
    [],
  ],
  [
    'an address that is not validated',
    ({ zone, publish }) => {
      zone.set('a.test', { type: 'MX', exchange: 'mx.plain', priority: 10 })
      zone.set('mx.plain', { type: 'A', address: '127.0.0.1' })
      publish(OWN, 'mx.plain')
    },
    false,
    [],
  ],
]
for (const [what, set, isUsed, asked] of LOOKUPS)
  t.test(`dane: ${what} [delivery.dane]`, async (t) => {
    const scene = await setUp(t)
    const { mx, zone, attempt, show } = scene
    show(['leaf'])
    set(scene)
    const { route, outcome } = await attempt(what.startsWith('an MX') ? 'ann@a.plain' : JOB.recipient)
    t.match(
      { result: outcome.result, dane: route?.dane },
      isUsed ? { result: 'deferred', dane: 'failed' } : { result: 'delivered', dane: null },
    )
    const names = zone.asked
      .filter((one) => one.startsWith('TLSA'))
      .map((one) => one.replace(`TLSA _${mx.port}._tcp.`, ''))
    t.same(names, asked)
  })

t.test('dane: without DNSSEC=trusted no record is asked for and nothing changes [delivery.dane]', async (t) => {
  const { zone, attempt, show, publish } = await setUp(t)
  show(['leaf'])
  publish(OWN)
  const { outcome, route } = await attempt(JOB.recipient, false)
  t.match([outcome.result, route?.dane], ['delivered', null])
  t.notOk(zone.asked.some((one) => one.startsWith('TLSA')))
})

t.test('dane: a server whose records cannot be looked up is not used, another one is [delivery.dane]', async (t) => {
  const { mx, zone, attempt, show, publish } = await setUp(t)
  show(['leaf'])
  zone.fail(`_${mx.port}._tcp.mx.test`, 'servfail')
  const { outcome, route } = await attempt()
  const response = `4.4.3 DANE: TLSA lookup of _${mx.port}._tcp.mx.test failed: ESERVFAIL`
  t.match(outcome, { result: 'deferred', classification: 'DNSFailure', phase: 'dns', response })
  t.equal(route?.dane, 'failed')
  t.equal(mx.sessions.length, 0)
  zone.set(
    'a.test',
    { type: 'MX', exchange: 'mx.test', priority: 10 },
    { type: 'MX', exchange: 'mx2.test', priority: 20 },
  )
  zone.set('mx2.test', { type: 'A', address: '127.0.0.1' })
  publish([tlsa('3 1 1', 'leaf')], 'mx2.test')
  t.match(await attempt(), { outcome: { result: 'delivered' }, route: { host: 'mx2.test', dane: 'verified' } })
})

t.test('dane: never weaker than an MTA-STS policy [delivery.dane] [delivery.sts]', async (t) => {
  const policy = { id: '1', mode: 'enforce', mx: ['mx.test'], untilMs: 1 } as const
  const policies = { find: async () => policy }
  const rows = [
    ['3 1 1', 'leaf', certificate('short').cert, 'failed'],
    ['3 1 1', 'leaf', certificate('root').cert, 'verified'],
    ['3 1 1', 'own', certificate('root').cert, 'failed'],
    ['2 1 1', 'middle', certificate('short').cert, 'failed'],
    ['2 1 1', 'middle', certificate('root').cert, 'verified'],
    ['2 1 1', 'short', certificate('root').cert, 'failed'],
    ['1 1 1', 'leaf', certificate('root').cert, 'encrypted'],
    ['1 1 1', 'leaf', certificate('short').cert, null],
  ] as const
  for (const [form, name, ca, wanted] of rows) {
    const { mx, attempt, show, publish } = await setUp(t, { policies, ca })
    show(FULL)
    publish([tlsa(form, name)])
    const { outcome, route } = await attempt()
    // Without a record that can be used, only the policy refuses.
    const isSent = wanted === 'verified' || wanted === 'encrypted'
    t.match([outcome.result, route?.dane], [isSent ? 'delivered' : 'deferred', wanted], `${form} ${name}`)
    if (!isSent) t.notMatch(mx.sessions.flatMap(({ commands }) => commands).join(), /MAIL/)
  }
})

t.test('dane: an issuer is found once, and again after it has changed [delivery.dane]', async (t) => {
  const { mx, deps, attempt, show, publish } = await setUp(t)
  publish([tlsa('2 1 1', 'root'), tlsa('2 1 1', 'short')])
  const connections: number[] = []
  for (const shows of [FULL, FULL, ['deep', 'below', 'short'], ['leaf', 'middle', 'root'], FULL]) {
    show(shows)
    const before = mx.sessions.length
    const { outcome } = await attempt()
    t.equal(outcome.result, shows[0] === 'deep' ? 'deferred' : 'delivered')
    connections.push(mx.sessions.length - before)
    while (deps.pool.take({ site: 'mx.test', hosts: ['mx.test'], isVerified: false, secureNames: null } as never));
  }
  t.same(connections, [2, 1, 3, 1, 1])
})

t.test('dane: a session is used again only as far as it was checked [delivery.dane] [delivery.reuse]', async (t) => {
  const { mx, zone, attempt, show, publish } = await setUp(t)
  for (const domain of ['b.test', 'c.plain']) zone.set(domain, { type: 'MX', exchange: 'mx.test', priority: 10 })
  const reused = async (recipient: string) => (await attempt(recipient)).route?.isReused
  show(['leaf'])
  publish([tlsa('3 1 1', 'leaf')])
  t.equal(await reused('ann@c.plain'), false)
  t.equal(await reused('ann@a.test'), false, 'one that was not checked')
  t.equal(await reused('ann@b.test'), true, 'one that was checked by its name')
  t.equal(await reused('ann@c.plain'), true)
  mx.sever()
  show(['domain', 'root'])
  publish([tlsa('2 1 1', 'root')])
  t.equal(await reused('ann@a.test'), false)
  t.equal(await reused('ann@a.test'), true, 'one that was checked for the domain')
  t.match(await attempt('ann@b.test'), { outcome: { response: /ALTNAME_INVALID/ } }, 'but for no other')
})
