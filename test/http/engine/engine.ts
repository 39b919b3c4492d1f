/**
 * Both engines answer the same requests with the same status, body and headers, except for the headers listed here, and
 * for requests that one of the parsers refuses before any route.
 *
 * `ANSWERS` names a file with the answers of another version of Node.js, to which these are equal too. If there is no
 * such file, it is written.
 */

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { test } from 'tap'
import { makeRate } from '../../../src/http/rate.ts'
import type { Answer, FeedSink } from '../../../src/http/respond.ts'
import { HeldBytes } from '../../../src/process/held-bytes.ts'
import { makeKeyRing, makeRoutes, sendRaw, startEdge } from '../../support/service/edge-listener.ts'
import { ENGINES, isWhole, readAnswer } from '../../support/service/engines.ts'

const ring = makeKeyRing()
/** Headers that the libraries add themselves. `connection` is one of them unless it is `close`. */
const EXEMPT = ['date', 'keep-alive', 'uwebsockets', 'transfer-encoding']
const BODY = JSON.stringify({ from: 'a@example.com', to: ['b@example.com'], subject: 'Grüße', text: 'T' })

/** An answer by the number in `/v1/messages/{id}`. */
const ANSWERS: Readonly<Record<string, () => Answer>> = {
  json: () => ({ status: 200, json: { text: 'ü' } }),
  nothing: () => ({ status: 204 }),
  text: () => ({ status: 200, text: 'ü', contentType: 'text/plain; charset=utf-8', headers: { 'X-A': 'b' } }),
  bytes: () => ({ status: 200, bytes: Buffer.from([0, 255, 128]), contentType: 'application/octet-stream' }),
  moved: () => ({ status: 303, headers: { Location: '/v1/server' } }),
  closed: () => ({ close: true }),
  fault: () => {
    throw new Error('secret')
  },
  feed: () => ({
    start(sink: FeedSink) {
      sink.send('data: 1\n\n')
      setImmediate(() => sink.end())
      return () => undefined
    },
  }),
  file: () => ({
    size: 6,
    contentType: 'message/rfc822',
    headers: { 'Content-Disposition': 'attachment' },
    async *read(from: number, length: number) {
      yield Buffer.from('abcdef').subarray(from, from + length)
    },
  }),
  empty: () => ({ size: 0, contentType: 'text/plain', async *read() {} }),
}

const KEY = `Authorization: Bearer ${ring.sk}`
const get = (path: string, ...lines: string[]) => request('GET', path, [KEY, ...lines])
const post = (path: string, body: string, ...lines: string[]) =>
  `${request('POST', path, [KEY, `Content-Length: ${Buffer.byteLength(body)}`, ...lines])}${body}`
const JSON_TYPE = 'Content-Type: application/json'
const bytesOf = (text: string) => Buffer.from(text).toString('latin1')

function request(method: string, path: string, lines: readonly string[]): string {
  return `${method} ${path} HTTP/1.1\r\n${['Host: a', ...lines].join('\r\n')}\r\n\r\n`
}

