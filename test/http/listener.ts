/**
 * Tests of src/edge/http.ts: routes, keys, headers and the listener itself, over a real one, with a fake finder of
 * keys.
 */

import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'tap'

import { ERROR } from '../../schemas/error.ts'
import { ROUTES } from '../../schemas/routes.ts'
import { makeRate } from '../../src/http/rate.ts'
import type { EdgeRequest } from '../../src/http/request.ts'
import { compileBody } from '../../src/http/shape/validate.ts'
import {
  type Call,
  type Came,
  call,
  ENGINE,
  makeKeyRing,
  makeRoutes,
  sendRaw,
  startEdge,
} from '../support/service/edge-listener.ts'
import { makeGate } from '../support/service/gate.ts'

const ring = makeKeyRing()
const isError = compileBody(ERROR)
const BODY = { from: 'a@example.com', to: ['b@example.com'], subject: 'S', text: 'T' }
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

function codeOf(came: Came): string {
  return came.json === undefined ? came.text : (came.json.error ?? 'none')
}

test('http: the order of refusals, one fault repaired at a time [refusal.order]', async (t) => {
  const rate = { refuses: true, take: () => !rate.refuses }
  const edge = await startEdge(ring, { rate })
  t.teardown(() => edge.close())
  const broken: Call = {
    method: 'PUT',
    path: '/v1/email?x=1',
    token: ring.unknown,
    headers: { 'Content-Type': 'text/plain', 'Idempotency-Key': 'ä', 'Content-Length': '99999999' },
    body: '{',
  }
  const headers = { 'Content-Type': 'text/plain', 'Idempotency-Key': 'ä' }
  const steps: readonly (readonly [Partial<Call>, number, string])[] = [
    [{}, 429, '429 Too Many Requests'],
    [{}, 413, '413 Request Entity Too Large'],
    [{ headers }, 401, 'unauthorized'],
    [{ headers, token: ring.ak }, 405, 'method_not_allowed'],
    [{ headers, token: ring.ak, method: 'POST' }, 403, 'wrong_token_kind'],
    [{ headers, token: ring.sk, method: 'POST' }, 415, 'unsupported_media_type'],
    [
      { headers: { ...headers, 'Content-Type': 'application/json' }, token: ring.sk, method: 'POST' },
      400,
      'invalid_request',
    ],
    [{ headers: { 'Content-Type': 'application/json' }, token: ring.sk, method: 'POST' }, 400, 'invalid_request'],
    [{ headers: {}, token: ring.sk, method: 'POST', path: '/v1/email', body: BODY }, 200, 'none'],
  ]
  let step = 0
  for (const [repaired, status, code] of steps) {
    const came = await call(edge.port, { ...broken, ...repaired })
    t.same([came.status, codeOf(came)], [status, code], `step ${step}`)
    t.match(came.headers['request-id'], UUID)
    if (came.json !== undefined && status >= 400) t.equal(isError(came.json).ok, true)
    // A wrong header has no issues, a wrong body has both its own and those of the query.
    if (step === 6) t.equal(came.json.issues, undefined)
    if (step === 7)
      t.same(
        came.json.issues.map(({ path }: { path: string }) => path),
        ['', 'x'],
      )
    if (step === 0) t.same([came.headers['retry-after'], came.headers['content-type']], ['1', 'text/plain'])
    rate.refuses = false
    step++
  }
})

/** The caller, and the answer: status, code, and a word of the message. */
const KEYS: readonly (readonly [string, Partial<Call>, number, RegExp])[] = [
  ['no key', {}, 401, /./],
  ['another scheme', { headers: { Authorization: `Basic ${ring.sk}` } }, 401, /./],
  ['no scheme', { headers: { Authorization: ring.sk } }, 401, /./],
  ['an unknown key', { token: ring.unknown }, 401, /./],
  ['a wrong checksum', { token: `${ring.sk.slice(0, -1)}-` }, 401, /./],
  ['an operator key', { token: ring.ok }, 401, /./],
  ['an account key', { token: ring.ak }, 403, /server key/],
  ['a server key', { token: ring.sk }, 200, /./],
  ['a test server key, scheme in another case', { headers: { Authorization: `bearer  ${ring.sk_test}` } }, 200, /./],
]

test('http: kinds of key [key.kind] [key.unknown]', async (t) => {
  const edge = await startEdge(ring)
  t.teardown(() => edge.close())
  for (const [name, from, status, message] of KEYS) {
    const came = await call(edge.port, { path: '/v1/server', ...from })
    t.equal(came.status, status, name)
    if (status >= 400) t.match(came.json.message, message, name)
    if (status === 401) t.equal(came.headers['www-authenticate'], 'Bearer')
  }
  const domains = await call(edge.port, { path: '/v1/domains', token: ring.sk })
  t.same([domains.status, domains.json.error], [403, 'wrong_token_kind'])
  t.match(domains.json.message, /account key/)
})

