/** relay - connections that are kept, limited, authenticated and replaced, over real sockets. */

import type { Test } from 'tap'
import t from 'tap'
import type { RelayOptions } from '../../../src/outbound/thread/relay.ts'
import { Relay } from '../../../src/outbound/thread/relay.ts'
import { parseRelayUrl } from '../../../src/outbound/thread/relay-target.ts'
import { until } from '../../support/machine/until.ts'
import type { MxScript } from '../../support/peers/mx.ts'
import { startMx } from '../../support/peers/mx.ts'
import { makeSelfSigned } from '../../support/peers/self-signed.ts'
import { JOB, SHORT_TIMEOUTS } from '../../support/peers/sender.ts'
import { SMTP_SINK_SKIP, startSmtpSink } from '../../support/peers/smtp-sink.ts'

const NEVER = new AbortController().signal
const SEND = JOB

function makeRelay(t: Test, url: string, more: Partial<RelayOptions> = {}) {
  const target = parseRelayUrl(url)!
  const relay = new Relay({
    target,
    connectionsMax: 2,
    ehloName: 'out.svc.test',
    timeouts: SHORT_TIMEOUTS,
    ca: null,
    isOutside: () => false,
    ...more,
  })
  t.teardown(() => relay.close())
  return relay
}

async function setUp(t: Test, script: MxScript, more: Partial<RelayOptions> = {}, login = '') {
  const mx = await startMx(script)
  t.teardown(() => mx.close())
  return { mx, relay: makeRelay(t, `smtp://${login}127.0.0.1:${mx.port}`, more) }
}

const URLS: [url: string, target: object | null][] = [
  ['smtp://relay.test', { host: 'relay.test', port: 25, isImplicitTls: false, auth: null }],
  ['smtps://relay.test', { host: 'relay.test', port: 465, isImplicitTls: true, auth: null }],
  [
    'smtp://u%40x:p%3A%2F@relay.test:2525',
    { host: 'relay.test', port: 2525, isImplicitTls: false, auth: { user: 'u@x', pass: 'p:/' } },
  ],
  ['smtp://[::1]:26', { host: '::1', port: 26, isImplicitTls: false, auth: null }],
  ['http://relay.test', null],
  ['relay.test:25', null],
  ['', null],
  ['smtp://us%er@relay.test', null],
  ['smtp://user:%ff@relay.test', null],
]
for (const [url, target] of URLS) t.test(`relay: URL ${url}`, async (t) => t.same(parseRelayUrl(url), target))

t.test('relay: one connection for one message after the other', async (t) => {
  const { mx, relay } = await setUp(t, {})
  for (let n = 0; n < 5; n += 1) t.match(await relay.send(SEND, NEVER), { outcome: { result: 'delivered', code: 250 } })
  t.equal(mx.sessions.length, 1)
  t.equal(mx.sessions[0]!.messages.length, 5)
  t.notOk(mx.sessions[0]!.commands.includes('RSET'))
})

t.test('relay: no more connections than allowed, and all messages arrive', async (t) => {
  const { mx, relay } = await setUp(t, {})
  const outcomes = await Promise.all(Array.from({ length: 30 }, () => relay.send(SEND, NEVER)))
  t.ok(outcomes.every(({ outcome }) => outcome.result === 'delivered'))
  t.equal(mx.sessions.length, 2)
  t.equal(mx.sessions.flatMap((one) => one.messages).length, 30)
})

t.test('relay: with another process each has its share of the connections [delivery.site.share]', async (t) => {
  const { mx, relay } = await setUp(t, { dot: 'hang' }, { connectionsMax: 4 })
  const send = (count: number, sharers: number) => Array.from({ length: count }, () => relay.send(SEND, NEVER, sharers))
  const asked = () => mx.sessions.flatMap(({ messages }) => messages).length
  let sent = send(4, 1)
  await until(() => asked() === 4, 5000)
  sent = [...sent, ...send(2, 2)]
  mx.answer('250 ok')
  await until(() => asked() === 6 && mx.open.now === 2, 5000)
  mx.answer('250 ok')
  sent = [...sent, ...send(3, 8)]
  await until(() => asked() === 7, 5000)
  t.equal(mx.open.now <= 2, true)
  mx.answer('250 ok')
  await until(() => asked() === 8 && mx.open.now === 1, 5000)
  sent = [...sent, ...send(1, 1)]
  await until(() => asked() === 10 && mx.open.now === 3, 5000)
  mx.answer('250 ok')
  t.ok((await Promise.all(sent)).every(({ outcome }) => outcome.result === 'delivered'))
})

t.test('relay: RSET after a refusal, and the connection is used further', async (t) => {
  const { mx, relay } = await setUp(t, { rcpt: '550 5.1.1 no such user', data: '554 no' })
  for (let n = 0; n < 12; n += 1)
    t.match(await relay.send(SEND, NEVER), { outcome: { result: 'bounced', hard: true, phase: 'rcpt' } })
  t.equal(mx.sessions.length, 1)
  t.equal(mx.sessions[0]!.commands.filter((one) => one === 'RSET').length, 12)
})