const REQUESTS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.keys(ANSWERS).map((name) => [name, get(`/v1/messages/${name}`)])),
  ...Object.fromEntries(
    Object.keys(ANSWERS).map((name) => [`${name}, its head`, request('HEAD', `/v1/messages/${name}`, [KEY])]),
  ),
  'a range': get('/v1/messages/file', 'Range: bytes=1-2'),
  'no range': get('/v1/messages/file', 'Range: bytes=9-'),
  'no key': request('GET', '/v1/server', []),
  'a wrong path': get('/v1/serve'),
  'a slash too much': get('/v1/server/'),
  'two slashes': get('//v1/server'),
  'no segment': get('/v1/messages/'),
  'the root': get('/'),
  'a coded path': get('/v1/messages/%C3%BC%2F'),
  'a path of many segments': get('/a'.repeat(200)),
  'an unknown parameter': get('/v1/server?a=1&a=2'),
  'a question mark alone': get('/v1/server?'),
  'another method': request('PUT', '/v1/server', [KEY]),
  'a method without a route': request('OPTIONS', '/v1/nowhere', [KEY]),
  'a body': post('/v1/email', BODY, JSON_TYPE),
  'a body in chunks': `${request('POST', '/v1/email', [KEY, JSON_TYPE, 'Transfer-Encoding: chunked'])}2\r\n{}\r\n0\r\n\r\n`,
  'a body that is no JSON': post('/v1/email', '{', JSON_TYPE),
  'no media type': post('/v1/email', BODY),
  'a body of a GET': `${get('/v1/server', 'Content-Length: 2')}{}`,
  'an expected continue': post('/v1/email', BODY, JSON_TYPE, 'Expect: 100-continue'),
  'another expectation': post('/v1/email', BODY, JSON_TYPE, 'Expect: tea'),
  'an upgrade': get('/v1/server', 'Connection: Upgrade', 'Upgrade: websocket'),
  'a close': get('/v1/server', 'Connection: close'),
  'a length too large': request('POST', '/v1/email', [KEY, JSON_TYPE, 'Content-Length: 99999999']),
  'a key in UTF-8': post('/v1/email', BODY, JSON_TYPE, bytesOf('Idempotency-Key: ü')),
  'two keys': get('/v1/server', KEY),
  'more than is held': post('/v1/email', JSON.stringify({ text: 'x'.repeat(20_000) }), JSON_TYPE),
}

async function answersOf(engine: (typeof ENGINES)[number], refuses: boolean): Promise<Record<string, unknown>> {
  const routes = makeRoutes('public', ({ params, body }) => {
    const make = ANSWERS[params.id ?? '']
    return make === undefined ? { status: 200, json: { params, body: body ?? null } } : make()
  })
  const rate = makeRate({ perSecond: 1, burst: refuses ? 0 : 1000, nowMs: () => 0 })
  const edge = await startEdge(ring, { engine, routes, rate, held: new HeldBytes(10_000) })
  const answers = Object.entries(REQUESTS).map(async ([name, raw]) => {
    const came = await sendRaw(edge.port, Buffer.from(raw, 'latin1'), (text) => isWhole(text, raw.startsWith('HEAD ')))
    const answer = readAnswer(came.text)
    if (answer === null) return [name, came.isClosed ? 'the connection ends' : 'nothing']
    const kept = Object.entries(answer.headers).filter(
      ([one, value]) => !EXEMPT.includes(one) && (one !== 'connection' || value === 'close'),
    )
    const headers = Object.fromEntries(kept.map(([one, value]) => [one, one === 'request-id' ? 'an id' : value]))
    // The request alone determines that the connection ends, and only one of the libraries announces it.
    if (raw.includes('\r\nConnection: close')) delete headers.connection
    return [name, { ...answer, headers }]
  })
  const all = Object.fromEntries(await Promise.all(answers))
  await edge.close()
  return all
}

for (const refuses of [false, true])
  test(`engines: the same answers${refuses ? ' over the rate' : ''} [http.engine]`, async (t) => {
    const all = await Promise.all(ENGINES.map((engine) => answersOf(engine, refuses)))
    const known = knownAnswers(String(refuses), all[0])
    if (all.length === 1 && known === null) t.pass(`uWebSockets.js does not load: ${ENGINES[0]?.reason}`)
    for (const [at, answers] of all.entries())
      for (const name of Object.keys(REQUESTS)) {
        if (at > 0) t.same(answers[name], all[0]?.[name], name)
        if (known !== null) t.same(answers[name], known[name], `${ENGINES[at]?.name}, as elsewhere: ${name}`)
      }
  })

/** The answers of another run, by `name`; null if there are none. Then `answers` are kept for the next one. */
function knownAnswers(name: string, answers: unknown): Record<string, unknown> | null {
  const path = process.env.ANSWERS && `${process.env.ANSWERS}.${name}`
  if (!path) return null
  if (existsSync(path)) return JSON.parse(readFileSync(path, 'utf8'))
  writeFileSync(path, JSON.stringify(answers))
  return null
}
