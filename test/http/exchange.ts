/** Tests of src/edge/exchange.ts: bodies, time, aborts, faults and answers, over a real listener. */

import { connect } from 'node:net'

import { test } from 'tap'
import { HeldBytes } from '../../src/process/held-bytes.ts'
import { until } from '../support/machine/until.ts'
import { call, ENGINE, makeKeyRing, makeRoutes, sendRaw, startEdge } from '../support/service/edge-listener.ts'
import { makeGate } from '../support/service/gate.ts'

const ring = makeKeyRing()
const BODY = { from: 'a@example.com', to: ['b@example.com'], subject: 'S', text: 'T' }

test('exchange: Idempotency-Key is 1 to 255 printable characters [request.idempotency]', async (t) => {
  const seen: (string | null)[] = []
  const routes = makeRoutes('public', (request) => {
    seen.push(request.idempotencyKey)
    return { status: 200, json: {} }
  })
  const edge = await startEdge(ring, { routes })
  t.teardown(() => edge.close())
  const send = (value: string | string[] | undefined, path = '/v1/email') =>
    call(edge.port, {
      method: 'POST',
      path,
      token: path === '/v1/email' ? ring.sk : ring.ak,
      headers: value === undefined ? {} : { 'Idempotency-Key': value },
      body: path === '/v1/email' ? BODY : { domain: 'example.com' },
    })
  for (const value of ['', ' ', 'k'.repeat(256), 'a\tb', 'ä', ['a', 'b']]) {
    const came = await send(value)
    t.same([came.status, came.json.error, came.json.issues], [400, 'invalid_request', undefined])
  }
  const raw = `POST /v1/email HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${ring.sk}\r\nContent-Type: application/json\r\n`
  const deleted = await sendRaw(edge.port, `${raw}Idempotency-Key: a\u007f\r\nContent-Length: 2\r\n\r\n{}`, (text) =>
    /\}|Request$/.test(text),
  )
  // The parser of `node:http` refuses control characters in any header.
  t.match(deleted.text, ENGINE.name === 'uws' ? /Idempotency-Key must/ : /^HTTP\/1.1 400 /)
  for (const value of [undefined, '~', 'a b', 'k'.repeat(255)]) t.equal((await send(value)).status, 200)
  t.equal((await send('ä', '/v1/domains')).status, 200, 'another route does not look at it')
  t.same(seen, [null, '~', 'a b', 'k'.repeat(255), null])
})

test('exchange: 10,485,760 bytes pass, one more is 413, said with its length or not [request.body.max]', async (t) => {
  const edge = await startEdge(ring, { routes: makeRoutes('public', () => ({ status: 200, json: {} })) })
  t.teardown(() => edge.close())
  const max = 10 * 1024 * 1024
  const most = sized(max)
  const more = sized(max + 1)
  const headers = { 'Content-Type': 'application/json' }
  const post = { method: 'POST', path: '/v1/email', token: ring.sk, headers }
  t.equal((await call(edge.port, { ...post, body: most })).status, 200)
  t.equal((await call(edge.port, { ...post, body: more })).status, 413)
  const chunked = { ...post, headers: { ...headers, 'Transfer-Encoding': 'chunked' } }
  for (const token of [ring.sk, ring.unknown]) {
    const came = await sendChunked(edge.port, token, more)
    t.match(came, /^HTTP\/1.1 413 /)
    t.match(came, /\r\nConnection: close\r\n/)
    t.match(came, /\r\nRequest-Id: /)
    t.match(came, /413 Request Entity Too Large$/)
  }
  t.equal(
    (await call(edge.port, { ...chunked, body: undefined as never, path: '/v1/email' })).status,
    400,
    'chunked and empty',
  )
  const early = `POST /v1/email HTTP/1.1\r\nHost: a\r\nContent-Length: ${max + 1}\r\n\r\n`
  t.match((await sendRaw(edge.port, early, (text) => text.includes('Large'))).text, /^HTTP\/1.1 413 /)
})

