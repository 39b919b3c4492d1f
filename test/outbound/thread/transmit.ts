/**
 * transmit - which servers are asked, in which order and how many, with a real DNS server; dialogues are in
 * `converse.ts`.
 */

import type { Test } from 'tap'
import t from 'tap'
import { BLACK_HOLE_SKIP, openBlackHole } from '../../support/peers/black-hole.ts'
import type { MxScript } from '../../support/peers/mx.ts'
import { startMx } from '../../support/peers/mx.ts'
import { JOB, SHORT_TIMEOUTS, setUpTransmit as setUp } from '../../support/peers/sender.ts'
import type { Zone } from '../../support/peers/zone.ts'

async function setUpTwo(t: Test, first: MxScript | null, second: MxScript) {
  const one = await setUp(t, first ?? {})
  const other = await startMx(second, { host: '127.0.0.2', port: one.mx.port })
  t.teardown(() => other.close())
  if (first === null) await one.mx.close()
  one.zone.set(
    'a.test',
    { type: 'MX', exchange: 'mx.test', priority: 10 },
    { type: 'MX', exchange: 'mx2.test', priority: 20 },
  )
  one.zone.set('mx2.test', { type: 'A', address: '127.0.0.2' })
  return { ...one, other }
}

t.test('transmit: two MX, the first refuses the connection', async (t) => {
  const { other, run } = await setUpTwo(t, null, {})
  t.match(await run(), { result: 'delivered' })
  t.equal(other.sessions.length, 1)
})

for (const script of [
  { banner: '421 busy' },
  { banner: '554 5.7.1 no' },
  { ehlo: '550 no', helo: '550 no' },
  { capabilities: [], rcpt: 'drop' },
] as const) {
  t.test(`transmit: two MX, the first replies ${JSON.stringify(script)}`, async (t) => {
    const { mx, other, run } = await setUpTwo(t, script, {})
    t.match(await run(), { result: 'delivered' })
    t.same([mx.sessions.length, other.sessions.length], [1, 1])
  })
}

for (const script of [
  { rcpt: '550 5.1.1 no such user' },
  { rcpt: '450 4.2.0 later' },
  { dot: 'drop' },
  { dot: '554 no' },
] as const) {
  t.test(`transmit: two MX, the second is not asked after ${JSON.stringify(script)}`, async (t) => {
    const { other, run } = await setUpTwo(t, script, {})
    t.not((await run()).result, 'delivered')
    t.equal(other.sessions.length, 0)
  })
}

t.test('transmit: at most five addresses and two sessions', async (t) => {
  const { mx, zone, run } = await setUp(t, { banner: '421 busy' })
  const addresses = Array.from({ length: 9 }, (_, n) => ({ type: 'A' as const, address: `127.0.1.${n + 1}` }))
  zone.set('mx.test', ...addresses)
  const refused = await run()
  t.match(refused, { result: 'deferred', code: null, classification: 'NoAnswerFromHost', phase: 'conn' })
  t.match(refused.response, /^connect ECONNREFUSED mx\.test\[127\.0\.1\.5\]:\d+$/)
  zone.set(
    'mx3.test',
    { type: 'A', address: '127.0.0.1' },
    { type: 'A', address: '127.0.0.1' },
    { type: 'A', address: '127.0.0.1' },
  )
  zone.set('b.test', { type: 'MX', exchange: 'mx3.test', priority: 1 })
  t.match(await run({ ...JOB, recipient: 'x@b.test' }), { result: 'deferred', code: 421 })
  t.equal(mx.sessions.length, 2)
})

for (const capabilities of [[], ['PIPELINING']])
  for (const said of ['drop', '421 4.3.2 shutting down'])
    t.test(`transmit, delivery 24: ${said} after RCPT on a kept connection, with [${capabilities}]`, async (t) => {
      const script = { capabilities, rcpt: '250 ok' }
      const { mx, run } = await setUp(t, script)
      t.match(await run(), { result: 'delivered' })
      script.rcpt = said
      mx.script({})
      t.match(await run(), { result: 'delivered' }, 'on a new one, at once')
      t.equal(mx.sessions.length, 2)
      t.ok(mx.sessions[0]!.commands.filter((line) => line.startsWith('RCPT')).length === 2)
    })

