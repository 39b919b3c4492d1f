/**
 * post - against receivers that answer, hang, drip, redirect, reset, go on for a gigabyte, never finish TLS, move away.
 */
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer as createPlain, type Socket } from 'node:net'
import t from 'tap'
import { WEBHOOK_ANSWER_SECONDS } from '../../schemas/limits.ts'
import { createResolver } from '../../src/dns/resolve.ts'
import { makePoster, type PosterDeps } from '../../src/webhooks/post.ts'
import { eventHeaders } from '../../src/webhooks/sign-event.ts'
import { freePort } from '../support/machine/port.ts'
import { watchStalls } from '../support/machine/stall.ts'
import { findSuite } from '../support/machine/suites.ts'
import { until } from '../support/machine/until.ts'
import { type Reaction, startReceiver } from '../support/peers/receiver.ts'
import { makeSelfSigned } from '../support/peers/self-signed.ts'
import { startZone } from '../support/peers/zone.ts'

const PRIVATE = { error: 'private_address', final: true }
const TIMEOUT_MS = 3_000
/** What the machine may add to a bound, beside times in which it gave this process nothing. */
const MACHINE_MS = 2_000
const NEVER = new AbortController().signal
/** Spec webhook.url: what is read of an answer; beyond it a flood gets into the buffers of two sockets. */
const ANSWER_BYTES_MAX = 64 * 1024
const FLOODED_BYTES_MAX = 2 * 1024 ** 2
const SECRETS = ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw']
const receiver = await startReceiver()
if (receiver === null) {
  t.pass('openssl is not installed: skipped')
  process.exit(0)
}
const zone = await startZone()
const stalls = watchStalls(t)
/** Takes connections and says nothing. */
const mute = createPlain((socket: Socket) => socket.on('error', () => undefined))
await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve))
t.teardown(async () => {
  mute.close()
  await receiver.close()
  await zone.close()
})

const resolverOf = () => createResolver({ servers: [zone.server], nowMs: () => performance.now() })

function makeDeps(changes: Partial<PosterDeps> = {}): PosterDeps {
  const base = {
    resolver: resolverOf(),
    privateNetworksAllowed: ['127.0.0.1/32'],
    webhookPorts: [],
    ca: receiver?.ca ?? null,
  }
  return { ...base, timeoutMs: TIMEOUT_MS, ...changes }
}

/** Posts once over connections of its own, and says how long that took. */
async function postOnce(url: string, changes: Partial<PosterDeps> = {}) {
  const poster = makePoster(makeDeps(changes))
  const startedAtMs = performance.now()
  const outcome = await poster.post(inputOf(url), NEVER)
  const ms = performance.now() - startedAtMs
  const stalledMs = stalls.during(startedAtMs)
  await poster.close()
  return { ...outcome, ms, stalledMs }
}

function inputOf(url: string, { fresh = false, isProven = false } = {}) {
  const body = '{"id":"1"}'
  const headers = eventHeaders({ deliveryId: '1', event: 'bounced', body, secrets: SECRETS, unixSeconds: 1 })
  return { url, headers, body, fresh, isProven }
}

/** Under way beside all the others. */
const tenSeconds = (async () => {
  const { timeoutMs: _, ...deps } = makeDeps()
  const poster = makePoster(deps)
  const startedAtMs = performance.now()
  const { port } = mute.address() as AddressInfo
  const outcome = await poster.post(inputOf(`https://localhost:${port}`), NEVER)
  const ms = performance.now() - startedAtMs
  const stalledMs = stalls.during(startedAtMs)
  await poster.close()
  return { ...outcome, ms, stalledMs }
})()

const answer =
  (status: number, headers: Record<string, string> = {}): Reaction =>
  (_request, response) => {
    response.writeHead(status, headers)
    response.end()
  }

/** what the receiver does, status, error, whether it takes the whole time */
const REACTIONS: readonly [string, Reaction | null, number | null, string | null, boolean][] = [
  ['answers 200', null, 200, null, false],
  ['answers 204', answer(204), 204, null, false],
  ['answers 299', answer(299), 299, null, false],
  ['answers 410', answer(410), 410, 'http_410', false],
  ['answers 500', answer(500), 500, 'http_500', false],
  ['redirects', answer(302, { location: 'https://localhost/elsewhere' }), 302, 'redirect', false],
  ['answers 304', answer(304), 304, 'redirect', false],
  ['hangs', () => undefined, null, 'timeout', true],
  ['resets', (_request, _response, socket) => void socket.destroy(), null, 'connect_failed', false],
  ['closes', (_request, _response, socket) => void socket.end(), null, 'connect_failed', false],
  [
    'speaks something else',
    (_request, _response, socket) => void socket.end('220 smtp\r\n'),
    null,
    'connect_failed',
    false,
  ],
  [
    'sends heads without end',
    (_request, _response, socket) => void socket.write(`HTTP/1.1 200 OK\r\n${'X: y\r\n'.repeat(10_000)}`),
    null,
    'connect_failed',
    false,
  ],
  ['drips its head', drip('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'), null, 'timeout', true],
  ['drips its body', (_request, response) => void response.write('a'), 200, null, false],
  ['goes on for a gigabyte', flood, 200, null, false],
]