test('exchange: a body that may end in two places is refused, and nothing after it is read [request.framing]', async (t) => {
  let handled = 0
  const routes = makeRoutes('public', () => {
    handled += 1
    return { status: 200, json: {} }
  })
  const edge = await startEdge(ring, { routes })
  t.teardown(() => edge.close())
  const head = `POST /v1/email HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${ring.sk}\r\nContent-Type: application/json\r\n`
  const body = JSON.stringify(BODY)
  const chunked = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
  const length = `Content-Length: ${body.length}\r\n`
  const refused: [string, string][] = [
    [`${length}Content-Length: 1\r\n`, body],
    [`Content-Length: 1\r\n${length}`, body],
    [length + length, body],
    ['Transfer-Encoding: chunked, identity\r\n', chunked],
    ['Transfer-Encoding: xchunked\r\n', chunked],
    ['Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n', chunked],
    [`${length}Transfer-Encoding: chunked\r\n`, chunked],
  ]
  const whole = `${head}${length}\r\n${body}`
  for (const [framing, sent] of refused) {
    const came = await sendRaw(edge.port, `${head}${framing}\r\n${sent}${whole}`, () => false)
    t.ok(came.isClosed, framing)
    t.notMatch(came.text, /HTTP\/1\.1 200 /, 'what follows is not a request')
  }
  t.equal(handled, 0)
  t.match((await sendRaw(edge.port, whole, (text) => text.includes('}'))).text, /^HTTP\/1\.1 200 /)
  const coded = `${head}Transfer-Encoding: Chunked\r\n\r\n${chunked}`
  t.match((await sendRaw(edge.port, coded, (text) => text.includes('}'))).text, /^HTTP\/1\.1 200 /)
})

test('exchange: bodies together are bounded: then 503, and the memory is given back [request.body.held]', async (t) => {
  const edge = await startEdge(ring, { held: new HeldBytes(1000) })
  t.teardown(() => edge.close())
  const post = { method: 'POST', path: '/v1/email', token: ring.sk }
  for (let round = 0; round < 3; round++) {
    const full = await call(edge.port, { ...post, body: { ...BODY, text: 'x'.repeat(1000) } })
    t.same([full.status, full.json.error, full.headers['retry-after']], [503, 'unavailable', '1'])
    t.equal((await call(edge.port, { ...post, body: { ...BODY, text: 'x'.repeat(800) } })).status, 200)
  }
})

test('exchange: a request that waits holds none of that memory [request.body.held]', async (t) => {
  const gate = makeGate()
  const waiting: string[] = []
  const routes = makeRoutes('public', async ({ body, connection }) => {
    const { subject } = body as typeof BODY
    if (subject !== 'wait') return { status: 200, json: {} }
    connection?.onEnd(() => undefined)
    waiting.push(subject)
    await gate.released
    return { status: 200, json: {} }
  })
  const edge = await startEdge(ring, { routes, held: new HeldBytes(1000) })
  t.teardown(() => edge.close())
  const post = { method: 'POST', path: '/v1/email', token: ring.sk }
  const first = call(edge.port, { ...post, body: { ...BODY, subject: 'wait', text: 'x'.repeat(700) } })
  await until(() => waiting.length === 1, 5_000)
  t.equal((await call(edge.port, { ...post, body: { ...BODY, text: 'x'.repeat(700) } })).status, 200)
  gate.release()
  t.equal((await first).status, 200)
})

test('exchange: a body that does not end in time is cut off [request.body.slow]', async (t) => {
  const edge = await startEdge(ring, { bodyMsMax: 200 })
  t.teardown(() => edge.close())
  const head = `POST /v1/email HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${ring.sk}\r\nContent-Type: application/json\r\n`
  for (const rest of ['Content-Length: 100\r\n\r\n{', 'Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n']) {
    t.same(await sendRaw(edge.port, head + rest), { text: '', isClosed: true })
  }
  t.equal((await call(edge.port, { path: '/v1/server', token: ring.sk })).status, 200)
})

test('exchange: a large body has more time than others, and not without end [request.body.slow]', async (t) => {
  const routes = makeRoutes('public', () => ({ status: 202, json: {} }))
  const edge = await startEdge(ring, { bodyMsMax: 500, routes })
  t.teardown(() => edge.close())
  const head = (path: string) =>
    `POST ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${ring.sk}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{`
  const startedAtMs = performance.now()
  const left = sendRaw(edge.port, head('/v1/broadcasts'))
  const slow = connect(edge.port, '127.0.0.1')
  t.teardown(() => slow.destroy())
  let answer = ''
  slow.on('data', (chunk) => (answer += chunk))
  slow.write(head('/v1/broadcasts'))
  t.same(await sendRaw(edge.port, head('/v1/email')), { text: '', isClosed: true }, 'another is cut off')
  slow.write('}')
  await until(() => answer !== '', 5000)
  t.match(answer, /^HTTP\/1.1 202 /, 'one that came after that is taken')
  t.same(await left, { text: '', isClosed: true })
  t.ok(performance.now() - startedAtMs >= 3_000, 'six times as long')
})