t.test('transmit: all connects of an attempt have one bound', { skip: BLACK_HOLE_SKIP }, async (t) => {
  const timeouts = { ...SHORT_TIMEOUTS, connectMs: 2000, connectAllMs: 3_900 }
  const { mx, zone, run } = await setUp(t, {}, { timeouts })
  const silent = ['127.0.5.1', '127.0.5.2', '127.0.5.3']
  const holes = await Promise.all(silent.map((address) => openBlackHole(address, mx.port)))
  t.teardown(() => Promise.all(holes.map((hole) => hole.close())))
  const records = silent.map((_address, n) => ({ type: 'MX' as const, exchange: `s${n}.test`, priority: n }))
  for (const [n, address] of silent.entries()) zone.set(`s${n}.test`, { type: 'A', address })
  zone.set('a.test', ...records, { type: 'MX', exchange: 'mx.test', priority: 9 })
  t.match(await run(), { result: 'deferred', response: /ETIMEDOUT s1\.test/ }, 'the third is not begun')
  t.equal(mx.sessions.length, 0)
})

interface DnsRow {
  readonly name: string
  readonly set: (zone: Zone) => void
  readonly expect: [string, string | null, boolean, RegExp]
}
const DNS_ROWS: DnsRow[] = [
  {
    name: 'NXDOMAIN',
    set: (zone) => zone.remove('a.test'),
    expect: ['bounced', 'BadDomain', true, /^5\.1\.2 domain does not exist$/],
  },
  {
    name: 'null MX',
    set: (zone) => zone.set('a.test', { type: 'MX', exchange: '', priority: 0 }),
    expect: ['bounced', 'BadDomain', true, /^5\.1\.10 /],
  },
  {
    name: 'SERVFAIL',
    set: (zone) => zone.fail('a.test', 'servfail'),
    expect: ['deferred', 'DNSFailure', false, /^4\.4\.3 .*ESERVFAIL/],
  },
  {
    name: 'SERVFAIL of the exchange',
    set: (zone) => zone.fail('mx.test', 'servfail'),
    expect: ['deferred', 'DNSFailure', false, /^4\.4\.3 /],
  },
  {
    name: 'an exchange without address',
    set: (zone) => zone.set('mx.test'),
    expect: ['deferred', 'RoutingErrors', false, /^4\.4\.4 /],
  },
  {
    name: 'MX is an IP literal',
    set: (zone) => zone.set('a.test', { type: 'MX', exchange: '127.0.0.1', priority: 0 }),
    expect: ['bounced', 'RoutingErrors', false, /^5\.4\.4 /],
  },
  {
    name: 'MX is localhost',
    set: (zone) => zone.set('a.test', { type: 'MX', exchange: 'localhost', priority: 0 }),
    expect: ['bounced', 'RoutingErrors', false, /^5\.4\.4 /],
  },
  {
    name: 'only private addresses',
    set: (zone) =>
      zone.set(
        'mx.test',
        { type: 'A', address: '10.0.0.1' },
        { type: 'A', address: '169.254.169.254' },
        { type: 'A', address: '192.168.0.1' },
      ),
    expect: ['bounced', 'RoutingErrors', false, /^5\.4\.4 /],
  },
]
for (const row of DNS_ROWS) {
  t.test(`transmit: ${row.name}`, async (t) => {
    const { mx, zone, run } = await setUp(t, {})
    row.set(zone)
    const outcome = await run()
    t.same([outcome.result, outcome.classification, outcome.hard], row.expect.slice(0, 3))
    t.match(outcome.response, row.expect[3])
    t.same([outcome.code, outcome.phase, mx.sessions.length], [null, 'dns', 0])
  })
}

t.test('transmit: a private server is never connected to, an allowed one is', async (t) => {
  const { mx, run } = await setUp(t, {}, { privateNetworksAllowed: [] })
  t.match(await run(), { result: 'bounced', code: null, classification: 'RoutingErrors', hard: false })
  t.equal(mx.sessions.length, 0)
})

t.test('transmit: a private address among public ones is passed over', async (t) => {
  const { zone, mx, run } = await setUp(t, {}, { privateNetworksAllowed: ['127.0.0.0/8'] })
  zone.set('mx.test', { type: 'A', address: '10.0.0.1' }, { type: 'A', address: '127.0.0.1' })
  t.match(await run(), { result: 'delivered' })
  t.equal(mx.sessions.length, 1)
})

t.test('transmit: no MX but an address', async (t) => {
  const { zone, mx, run } = await setUp(t, {})
  zone.set('a.test', { type: 'A', address: '127.0.0.1' })
  t.match(await run(), { result: 'delivered' })
  t.equal(mx.sessions.length, 1)
})