/** What is kept of what they answer. */
const SAID: Readonly<Record<string, string>> = { 'answers 200': 'ok', 'drips its body': 'a' }

function drip(text: string): Reaction {
  return (_request, _response, socket) => {
    let at = 0
    const timer = setInterval(() => {
      if (socket.destroyed || at >= text.length) clearInterval(timer)
      else socket.write(text[at++] ?? '')
    }, 600)
  }
}

let flooded = 0
function flood(...[, response]: Parameters<Reaction>): void {
  const chunk = Buffer.alloc(64 * 1024)
  const more = (): void => {
    while (!response.destroyed && flooded < 1024 ** 3) {
      flooded += chunk.length
      if (!response.write(chunk)) return void response.once('drain', more)
    }
  }
  more()
}

t.test('post: what a receiver does, and what comes of it [webhook.attempt]', async (t) => {
  for (const [name, reaction, statusCode, error, isSlow] of REACTIONS) {
    receiver.react(reaction)
    // Whoever is to be answered has time for it; how long that took is looked at below.
    const { ms, stalledMs, ...outcome } = await postOnce(receiver.url, isSlow ? {} : { timeoutMs: 20_000 })
    const result = error === null ? 'delivered' : 'failed'
    const said = SAID[name] === undefined ? {} : { response: SAID[name] }
    t.same(outcome, { result, statusCode, error, final: false, ...said }, name)
    t.ok(ms - stalledMs < TIMEOUT_MS + MACHINE_MS, `${name}: ${Math.round(ms)} ms`)
    t.ok(!isSlow || ms >= TIMEOUT_MS - 5, name)
  }
  t.ok(flooded < FLOODED_BYTES_MAX, `${flooded} bytes were taken`)
  receiver.react(null)
})

t.test('post: an answer of 64 KB leaves its connection, one byte more ends it [webhook.attempt]', async (t) => {
  /** Connections of two posts, one after the other. */
  const connectionsOf = async (bytes: number): Promise<number> => {
    const poster = makePoster(makeDeps())
    receiver.react((_request, response) => void response.end(Buffer.alloc(bytes)))
    const before = receiver.connections()
    for (let n = 0; n < 2; n += 1) t.match(await poster.post(inputOf(receiver.url), NEVER), { statusCode: 200 })
    await poster.close()
    return receiver.connections() - before
  }
  const atMost = await connectionsOf(ANSWER_BYTES_MAX)
  // Nobody waits long for the rest of an answer: a machine that stands still then costs a connection, once.
  t.equal(atMost === 1 ? atMost : await connectionsOf(ANSWER_BYTES_MAX), 1, '64 KB')
  t.equal(await connectionsOf(ANSWER_BYTES_MAX + 1), 2, 'one byte more')
  receiver.react(null)
})

t.test('post: requests, one after the other, over one connection', async (t) => {
  const before = receiver.connections()
  const poster = makePoster(makeDeps())
  for (let n = 0; n < 20; n += 1) t.match(await poster.post(inputOf(receiver.url), NEVER), { statusCode: 200 })
  t.equal(receiver.connections() - before, 1)
  await poster.close()
})

t.test('post: a kept connection that the receiver has closed is no attempt', async (t) => {
  const poster = makePoster(makeDeps())
  await poster.post(inputOf(receiver.url), NEVER)
  let count = 0
  receiver.react((_request, response, socket) => {
    count += 1
    if (count === 1) socket.destroy()
    else response.end()
  })
  t.match(await poster.post(inputOf(receiver.url), NEVER), { result: 'delivered', statusCode: 200 })
  t.equal(count, 2)
  receiver.react(null)
  await poster.close()
})

t.test('post: cut off by a stop, it ends at once', async (t) => {
  receiver.react(() => undefined)
  const poster = makePoster(makeDeps({ timeoutMs: 60_000 }))
  const stop = new AbortController()
  const posting = poster.post(inputOf(receiver.url), stop.signal)
  setTimeout(() => stop.abort(), 50)
  t.match(await posting, { result: 'failed', error: 'timeout' })
  receiver.react(null)
  await poster.close()
})

