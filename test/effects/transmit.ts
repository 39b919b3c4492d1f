/** transmit - one test per kind of answer, over real sockets and a real DNS server. */

import type { Test } from 'tap'
import t from 'tap'
import type { TransmitDeps } from '../../src/effects/transmit.ts'
import { transmit } from '../../src/effects/transmit.ts'
import type { MxScript } from '../support/mx.ts'
import { startMx } from '../support/mx.ts'
import { makeSelfSigned } from '../support/self-signed.ts'
import { JOB, makeDeps, SHORT_TIMEOUTS } from '../support/sender.ts'
import { until } from '../support/until.ts'
import { startZone } from '../support/zone.ts'

const NEVER = new AbortController().signal

/** A domain `a.test` whose only MX is a scripted server; `run` performs one attempt. */
async function setUp(t: Test, script: MxScript, more: Partial<TransmitDeps> = {}) {
  const [mx, zone] = await Promise.all([startMx(script), startZone()])
  zone.set('a.test', { type: 'MX', exchange: 'mx.test', priority: 10 })
  zone.set('mx.test', { type: 'A', address: '127.0.0.1' })
  const deps = makeDeps(zone, mx.port, more)
  t.teardown(async () => {
    deps.resolver.close()
    await Promise.all([mx.close(), zone.close()])
  })
  return { mx, zone, deps, run: (job = JOB, signal = NEVER) => transmit(job, deps, signal) }
}

interface Row {
  readonly name: string
  readonly script: MxScript
  readonly more?: Partial<TransmitDeps>
  /** result, code, classification, hard, phase */
  readonly expect: [string, number | null, string | null, boolean, string]
  readonly response?: RegExp | string
}