t.test('relay: a kept connection that has died is replaced without an outcome', async (t) => {
  const mx = await startMx({})
  t.teardown(() => mx.close())
  const relay = makeRelay(t, `smtp://127.0.0.1:${mx.port}`)
  t.match(await relay.send(SEND, NEVER), { outcome: { result: 'delivered' } })
  mx.sever()
  t.match(await relay.send(SEND, NEVER), { outcome: { result: 'delivered' } })
  await until(() => mx.sessions.length === 2, 5000)
})

t.test('relay: a kept connection that dies at MAIL is replaced too', async (t) => {
  const script = { capabilities: [] as string[], mail: '250 ok' }
  const { mx, relay } = await setUp(t, script)
  t.match(await relay.send(SEND, NEVER), { outcome: { result: 'delivered' } })
  script.mail = 'drop'
  mx.script({})
  t.match(await relay.send(SEND, NEVER), { outcome: { result: 'delivered' } })
  t.equal(mx.sessions.length, 2)
})

for (const [at, capabilities] of [
  ['mail', []],
  ['mail', ['PIPELINING']],
  ['rcpt', []],
  ['dot', []],
] as const)
  t.test(`relay: 421 to ${at} on a kept connection (${capabilities}) leads to a new one at once`, async (t) => {
    const script = { capabilities, [at]: '250 ok' } as Record<string, unknown>
    const { mx, relay } = await setUp(t, script)
    t.match(await relay.send(SEND, NEVER), { outcome: { result: 'delivered' } })
    // Whether the server closes or waits for us to.
    script[at] = capabilities.length > 0 ? '421 4.3.2 shutting down !drop' : '421 4.3.2 shutting down'
    mx.script({})
    t.match(await relay.send(SEND, NEVER), { outcome: { result: 'delivered' }, route: { isReused: false } })
    t.equal(mx.sessions.length, 2)
    mx.script({ [at]: '421 4.3.2 shutting down' })
    mx.sever()
    t.match(await relay.send(SEND, NEVER), { outcome: { result: 'deferred', code: 421 } }, 'a new one is believed')
    t.equal(mx.sessions.length, 3)
  })

t.test('relay: a connection lost after the dot is not repeated', async (t) => {
  const { mx, relay } = await setUp(t, { dot: 'drop' })
  t.match(await relay.send(SEND, NEVER), { outcome: { result: 'deferred', phase: 'dot' } })
  t.equal(mx.sessions.length, 1)
})

t.test('relay: AUTH', async (t) => {
  const { mx, relay } = await setUp(t, { capabilities: ['AUTH PLAIN LOGIN', 'PIPELINING'] }, {}, 'user:p%40ss@')
  t.match(await relay.send(SEND, NEVER), { outcome: { result: 'delivered' } })
  const told = Buffer.from('\0user\0p@ss').toString('base64')
  t.same(mx.sessions[0]!.commands.slice(0, 2), ['EHLO out.svc.test', `AUTH PLAIN ${told}`])
})

t.test("relay: refused AUTH is temporary: it is the operator's mistake, not the recipient's", async (t) => {
  const { relay } = await setUp(
    t,
    { capabilities: ['AUTH PLAIN'], auth: '535 5.7.8 bad credentials' },
    {},
    'user:pass@',
  )
  t.match(await relay.send(SEND, NEVER), { outcome: { result: 'deferred', code: 535, phase: 'conn', hard: false } })
})

t.test('relay: credentials never follow a broken handshake in the clear', async (t) => {
  const script = { capabilities: ['STARTTLS', 'AUTH PLAIN'], handshake: 'garbage' } as const
  const { mx, relay } = await setUp(t, script, {}, 'user:pass@')
  t.match(await relay.send(SEND, NEVER), { outcome: { result: 'deferred', phase: 'conn' } })
  t.equal(mx.sessions.length, 1)
  t.notOk(mx.sessions.some((one) => one.commands.some((command) => command.startsWith('AUTH'))))
})

t.test('relay: a broken handshake without credentials leads to plain text', async (t) => {
  const { mx, relay } = await setUp(t, { capabilities: ['STARTTLS'], handshake: 'garbage' })
  t.match(await relay.send(SEND, NEVER), { outcome: { result: 'delivered' } })
  t.equal(mx.sessions.length, 2)
})

t.test('relay: refused, unknown and cut off', async (t) => {
  const { mx, relay } = await setUp(t, { banner: '554 5.7.1 go away' })
  t.match(await relay.send(SEND, NEVER), { outcome: { result: 'deferred', code: 554, phase: 'conn', hard: false } })
  await mx.close()
  t.match(await relay.send(SEND, NEVER), { outcome: { result: 'deferred', code: null, response: /ECONNREFUSED/ } })
  t.match(await relay.send(SEND, AbortSignal.abort()), { outcome: { result: 'returned' } })
})