test('exchange: a client that goes away is seen, and nothing is written to it [request.abort]', async (t) => {
  const gone = makeGate()
  const routes = makeRoutes('public', async (request) => {
    gone.arrived(request)
    await gone.released
    return { status: 200, json: {} }
  })
  const edge = await startEdge(ring, { routes })
  t.teardown(() => edge.close())
  const socket = connect(edge.port, '127.0.0.1')
  socket.write(`GET /v1/server HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${ring.sk}\r\n\r\n`)
  const request = await gone.request
  t.equal(request.aborted, false)
  socket.destroy()
  await until(() => request.aborted, 5000)
  gone.release()
  t.equal((await call(edge.port, { path: '/v1/server', token: ring.sk })).status, 200)
  t.same(edge.faults, [])
})

test('exchange: what a handler throws is a 500 that tells nothing, and a line in the log [error.internal]', async (t) => {
  const handles = [
    () => {
      throw new Error('secret')
    },
    async () => {
      throw new Error('secret')
    },
  ]
  for (const handle of handles) {
    const edge = await startEdge(ring, { routes: makeRoutes('public', handle) })
    const came = await call(edge.port, { path: '/v1/server', token: ring.sk })
    t.same([came.status, came.json.error], [500, 'internal_error'])
    t.notMatch(came.text, /secret/)
    t.match(edge.faults, [{ requestId: came.headers['request-id'], route: 'readServer' }])
    await edge.close()
  }
})

test('exchange: a key that cannot be looked up is 503 [error.unavailable]', async (t) => {
  const finders = [
    () => Promise.reject(new Error('away')),
    () => {
      throw new Error('away')
    },
  ]
  for (const keys of finders) {
    const edge = await startEdge(ring, { keys })
    const came = await call(edge.port, { method: 'POST', path: '/v1/email', token: ring.sk, body: BODY })
    t.same([came.status, came.json.error, came.headers['retry-after']], [503, 'unavailable', '1'])
    t.equal((await call(edge.port, { path: '/v1/server' })).status, 401)
    await edge.close()
  }
})

test('exchange: answers of every form [request.id]', async (t) => {
  const answers = [
    { status: 204 },
    { status: 200, text: 'ü 1\n', contentType: 'text/plain; version=0.0.4', headers: { 'X-A': 'b' } },
  ]
  let next = 0
  const routes = makeRoutes('public', () => answers[next++] ?? { close: true })
  const edge = await startEdge(ring, { routes })
  t.teardown(() => edge.close())
  const get = `GET /v1/server HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${ring.sk}\r\n\r\n`
  const empty = await sendRaw(edge.port, get, (text) => text.includes('\r\n\r\n'))
  t.match(empty.text, /^HTTP\/1.1 204 No Content\r\nRequest-Id: [0-9a-f-]{36}\r\n/)
  t.notMatch(empty.text, /Content-Length|Transfer-Encoding/)
  const text = await call(edge.port, { path: '/v1/server', token: ring.sk })
  t.same([text.text, text.headers['content-type'], text.headers['x-a']], ['ü 1\n', 'text/plain; version=0.0.4', 'b'])
  t.same(await sendRaw(edge.port, get), { text: '', isClosed: true }, 'closed without an answer')
})

/** A JSON body of exactly so many bytes, valid for POST /v1/email. */
function sized(bytes: number): string {
  const empty = JSON.stringify({ ...BODY, text: '' })
  return JSON.stringify({ ...BODY, text: 'x'.repeat(bytes - Buffer.byteLength(empty)) })
}

/** Sends a body in chunks and returns the received data. The peer may stop reading before the end. */
async function sendChunked(port: number, token: string, body: string): Promise<string> {
  const pieces = [
    `POST /v1/email HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n` +
      'Transfer-Encoding: chunked\r\n\r\n',
  ]
  for (let at = 0; at < body.length; at += 65_536) {
    const piece = body.slice(at, at + 65_536)
    pieces.push(`${piece.length.toString(16)}\r\n${piece}\r\n`)
  }
  const { text } = await sendRaw(port, `${pieces.join('')}0\r\n\r\n`, (came) => came.includes('Large'), 20_000)
  return text
}