t.test('transmit: addresses that plain SMTP cannot carry', async (t) => {
  const { mx, zone, run } = await setUp(t, {})
  for (const recipient of ['jürgen@a.test', 'a b@a.test', 'a>@a.test', '@a.test', 'nobody', 'x\r\n@a.test']) {
    t.match(await run({ ...JOB, recipient }), {
      result: 'bounced',
      code: null,
      classification: 'InvalidRecipient',
      hard: false,
    })
  }
  t.equal(mx.sessions.length, 0)
  zone.set('xn--bcher-kva.test', { type: 'A', address: '127.0.0.1' })
  t.match(await run({ ...JOB, recipient: 'ann@bücher.test' }), { result: 'delivered' })
  t.ok(mx.sessions[0]!.commands.includes('RCPT TO:<ann@xn--bcher-kva.test>'))
})

/** The server on ::1 too; null if this machine has no IPv6. */
async function setUpDual(t: Test, first: MxScript, second: MxScript) {
  const more = { usesIpv6: true, privateNetworksAllowed: ['127.0.0.0/8', '::1/128'] }
  const one = await setUp(t, first, more)
  const six = await startMx(second, { host: '::1', port: one.mx.port }).catch(() => null)
  if (six === null) {
    t.comment('this machine has no IPv6: skipped')
    return null
  }
  t.teardown(() => six.close())
  one.zone.set('mx.test', { type: 'A', address: '127.0.0.1' }, { type: 'AAAA', address: '::1' })
  return { ...one, six }
}

t.test('transmit: IPv6 is used if IPv4 does not answer, or there is none [delivery.ipv6]', async (t) => {
  const dual = await setUpDual(t, {}, {})
  if (dual === null) return
  const { mx, six, zone, deps, attempt, run } = dual
  t.match(await run(), { result: 'delivered' })
  t.same([mx.sessions.length, six.sessions.length], [1, 0], 'IPv4 is first')
  zone.set('mx6.test', { type: 'AAAA', address: '::1' })
  zone.set('b.test', { type: 'MX', exchange: 'mx6.test', priority: 1 })
  const sent = await attempt({ ...JOB, recipient: 'x@b.test' })
  t.match(sent, { outcome: { result: 'delivered' }, route: { host: 'mx6.test', address: '::1' } })
  deps.pool.close()
  await mx.close()
  t.match(await run(), { result: 'delivered' })
  t.equal(six.sessions.length, 2)
})

t.test('transmit: without the setting IPv6 addresses are not used [delivery.ipv6]', async (t) => {
  const { zone, run } = await setUp(t, {})
  zone.set('mx.test', { type: 'AAAA', address: '::1' })
  t.match(await run(), { result: 'deferred', response: /^4\.4\.4 / })
})

for (const [said, result] of [
  ['550 5.7.1 no name for this address', 'deferred'],
  ['550 5.7.25 no PTR', 'deferred'],
  ['550 5.7.13 account disabled', 'bounced'],
  ['550 5.1.1 no such user', 'bounced'],
] as const)
  t.test(`transmit: ${said} over IPv6 while IPv4 is unreachable is ${result} [delivery.ipv6]`, async (t) => {
    const dual = await setUpDual(t, {}, { rcpt: said })
    if (dual === null) return
    await dual.mx.close()
    t.match(await dual.run(), { result, response: new RegExp(`^${said}`) })
    t.match(await dual.run(), { result }, 'and so over a session that was kept')
  })

t.test(
  'transmit: a refusal by policy over IPv6 is repeated over IPv4 in the same attempt [delivery.ipv6]',
  async (t) => {
    const dual = await setUpDual(t, {}, { dot: '550 5.7.26 not signed' })
    if (dual === null) return
    const { mx, six, deps, run } = dual
    // Its IPv4 address did not answer lately: it comes last.
    deps.shunned.set('127.0.0.1', Number.POSITIVE_INFINITY)
    t.match(await run(), { result: 'delivered' })
    t.same([six.sessions.length, mx.sessions.length], [1, 1])
  },
)

t.test('transmit: a private address of IPv6 is never connected to [delivery.private]', async (t) => {
  const { zone, run } = await setUp(t, {}, { usesIpv6: true })
  for (const address of ['::1', 'fd00::1', 'fe80::1', '::ffff:127.0.0.1', '64:ff9b::7f00:1', '2002:7f00:1::']) {
    zone.set(`mx-${address.replaceAll(/[:.]/g, '-')}.test`, { type: 'AAAA', address })
    zone.set('a.test', { type: 'MX', exchange: `mx-${address.replaceAll(/[:.]/g, '-')}.test`, priority: 1 })
    t.match(await run({ ...JOB, recipient: 'ann@a.test' }), { result: 'bounced', hard: false }, address)
  }
})