t.test('post: a receiver that answers stands before two hundred that hang [webhook.fair]', async (t) => {
  const poster = makePoster(makeDeps({ timeoutMs: 60_000 }))
  const stop = new AbortController()
  receiver.react(({ path }, response) => void (path === '/ok' && response.end()))
  const [before, arrived] = [receiver.connections(), receiver.received.length]
  for (let n = 0; n < 200; n += 1) void poster.post(inputOf(`${receiver.url}/hang`), stop.signal)
  const outcome = await poster.post(inputOf(`${receiver.url}/ok`, { isProven: true }), NEVER)
  t.match(outcome, { result: 'delivered' })
  const others = receiver.received.slice(arrived).findIndex(({ path }) => path === '/ok')
  t.ok(others >= 0 && others < 150, `${others} of 200 came before it`)
  await until(() => receiver.connections() - before === 201, 20_000)
  const connections = []
  for (let n = 0; n < 2; n += 1) {
    t.match(await poster.post(inputOf(`${receiver.url}/ok`, { isProven: true }), NEVER), { result: 'delivered' })
    connections.push(receiver.connections())
  }
  t.equal(connections[1], connections[0], 'over the connection that it had')
  stop.abort()
  receiver.react(null)
  await poster.close()
  await until(() => receiver.open() === 0, 20_000)
})

t.test('post: one that hangs, goes on or is cut off costs one connection, which is closed', async (t) => {
  const cases: [string, Reaction][] = [
    ['hangs', () => undefined],
    ['goes on', flood],
    ['drips', (_request, response) => void response.write('a')],
  ]
  for (const [name, reaction] of cases) {
    receiver.react(reaction)
    await until(() => receiver.open() === 0, 20_000)
    const before = receiver.connections()
    const poster = makePoster(makeDeps({ timeoutMs: 1_500 }))
    await poster.post(inputOf(receiver.url), NEVER)
    await until(() => receiver.open() === 0, 20_000)
    t.equal(receiver.connections() - before, 1, name)
    await poster.close()
  }
  receiver.react(null)
})

t.test('post: of answers that go on for ever a bounded number is listened to', async (t) => {
  const before = receiver.connections()
  receiver.react((_request, response) => void response.write('a'))
  const poster = makePoster(makeDeps({ timeoutMs: 60_000 }))
  const all = Array.from({ length: 300 }, () => poster.post(inputOf(receiver.url), NEVER))
  for (const outcome of await Promise.all(all)) t.equal(outcome.result, 'delivered')
  await until(() => receiver.open() === 256, 20_000)
  t.equal(receiver.connections() - before, 300)
  await poster.close()
  receiver.react(null)
})

t.test('post: what keeps a connection from being made', async (t) => {
  const silent = createPlain((socket: Socket) => socket.on('error', () => undefined))
  const rude = createPlain((socket: Socket) => {
    socket.on('error', () => undefined)
    socket.end('no TLS here\r\n')
  })
  for (const one of [silent, rude]) await new Promise<void>((resolve) => one.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    silent.close()
    rude.close()
  })
  const portOf = (one: typeof silent) => (one.address() as { port: number }).port
  zone.set('gone.test', { type: 'A', address: '127.0.0.1' })
  zone.fail('broken.test', 'servfail')
  zone.set('two.test', { type: 'A', address: '127.0.0.1' }, { type: 'A', address: '10.0.0.1' })
  const strange = makeSelfSigned()?.cert ?? null
  const cases: [string, string, Partial<PosterDeps>, object][] = [
    ['nobody listens', `https://localhost:${await freePort()}`, {}, { error: 'connect_failed' }],
    ['never finishes TLS', `https://localhost:${portOf(silent)}`, {}, { error: 'timeout' }],
    ['speaks no TLS', `https://localhost:${portOf(rude)}`, {}, { error: 'tls_failed' }],
    [
      'a certificate that nobody signed',
      receiver.url,
      { ca: null },
      { error: /^tls_failed: DEPTH_ZERO_SELF_SIGNED_CERT$/ },
    ],
    ['a certificate of somebody else', receiver.url, { ca: strange }, { error: 'tls_failed' }],
    [
      'a certificate for another name',
      `https://gone.test:${receiver.port}`,
      {},
      { error: /^tls_failed: ERR_TLS_CERT_ALTNAME_INVALID$/ },
    ],
    ['no such name', 'https://nowhere.test', {}, { error: 'dns_error' }],
    ['the name servers fail', 'https://broken.test', {}, { error: 'dns_error' }],
    ['one address of two is private', `https://two.test:${receiver.port}`, {}, PRIVATE],
    ['a private literal', 'https://10.0.0.1', {}, PRIVATE],
    ['a port of another service', 'https://localhost:25', {}, { error: 'port_not_allowed', final: true }],
    ['one that is allowed', 'https://localhost:25', { webhookPorts: [25] }, { error: /^(connect|tls)_failed/ }],
    ['this machine', receiver.url, { privateNetworksAllowed: [] }, PRIVATE],
  ]
  for (const [name, url, changes, expected] of cases)
    t.match(await postOnce(url, changes), { result: 'failed', statusCode: null, ...expected }, name)
})

