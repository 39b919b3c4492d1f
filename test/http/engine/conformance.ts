/**
 * Edge cases of HTTP/1.1 requests, on both engines: the 33 subjects of h1spec. An incomplete request gets no answer. A
 * broken one gets a 4xx or 505, except where uWebSockets.js waits until the connection has been silent.
 */

import { test } from 'tap'
import { makeKeyRing, makeRoutes, sendRaw, startEdge } from '../../support/service/edge-listener.ts'
import { ENGINES, isWhole, readAnswer } from '../../support/service/engines.ts'

const ring = makeKeyRing()
const PATH = '/v1/server'
const KEY = `Authorization: Bearer ${ring.sk}`
const QUIET_MS = 700

const LINE = `GET ${PATH} HTTP/1.1\r\n`
const WHOLE = `${LINE}Host: a\r\n${KEY}\r\n\r\n`
const POST = `POST /v1/email HTTP/1.1\r\nHost: a\r\n${KEY}\r\nContent-Type: application/json\r\n`
const JSON_BODY = JSON.stringify({ from: 'a@example.com', to: ['b@example.com'], subject: 'S', text: 'T' })
const LENGTH = `Content-Length: ${JSON_BODY.length}`

/** The positions at which a request is cut. */
const CUTS: Readonly<Record<string, string>> = {
  'in the method': 'G',
  'after the method': 'GET ',
  'in the path': 'GET /v1',
  'after the path': `GET ${PATH} `,
  'in the version': `GET ${PATH} HTTP`,
  'after the version': `GET ${PATH} HTTP/1.1`,
  'in the end of the first line': `GET ${PATH} HTTP/1.1\r`,
  'after the first line': LINE,
  'in the name of a header': `${LINE}Hos`,
  'after the name of a header': `${LINE}Host:`,
  'before the value of a header': `${LINE}Host: `,
  'after the value of a header': `${LINE}Host: a`,
  'in the end of a header': `${LINE}Host: a\r`,
  'after a header': `${LINE}Host: a\r\n`,
  'in the last end': `${LINE}Host: a\r\n\r`,
}

/** The request, the status with either engine; null: no answer while the connection is open. */
const REQUESTS: Readonly<Record<string, readonly [request: string, uws: number | null, node: number | null]>> = {
  'a GET': [WHOLE, 200, 200],
  'a GET with odd spelling': [`${LINE}hoSt:\ta\r\nempty:\r\n${KEY}\r\n\r\n`, 200, 200],
  'a GET that expects to continue': [`${LINE}Host: a\r\n${KEY}\r\nExpect: 100-continue\r\n\r\n`, 200, 200],
  'a header without a value': [`${LINE}Host: a\r\n${KEY}\r\nX-A: \r\n\r\n`, 200, 200],
  'a POST': [`${POST}${LENGTH}\r\n\r\n${JSON_BODY}`, 200, 200],
  'a POST in chunks': [
    `${POST}Transfer-Encoding: chunked\r\n\r\n${JSON_BODY.length.toString(16)}\r\n${JSON_BODY}\r\n0\r\n\r\n`,
    200,
    200,
  ],
  'no version': [`GET ${PATH} \r\n\r\n`, 505, 400],
  'another version': [`GET ${PATH} HTTP/9.9\r\nHost: a\r\n${KEY}\r\n\r\n`, 505, 400],
  'words before the method': [`Extra line${WHOLE}`, 505, 400],
  'no host': [`${LINE}${KEY}\r\n\r\n`, 400, 400],
  'two hosts': [`${LINE}Host: a\r\nHost: b\r\n${KEY}\r\n\r\n`, 400, 400],
  'brackets in the name of a header': [`${LINE}Host: a\r\n${KEY}\r\nX-A[]: 1\r\n\r\n`, null, 400],
  'a control character in a header': [`${LINE}Host: a\r\n${KEY}\r\nX-A: a\x07\r\n\r\n`, null, 400],
  'a bare CR before a header': [`${LINE}Host: a\r\n${KEY}\r\n\rX-A: 1\r\n\r\n`, null, 400],
  'a negative length': [`${POST}Content-Length: -1234\r\n\r\n`, 400, 400],
  'a negative length past 64 bits': [`${POST}Content-Length: -123456789123456789123456789\r\n\r\n`, 400, 400],
  'a length that is no number': [`${POST}Content-Length: abc\r\n\r\n`, 400, 400],
  'a length and chunks': [`${POST}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n`, 400, 400],
}

for (const engine of ENGINES)
  test(`conformance: ${engine.name} [http.engine]`, async (t) => {
    const edge = await startEdge(ring, { engine, routes: makeRoutes('public', () => ({ status: 200, json: {} })) })
    t.teardown(() => edge.close())
    const ask = (raw: string, waitMs?: number) => sendRaw(edge.port, Buffer.from(raw, 'latin1'), isWhole, waitMs)
    const cuts = Object.entries(CUTS).map(async ([name, raw]) => {
      const came = await ask(raw, QUIET_MS)
      // uWebSockets.js takes a line without its version for one of another version.
      const isRefusedEarly = engine.name === 'uws' && came.text.startsWith('HTTP/1.1 505 ')
      t.ok((came.text === '' && !came.isClosed) || isRefusedEarly, `cut ${name}`)
      t.ok(!isRefusedEarly || /version|path|method|first line/.test(name), `cut ${name}: ${came.text}`)
    })
    const whole = Object.entries(REQUESTS).map(async ([name, [raw, uws, node]]) => {
      const status = engine.name === 'uws' ? uws : node
      const came = await ask(raw, status === null ? QUIET_MS : undefined)
      t.equal(readAnswer(came.text)?.status ?? null, status, name)
    })
    await Promise.all([...cuts, ...whole])
    t.equal(cuts.length + whole.length, 33)
    t.same(edge.faults, [])
  })