test('http: what is no route is 404 with a key and 401 without [refusal.order]', async (t) => {
  const edge = await startEdge(ring)
  t.teardown(() => edge.close())
  for (const path of ['/', '/v1', '/v1/email/x', '/v2/email', '/v1/domains/x/y', '//v1/email']) {
    t.equal((await call(edge.port, { path })).status, 401, path)
    t.same(codeOf(await call(edge.port, { path, token: ring.ak })), 'not_found', path)
  }
})

test('http: another method is 405 with Allow, HEAD is GET without its body [request.head]', async (t) => {
  const edge = await startEdge(ring)
  t.teardown(() => edge.close())
  const allowed: readonly (readonly [string, string, string])[] = [
    ['DELETE', '/v1/email', 'POST'],
    ['GET', '/v1/email', 'POST'],
    ['HEAD', '/v1/email', 'POST'],
    ['OPTIONS', '/v1/server', 'GET, HEAD'],
    // `node:http` refuses methods that it does not know.
    [ENGINE.name === 'uws' ? 'FOO' : 'PURGE', '/v1/domains/1', 'GET, HEAD, DELETE'],
    ['PUT', '/v1/domains', 'GET, HEAD, POST'],
  ]
  for (const [method, path, allow] of allowed) {
    const came = await sendRaw(
      edge.port,
      `${method} ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${ring.sk}\r\n\r\n`,
      (text) => text.includes('\r\n\r\n'),
    )
    t.match(came.text, /^HTTP\/1.1 405 /, `${method} ${path}`)
    t.match(came.text, `Allow: ${allow}\r\n`)
  }
  const [whole, head] = [
    await call(edge.port, { path: '/v1/server', token: ring.sk }),
    await call(edge.port, { path: '/v1/server', token: ring.sk, method: 'HEAD' }),
  ]
  t.same([head.status, head.text, head.headers['content-length']], [200, '', whole.headers['content-length']])
  t.equal((await call(edge.port, { path: '/v1/server', method: 'HEAD' })).status, 401)
})