t.test('relay: an attempt that waits for a connection can be cut off, and takes none', async (t) => {
  const { mx, relay } = await setUp(t, { dot: 'hang' }, { connectionsMax: 1 })
  const first = new AbortController()
  const held = relay.send(SEND, first.signal)
  await until(() => mx.sessions[0]?.messages.length === 1, 5000)
  const second = new AbortController()
  const waiting = relay.send(SEND, second.signal)
  second.abort()
  t.match(await waiting, { outcome: { result: 'returned' } })
  t.equal(mx.sessions.length, 1)
  mx.script({})
  first.abort()
  t.match(await held, { outcome: { result: 'returned', phase: 'abort' } })
  t.match(await relay.send(SEND, NEVER), { outcome: { result: 'delivered' } })
})

const selfSigned = makeSelfSigned()
const NO_OPENSSL = { skip: selfSigned ? false : 'no openssl' }
for (const login of ['', 'user:pass@'])
  t.test(`relay: STARTTLS with ${login || 'no password'}, whatever the certificate`, NO_OPENSSL, async (t) => {
    const script = { tls: selfSigned!, capabilities: ['STARTTLS', 'AUTH PLAIN'] }
    for (const isOutside of [true, false]) {
      const { mx, relay } = await setUp(t, script, { isOutside: () => isOutside }, login)
      const relayed = await relay.send(SEND, NEVER)
      t.match(relayed, { outcome: { result: 'delivered' }, route: { tlsVersion: 'TLSv1.3', isVerified: false } })
      const said = mx.sessions[0]!.commands.map((line) => line.split(' ')[0])
      t.same(said.slice(0, 4), ['EHLO', 'STARTTLS', 'EHLO', login ? 'AUTH' : 'MAIL'])
    }
  })

/** A password is never sent to a relay without TLS. */
const NO_TLS: readonly MxScript[] = [
  { capabilities: ['AUTH PLAIN'], starttls: '502 5.5.1 what' },
  { capabilities: ['STARTTLS', 'AUTH PLAIN'], starttls: '454 4.7.0 not now' },
  { capabilities: ['STARTTLS', 'AUTH PLAIN'], handshake: 'garbage' },
]
for (const script of NO_TLS)
  t.test(`relay: no TLS, no password [delivery.relay.password]: ${JSON.stringify(script)}`, async (t) => {
    const { mx, relay } = await setUp(t, script, { isOutside: () => true }, 'user:pass@')
    const { outcome, contact } = await relay.send(SEND, NEVER)
    t.match(outcome, { result: 'deferred', code: null, hard: false, phase: 'conn' })
    t.match(
      outcome.response,
      /^4\.7\.11 the password of the relay does not go out unencrypted: no TLS with 127\.0\.0\.1 /,
    )
    t.equal(contact, 'answered')
    t.notMatch(mx.sessions.flatMap(({ commands }) => commands).join(), /AUTH|MAIL/)
    if (script.handshake) return
    const near = makeRelay(t, `smtp://user:pass@127.0.0.1:${mx.port}`)
    t.match(await near.send(SEND, NEVER), { outcome: { result: 'delivered' } }, 'as before in the own network')
    const open = makeRelay(t, `smtp://127.0.0.1:${mx.port}`, { isOutside: () => true })
    t.match(await open.send(SEND, NEVER), { outcome: { result: 'delivered' } }, 'and without a password')
  })

t.test('relay: smtps with a certificate that must hold', { skip: selfSigned ? false : 'no openssl' }, async (t) => {
  const mx = await startMx({ tls: selfSigned!, implicitTls: true })
  t.teardown(() => mx.close())
  const trusting = makeRelay(t, `smtps://localhost:${mx.port}`, { ca: selfSigned!.cert })
  t.match(await trusting.send(SEND, NEVER), { outcome: { result: 'delivered' } })
  t.ok(mx.sessions.at(-1)!.secure)
  const strict = makeRelay(t, `smtps://localhost:${mx.port}`)
  t.match(await strict.send(SEND, NEVER), { outcome: { result: 'deferred', code: null, phase: 'conn' } })
  t.equal(mx.sessions.flatMap((one) => one.messages).length, 1)
})

t.test("relay: Postfix's smtp-sink takes a hundred messages", { skip: SMTP_SINK_SKIP }, async (t) => {
  const sink = await startSmtpSink()
  t.teardown(() => sink.close())
  const relay = makeRelay(t, `smtp://127.0.0.1:${sink.port}`)
  const outcomes = await Promise.all(Array.from({ length: 100 }, () => relay.send(SEND, NEVER)))
  t.ok(outcomes.every(({ outcome }) => outcome.result === 'delivered' && outcome.code === 250))
})
