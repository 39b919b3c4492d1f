/**
 * headers - what is given twice, or badly, is refused before anything is handled: raw requests over a real listener.
 */

import { test } from 'tap'
import { ENGINE, makeKeyRing, makeRoutes, sendRaw, startEdge } from '../support/service/edge-listener.ts'

const ring = makeKeyRing()
const KEY = `Authorization: Bearer ${ring.sk}`
const JSON_TYPE = 'Content-Type: application/json'
const BODY = JSON.stringify({ from: 'a@example.com', to: ['b@example.com'], subject: 'S', text: 'T' })
const LENGTH = `Content-Length: ${BODY.length}`
const CHUNKED = 'Transfer-Encoding: chunked'
const CHUNKS = `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n`

type Status = number | null

/**
 * Name, header lines in addition to `Host: a`, body, and the status; null: the connection ends without an answer.
 * Last, the status with `node:http`, whose parser refuses some requests itself.
 */
const CASES: readonly (readonly [
  name: string,
  lines: readonly string[],
  body: string,
  status: Status,
  node?: Status,
])[] = [
  ['all once', [KEY, JSON_TYPE, LENGTH], BODY, 200],
  ['in chunks', [KEY, JSON_TYPE, CHUNKED], `${CHUNKS}\r\n`, 200],
  ['two hosts', ['Host: b', KEY, JSON_TYPE, LENGTH], BODY, 400],
  ['the same host twice', ['hOST: a', KEY, JSON_TYPE, LENGTH], BODY, 400],
  ['two keys', [KEY, `Authorization: Bearer ${ring.unknown}`, JSON_TYPE, LENGTH], BODY, 400],
  ['two keys, the good one last', [`Authorization: Bearer ${ring.unknown}`, KEY, JSON_TYPE, LENGTH], BODY, 400],
  ['the same key twice', [KEY, KEY, JSON_TYPE, LENGTH], BODY, 400],
  ['an empty key and a key', ['Authorization:', KEY, JSON_TYPE, LENGTH], BODY, 400],
  ['a key of a proxy and ours', ['AUTHORIZATION: Basic YTpi', KEY, JSON_TYPE, LENGTH], BODY, 400],
  ['two media types', [KEY, JSON_TYPE, 'Content-Type: text/plain', LENGTH], BODY, 415],
  ['two media types, ours last', [KEY, 'Content-Type: text/plain', JSON_TYPE, LENGTH], BODY, 415],
  ['two encodings, none last', [KEY, JSON_TYPE, 'Content-Encoding: gzip', 'Content-Encoding:', LENGTH], BODY, 415],
  ['chunked twice', [KEY, JSON_TYPE, CHUNKED, CHUNKED], `${CHUNKS}\r\n`, null, 400],
  ['chunked twice in one line', [KEY, JSON_TYPE, 'Transfer-Encoding: chunked, chunked'], `${CHUNKS}\r\n`, null, 400],
  ['chunked and nothing', [KEY, JSON_TYPE, CHUNKED, 'Transfer-Encoding:'], `${CHUNKS}\r\n`, null],
  ['two lengths', [KEY, JSON_TYPE, LENGTH, LENGTH], BODY, null, 400],
  ['no length and a length', [KEY, JSON_TYPE, 'Content-Length:', LENGTH], BODY, null, 400],
  ['fields behind the body, announced', [KEY, JSON_TYPE, CHUNKED, 'Trailer: X-A'], `${CHUNKS}X-A: 1\r\n\r\n`, null],
  // Answered by the library itself.
  ['fields behind the body', [KEY, JSON_TYPE, CHUNKED], `${CHUNKS}X-A: 1\r\n\r\n`, 505, null],
  ['a length and chunks', [KEY, JSON_TYPE, LENGTH, CHUNKED], `${CHUNKS}\r\n`, 400],
]

for (const [name, lines, body, uws, node = uws] of CASES) {
  const status = ENGINE.name === 'uws' ? uws : node
  test(`headers: ${name} [request.framing, request.repeated]`, async (t) => {
    let handled = 0
    const routes = makeRoutes('public', async () => {
      handled += 1
      return { status: 200, json: {} }
    })
    const edge = await startEdge(ring, { routes })
    t.teardown(() => edge.close())
    const raw = `POST /v1/email HTTP/1.1\r\nHost: a\r\n${lines.join('\r\n')}\r\n\r\n${body}`
    const came = await sendRaw(edge.port, raw, (text) => status !== null && /\r\n\r\n.*[}>t]/.test(text))
    t.equal(/^HTTP\/1\.1 (\d+) /.exec(came.text)?.[1] ?? null, status === null ? null : String(status))
    if (status === null) t.ok(came.isClosed)
    t.equal(handled, status === 200 ? 1 : 0)
    t.same(edge.faults, [])
  })
}

test('headers: a head of 15 KiB is taken, one of 17 is 431 [request.head-bytes]', async (t) => {
  const edge = await startEdge(ring)
  t.teardown(() => edge.close())
  for (const [bytes, status] of [
    [15 * 1024, 200],
    [17 * 1024, 431],
  ] as const) {
    const raw = `GET /v1/server HTTP/1.1\r\nHost: a\r\n${KEY}\r\nX-Long: ${'x'.repeat(bytes)}\r\n\r\n`
    const came = await sendRaw(edge.port, raw, (text) => text.includes('\r\n\r\n'))
    t.match(came.text, new RegExp(`^HTTP/1\\.1 ${status} `), `${bytes} bytes`)
  }
})

test('headers: 98 headers are taken, 99 are 431 [request.head-bytes]', async (t) => {
  const edge = await startEdge(ring)
  t.teardown(() => edge.close())
  for (const [count, status] of [
    [98, 200],
    [99, 431],
  ] as const) {
    const more = Array.from({ length: count - 2 }, (_, index) => `X-${index}: 1\r\n`).join('')
    const raw = `GET /v1/server HTTP/1.1\r\nHost: a\r\n${KEY}\r\n${more}\r\n`
    const came = await sendRaw(edge.port, raw, (text) => text.includes('\r\n\r\n'))
    t.match(came.text, new RegExp(`^HTTP/1\\.1 ${status} `), `${count} headers`)
  }
})