test('http: media types [request.media]', async (t) => {
  const edge = await startEdge(ring)
  t.teardown(() => edge.close())
  const body = JSON.stringify(BODY)
  const types: readonly (readonly [Record<string, string>, number])[] = [
    [{}, 415],
    [{ 'Content-Type': 'text/json' }, 415],
    [{ 'Content-Type': 'application/jsonp' }, 415],
    [{ 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' }, 415],
    [{ 'Content-Type': 'application/json' }, 200],
    [{ 'Content-Type': 'Application/JSON ; charset=utf-8' }, 200],
  ]
  for (const [headers, status] of types) {
    const came = await call(edge.port, { method: 'POST', path: '/v1/email', token: ring.sk, headers, body })
    t.equal(came.status, status, JSON.stringify(headers))
  }
  const bodiless = { method: 'POST', path: '/v1/domains/x/verify', token: ring.ak, headers: { 'Content-Type': 'x' } }
  t.equal((await call(edge.port, { ...bodiless, body: '{{{' })).status, 200, 'a body that the route does not take')
})

test('http: a handler is given what was sent, checked, with defaults [route.table]', async (t) => {
  let seen: EdgeRequest | undefined
  const routes = makeRoutes('public', (request) => {
    seen = request
    return { status: 200, json: {} }
  })
  const clients: string[] = []
  const rate = { take: (client: string) => clients.push(client) > 0 }
  const edge = await startEdge(ring, { routes, rate, trustedProxies: ['127.0.0.0/8'] })
  t.teardown(() => edge.close())
  const headers = { 'X-Forwarded-For': '1.1.1.1, 9.9.9.9' }
  const sent = await call(edge.port, { method: 'POST', path: '/v1/email', token: ring.sk_test, headers, body: BODY })
  t.same(seen?.body, { ...BODY, headers: {}, tag: null, metadata: {} })
  t.match(seen?.key, { kind: 'server', mode: 'test' })
  t.same([seen?.route.name, clients], ['sendEmail', ['9.9.9.9']])
  t.equal(seen?.requestId, sent.headers['request-id'])
  await call(edge.port, { path: '/v1/domains?limit=7', token: ring.ak })
  t.same([seen?.query, seen?.body, clients[1]], [{ limit: '7' }, undefined, '127.0.0.1'])
  await call(edge.port, { path: '/v1/messages/abc%2F', token: ring.sk })
  t.same([seen?.params, seen?.query], [{ id: 'abc%2F' }, {}])
  t.equal((await call(edge.port, { path: '/v1/server?a=1', token: ring.sk })).json.issues[0].path, 'a')
})

test('http: the operator listener knows operator keys only, and three paths without [operator.listener]', async (t) => {
  const edge = await startEdge(ring, { routes: makeRoutes('operator') })
  t.teardown(() => edge.close())
  const patch = { method: 'PATCH', path: '/v1/operator/accounts/1', body: { monthlyCap: 5, highestCap: null } }
  for (const token of [ring.sk, ring.sk_test, ring.ak])
    t.equal((await call(edge.port, { ...patch, token })).status, 401)
  const patched = await call(edge.port, { ...patch, token: ring.ok })
  t.same([patched.status, patched.json], [200, { monthlyCap: 5, highestCap: null }])
  for (const path of ['/healthz', '/readyz', '/metrics']) {
    t.equal((await call(edge.port, { path })).status, 200, path)
    t.equal((await call(edge.port, { path, method: 'POST' })).status, 405, path)
  }
  t.equal((await call(edge.port, { path: '/v1/email' })).status, 401)
  t.equal((await call(edge.port, { path: '/v1/email', token: ring.ok })).status, 404)
})

test('http: a client over its rate is refused in plain text [request.rate]', async (t) => {
  const edge = await startEdge(ring, { rate: makeRate({ perSecond: 1, burst: 3, nowMs: () => 0 }) })
  t.teardown(() => edge.close())
  const statuses: number[] = []
  for (let index = 0; index < 5; index++) statuses.push((await call(edge.port, { path: '/x' })).status)
  t.same(statuses, [401, 401, 401, 429, 429])
})

test('http: a /64 is one client, and an IPv4-mapped address is the IPv4 one [request.client]', async (t) => {
  const rate = makeRate({ perSecond: 1, burst: 2, nowMs: () => 0 })
  const edge = await startEdge(ring, { host: '::', rate, trustedProxies: ['127.0.0.0/8', '2001:db8:ffff::/64'] })
  t.teardown(() => edge.close())
  const ask = async (client: string) =>
    (await call(edge.port, { path: '/x', headers: { 'X-Forwarded-For': client } })).status
  t.same(await inTurn(['2001:db8:1:2::1', '2001:DB8:1:2:ffff::9', '2001:db8:1:2::3'], ask), [401, 401, 429])
  t.same(await inTurn(['2001:db8:1:3::1', '2001:db8:1:3::1, 2001:db8:ffff::7'], ask), [401, 401], 'the next /64')
  t.same(await inTurn(['192.0.2.1', '::ffff:192.0.2.1', '::ffff:c000:201'], ask), [401, 401, 429])
  t.same(await inTurn(['192.0.2.2', '::ffff:192.0.2.3'], ask), [401, 401], 'not one /64 of all that are mapped')
  // The listener itself sees who comes over IPv4 as a mapped address.
  t.same(await inTurn(['', '', ''], ask), [401, 401, 429])
})

async function inTurn<Value, Result>(values: readonly Value[], ask: (value: Value) => Promise<Result>) {
  const results: Result[] = []
  for (const value of values) results.push(await ask(value))
  return results
}

test('http: a taken port is an error that names it [listener.port]', async (t) => {
  const edge = await startEdge(ring)
  await t.rejects(startEdge(ring, { port: edge.port }), new RegExp(`:${edge.port}`))
  const { port } = edge
  await edge.close()
  const again = await startEdge(ring, { port })
  t.equal(again.port, port)
  await again.close()
})

test('http: closing lets a request in hand finish and takes no more [listener.close]', async (t) => {
  const gate = makeGate()
  const routes = makeRoutes('public', async (request) => {
    gate.arrived(request)
    await gate.released
    return { status: 200, json: { done: true } }
  })
  const edge = await startEdge(ring, { routes })
  const came = call(edge.port, { path: '/v1/server', token: ring.sk })
  await gate.request
  const closed = edge.close()
  await t.rejects(call(edge.port, { path: '/v1/server' }), { code: 'ECONNREFUSED' })
  gate.release()
  const { status, json, headers } = await came
  t.same([status, json, headers.connection], [200, { done: true }, 'close'])
  await closed
})

test('http: closing reads what came while the machine stood still [listener.close]', async (t) => {
  const edge = await startEdge(ring)
  const socket = connect(edge.port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  let text = ''
  socket.setEncoding('latin1').on('data', (piece: string) => (text += piece))
  const asked = `GET /v1/server HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${ring.sk}\r\n\r\n`
  socket.write(asked)
  await once(socket, 'data')
  text = ''
  const closed = edge.close()
  socket.write(asked)
  // Longer than a silent connection is kept.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)
  await Promise.race([once(socket, 'data'), once(socket, 'close')])
  t.match(text, /^HTTP\/1.1 200 /, 'a kept connection is not cut on what was sent')
  await closed
})

test('http: a route of the other listener is a mistake of the program [route.table]', async (t) => {
  const routes = [ROUTES.readServer, ROUTES.readHealth].map((route) => ({ route, handle: () => ({ status: 200 }) }))
  await t.rejects(startEdge(ring, { routes }), /readHealth/)
})