t.test('post: a name that moves to a private address gains nothing [webhook.private]', async (t) => {
  zone.set('moving.test', { type: 'A', address: '127.0.0.1' })
  const resolver = resolverOf()
  const before = receiver.connections()
  const poster = makePoster(makeDeps({ resolver }))
  // The certificate is for other names: what counts is who was connected to.
  t.match(await poster.post(inputOf(`https://moving.test:${receiver.port}`), NEVER), { error: 'tls_failed' })
  t.equal(receiver.connections() - before, 1)
  zone.set('moving.test', { type: 'A', address: '127.0.0.2' })
  const asked = zone.asked.length
  t.match(await poster.post(inputOf(`https://moving.test:${receiver.port}`, { fresh: true }), NEVER), {
    error: 'private_address',
    final: true,
  })
  t.ok(zone.asked.length > asked, 'looked up anew')
  t.equal(receiver.connections() - before, 1, 'nobody was connected to')
  await poster.close()
})

t.test('post: a name that is another one at the second look-up is looked up once [webhook.private]', async (t) => {
  zone.set('turning.test', { type: 'A', address: '127.0.0.1' })
  zone.rebind('turning.test', { type: 'A', address: '127.0.0.2' })
  let inside = 0
  const hidden = createPlain((socket: Socket) => {
    inside += 1
    socket.destroy()
  })
  await new Promise<void>((resolve) => hidden.listen(receiver.port, '127.0.0.2', resolve))
  t.teardown(() => hidden.close())
  const before = receiver.connections()
  const { error } = await postOnce(`https://turning.test:${receiver.port}`)
  t.equal(
    error,
    'tls_failed: ERR_TLS_CERT_ALTNAME_INVALID',
    'the certificate is for other names: what counts is who was connected to',
  )
  t.equal(receiver.connections() - before, 1)
  t.equal(
    zone.asked.filter((question) => question === 'A turning.test').length,
    1,
    'the address that was checked is used',
  )
  t.equal(inside, 0)
})

interface Vector {
  readonly kind: string
  readonly value: string
  readonly blocked: boolean
}

t.test('post: addresses that must not be connected to [webhook.private]', async (t) => {
  const path = findSuite('ssrf/vectors.json')
  if (path === null) {
    t.comment('SUITES_DIR is not there: skipped')
    return
  }
  const vectors = JSON.parse(readFileSync(path, 'utf8')) as readonly Vector[]
  const before = receiver.connections()
  const poster = makePoster(makeDeps({ privateNetworksAllowed: [] }))
  const tried = { posted: 0, refused: 0 }
  for (const { kind, value, blocked } of vectors) {
    if (!blocked) continue
    // Over https, or its scheme alone would refuse it; to our port, so that a connection would be seen.
    const host = value.includes(':') && !value.startsWith('[') ? `[${value}]` : value
    const text = kind === 'url' ? value.replace(/^\w+:/, 'https:') : `https://${host}:${receiver.port}/`
    if (!URL.canParse(text) || new URL(text).hostname === '') {
      tried.refused += 1
      continue
    }
    tried.posted += 1
    const { error } = await poster.post(inputOf(text), NEVER)
    t.ok(['private_address', 'dns_error', 'port_not_allowed'].includes(error ?? ''), `${value}: ${error}`)
  }
  t.equal(tried.posted + tried.refused, vectors.filter(({ blocked }) => blocked).length)
  t.ok(tried.posted > 150, `${tried.posted} were tried`)
  t.equal(receiver.connections(), before)
  await poster.close()
})

t.test('post: without a bound of its own an attempt ends after ten seconds [webhook.attempt]', async (t) => {
  t.equal(WEBHOOK_ANSWER_SECONDS, 10)
  const { error, ms, stalledMs } = await tenSeconds
  t.equal(error, 'timeout')
  t.ok(ms > 9_900 && ms - stalledMs < 10_000 + MACHINE_MS, `${Math.round(ms)} ms`)
})