const ROWS: Row[] = [
  { name: 'success', script: {}, expect: ['delivered', 250, null, false, 'dot'], response: '250 2.0.0 queued' },
  { name: 'success without PIPELINING', script: { capabilities: [] }, expect: ['delivered', 250, null, false, 'dot'] },
  {
    name: 'a banner of several lines',
    script: { banner: '220-mx\n220 mx' },
    expect: ['delivered', 250, null, false, 'dot'],
  },
  {
    name: 'banner 421',
    script: { banner: '421 4.7.0 busy' },
    expect: ['deferred', 421, 'PolicyRelated', false, 'conn'],
  },
  {
    name: 'banner 554',
    script: { banner: '554 5.7.1 blocked by zen.spamhaus.org' },
    expect: ['deferred', 554, 'SpamBlock', false, 'conn'],
  },
  {
    name: 'drop before the banner',
    script: { banner: 'drop' },
    expect: ['deferred', null, 'BadConnection', false, 'conn'],
    response: /mx\.test\[127\.0\.0\.1\]/,
  },
  {
    name: 'no banner',
    script: { banner: 'hang' },
    more: { timeouts: { ...SHORT_TIMEOUTS, greetingMs: 200 } },
    expect: ['deferred', null, 'BadConnection', false, 'conn'],
    response: /^timeout at conn/,
  },
  { name: 'EHLO 502 and HELO', script: { ehlo: '502 5.5.1 no' }, expect: ['delivered', 250, null, false, 'dot'] },
  {
    name: 'EHLO and HELO 550',
    script: { ehlo: '550 no', helo: '550 5.7.1 denied' },
    expect: ['deferred', 550, 'PolicyRelated', false, 'conn'],
  },
  {
    name: 'MAIL 451',
    script: { mail: '451 4.3.0 internal error' },
    expect: ['deferred', 451, 'TransientFailure', false, 'mail'],
  },
  { name: 'MAIL 550', script: { mail: '550 5.7.1 policy' }, expect: ['bounced', 550, 'PolicyRelated', false, 'mail'] },
  {
    name: 'RCPT 550 5.1.1',
    script: { rcpt: '550 5.1.1 no such user', data: '554 5.5.1 no valid recipients' },
    expect: ['bounced', 550, 'InvalidRecipient', true, 'rcpt'],
    response: '550 5.1.1 no such user',
  },
  {
    name: 'RCPT 550 5.1.1 and DATA 354 anyway',
    script: { rcpt: '550 5.1.1 no such user' },
    expect: ['bounced', 550, 'InvalidRecipient', true, 'rcpt'],
  },
  {
    name: 'RCPT 550 without PIPELINING',
    script: { capabilities: [], rcpt: '550 5.1.1 no such user' },
    expect: ['bounced', 550, 'InvalidRecipient', true, 'rcpt'],
  },
  {
    name: 'RCPT 450 greylisted',
    script: { rcpt: '450 4.2.0 greylisted, try again in 300 seconds', data: '554 no' },
    expect: ['deferred', 450, 'TransientFailure', false, 'rcpt'],
  },
  {
    name: 'RCPT 554 access denied',
    script: { rcpt: '554 5.7.1 Recipient address rejected: Access denied', data: '554 no' },
    expect: ['bounced', 554, 'PolicyRelated', false, 'rcpt'],
  },
  {
    name: 'RCPT 421',
    script: { rcpt: '421 4.7.0 too many connections' },
    expect: ['deferred', 421, 'PolicyRelated', false, 'mail'],
  },
  {
    name: 'DATA 451',
    script: { data: '451 4.3.0 internal error' },
    expect: ['deferred', 451, 'TransientFailure', false, 'data'],
  },
  { name: 'DATA 550', script: { data: '554 5.7.1 policy' }, expect: ['bounced', 554, 'PolicyRelated', false, 'data'] },
  {
    name: 'dot 554 of three lines',
    script: { dot: '554-5.7.1 a\n554-5.7.1 b\n554 5.7.1 spam c' },
    expect: ['bounced', 554, 'SpamContent', false, 'dot'],
    response: '554 5.7.1 a b spam c',
  },
  {
    name: 'dot 451',
    script: { dot: '451 4.3.0 internal error' },
    expect: ['deferred', 451, 'TransientFailure', false, 'dot'],
  },
  {
    name: 'dot: user unknown after DATA',
    script: { dot: "554 delivery error: dd This user doesn't have a yahoo.com account" },
    expect: ['bounced', 554, 'InvalidRecipient', true, 'dot'],
  },
  {
    name: 'dot 552 too large',
    script: { dot: '552 5.3.4 message too big' },
    expect: ['bounced', 552, 'ContentRelated', false, 'dot'],
  },
  {
    name: 'SIZE below the message',
    script: { capabilities: ['SIZE 10'] },
    expect: ['bounced', null, 'ContentRelated', false, 'mail'],
    response: /^5\.3\.4 /,
  },
  {
    name: 'drop at RCPT',
    script: { capabilities: [], rcpt: 'drop' },
    expect: ['deferred', null, 'BadConnection', false, 'mail'],
  },
  {
    name: 'silence at RCPT',
    script: { capabilities: [], rcpt: 'hang' },
    more: { timeouts: { ...SHORT_TIMEOUTS, envelopeMs: 200 } },
    expect: ['deferred', null, 'BadConnection', false, 'mail'],
    response: /^timeout/,
  },
  { name: 'drop after the dot', script: { dot: 'drop' }, expect: ['deferred', null, 'BadConnection', false, 'dot'] },
  {
    name: 'silence after the dot',
    script: { dot: 'hang' },
    more: { timeouts: { ...SHORT_TIMEOUTS, dotMs: 200 } },
    expect: ['deferred', null, 'BadConnection', false, 'dot'],
    response: /^timeout at dot/,
  },
  { name: 'no SMTP at all', script: { mail: 'ok fine' }, expect: ['deferred', null, 'ProtocolErrors', false, 'mail'] },
  {
    name: 'a reply of 2 MB',
    script: { mail: `250 ${'x'.repeat(2_000_000)}` },
    expect: ['deferred', null, 'BadConnection', false, 'mail'],
  },
  {
    name: 'EHLO of 200 lines',
    script: { capabilities: Array.from({ length: 200 }, (_, n) => `X-${n}`) },
    expect: ['delivered', 250, null, false, 'dot'],
  },
  {
    name: 'STARTTLS 454',
    script: { capabilities: ['STARTTLS'], starttls: '454 4.7.0 no' },
    expect: ['delivered', 250, null, false, 'dot'],
  },
  {
    name: 'STARTTLS 502',
    script: { capabilities: ['STARTTLS'], starttls: '502 5.5.1 no' },
    expect: ['delivered', 250, null, false, 'dot'],
  },
]

for (const row of ROWS) {
  t.test(`transmit: ${row.name}`, async (t) => {
    const { mx, run } = await setUp(t, row.script, row.more)
    const outcome = await run()
    const { result, code, classification, hard, phase } = outcome
    t.same([result, code, classification, hard, phase], row.expect)
    if (row.response !== undefined) t.match(outcome.response, row.response)
    t.equal(mx.sessions.length, 1, 'one session')
    if (result === 'delivered') t.same(mx.sessions[0]!.messages, [JOB.message.toString()], 'the bytes arrived')
    else t.notOk(mx.sessions[0]!.messages.length > 0 && phase !== 'dot' && phase !== 'rcpt')
    await until(() => mx.sessions[0]!.closed, 5000)
  })
}

t.test('transmit: the dialogue', async (t) => {
  const { mx, run } = await setUp(t, {})
  await run()
  await until(() => mx.sessions[0]!.closed, 5000)
  const { commands, reads } = mx.sessions[0]!
  t.same(commands, ['EHLO out.svc.test', 'MAIL FROM:<bounce@rp.svc.test>', 'RCPT TO:<ann@a.test>', 'DATA', 'QUIT'])
  t.ok(reads.includes('MAIL FROM:<bounce@rp.svc.test>\r\nRCPT TO:<ann@a.test>\r\nDATA\r\n'), 'pipelined')
})

t.test('transmit: a large message arrives whole', async (t) => {
  const { mx, run } = await setUp(t, {})
  const message = Buffer.from(`Subject: x\r\n\r\n${`.${'y'.repeat(75)}\r\n`.repeat(40_000)}`)
  t.match(await run({ ...JOB, message }), { result: 'delivered' })
  t.ok(Buffer.from(mx.sessions[0]!.messages[0]!).equals(message))
})

const selfSigned = makeSelfSigned()
t.test(
  'transmit: TLS where it is offered, with whatever certificate',
  { skip: selfSigned ? false : 'no openssl' },
  async (t) => {
    const { mx, run } = await setUp(t, { capabilities: ['STARTTLS', 'PIPELINING'], tls: selfSigned! })
    t.match(await run(), { result: 'delivered' })
    t.ok(mx.sessions[0]!.secure)
    t.same(mx.sessions[0]!.commands.slice(0, 3), ['EHLO out.svc.test', 'STARTTLS', 'EHLO out.svc.test'])
  },
)

for (const handshake of ['garbage', 'hang'] as const) {
  t.test(`transmit: a handshake that is ${handshake} leads to plain text, and is remembered`, async (t) => {
    const timeouts = { ...SHORT_TIMEOUTS, greetingMs: 300 }
    const { mx, run } = await setUp(t, { capabilities: ['STARTTLS'], handshake }, { timeouts })
    t.match(await run(), { result: 'delivered' })
    t.equal(mx.sessions.length, 2)
    t.notOk(mx.sessions[1]!.commands.includes('STARTTLS'))
    t.match(await run(), { result: 'delivered' })
    t.equal(mx.sessions.length, 3)
    t.notOk(mx.sessions[2]!.commands.includes('STARTTLS'))
  })
}

t.test('transmit: the fence holds back the final dot', async (t) => {
  let asked = 0
  const mayFinish = () => {
    asked += 1
    return false
  }
  const { mx, run } = await setUp(t, {}, { mayFinish })
  const outcome = await run()
  t.match(outcome, { result: 'deferred', phase: 'fence', code: null, hard: false })
  await until(() => mx.sessions[0]!.closed, 5000)
  t.equal(asked, 1)
  t.ok(mx.sessions[0]!.commands.includes('DATA'), 'the message was under way')
  t.same(mx.sessions[0]!.messages, [], 'and not finished')
  t.equal(mx.sessions.length, 1, 'no other server is tried')
})

t.test('transmit: the signal cuts the attempt off at any time', async (t) => {
  const { mx, run } = await setUp(t, { dot: 'hang' })
  t.match(await run(JOB, AbortSignal.abort()), { result: 'deferred', phase: 'abort' })
  t.equal(mx.sessions.length, 0)
  const controller = new AbortController()
  const outcome = run(JOB, controller.signal)
  await until(() => mx.sessions[0]?.messages.length === 1, 5000)
  controller.abort()
  t.match(await outcome, { result: 'deferred', phase: 'abort', code: null })
  await until(() => mx.sessions[0]!.closed, 5000)
})

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
  t.test(`transmit: two MX, the first says ${JSON.stringify(script)}`, async (t) => {
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

t.test('transmit: no more than five addresses and two sessions', async (t) => {
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

interface DnsRow {
  readonly name: string
  readonly set: (zone: Awaited<ReturnType<typeof startZone>>) => void
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
