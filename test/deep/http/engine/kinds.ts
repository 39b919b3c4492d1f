/**
 * The uses of a listener, on each engine that this Node.js loads: a send, ten megabytes, a feed, a download, slow
 * clients, an interrupted body, ten thousand requests over one connection. `versions.ts` runs it on every supported
 * Node.js.
 */

import { randomBytes } from 'node:crypto'
import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { test } from 'tap'
import type { Answer, FeedSink } from '../../../../src/http/respond.ts'
import { HeldBytes } from '../../../../src/process/held-bytes.ts'
import { until } from '../../../support/machine/until.ts'
import { call, makeKeyRing, makeRoutes, sendRaw, startEdge } from '../../../support/service/edge-listener.ts'
import { ENGINES } from '../../../support/service/engines.ts'

const ring = makeKeyRing()
const KEY = `Authorization: Bearer ${ring.sk}`
const MB = 1024 * 1024
const BODY = { from: 'a@example.com', to: ['b@example.com'], subject: 'S', text: 'T' }
const SEND = { method: 'POST', path: '/v1/email', token: ring.sk }
const READ = `GET /v1/server HTTP/1.1\r\nHost: a\r\n${KEY}\r\n\r\n`
const POST = `POST /v1/email HTTP/1.1\r\nHost: a\r\n${KEY}\r\nContent-Type: application/json\r\n`
const KEPT_REQUESTS = 10_000
const WAIT_MS = 30_000
/** A silent client is disconnected after 10 s. The timers of both engines are coarse, and the machine may be busy. */
const IDLE_MS_MIN = 9_000
const IDLE_MS_MAX = 30_000

for (const engine of ENGINES) {
  const start = (answer: () => Answer | Promise<Answer>, held = new HeldBytes()) =>
    startEdge(ring, { engine, held, routes: makeRoutes('public', answer) })

  test(`kinds: ${engine.name}: a send, and ten megabytes [http.engine]`, async (t) => {
    const edge = await start(() => ({ status: 200, json: { isTaken: true } }))
    t.teardown(() => edge.close())
    t.match(await call(edge.port, { ...SEND, body: BODY }), { status: 200, json: { isTaken: true } })
    const empty = JSON.stringify({ ...BODY, text: '' })
    const body = JSON.stringify({ ...BODY, text: 'x'.repeat(10 * MB - empty.length) })
    const headers = { 'Content-Type': 'application/json' }
    t.match(await call(edge.port, { ...SEND, headers, body }), { status: 200 })
    t.match(await call(edge.port, { ...SEND, headers, body: `${body} ` }), { status: 413 })
  })

  test(`kinds: ${engine.name}: a feed [http.engine]`, async (t) => {
    let sink: FeedSink | null = null
    let ended = 0
    const edge = await start(() => ({
      start(one: FeedSink) {
        sink = one
        return () => {
          ended += 1
        }
      },
    }))
    t.teardown(() => edge.close())
    const socket = connect(edge.port, '127.0.0.1')
    let text = ''
    socket.setEncoding('latin1').on('data', (piece: string) => (text += piece))
    socket.write(READ)
    await until(() => sink !== null, WAIT_MS)
    for (let number = 0; number < 1000; number += 1) (sink as unknown as FeedSink).send(`data: ${number}\n\n`)
    await until(() => text.includes('data: 999\n\n'), WAIT_MS)
    const numbers = [...text.matchAll(/data: (\d+)\n/g)].map(([, number]) => Number(number))
    t.same(
      numbers,
      Array.from({ length: 1000 }, (_, number) => number),
      'in order, once each',
    )
    socket.destroy()
    await until(() => ended === 1, WAIT_MS)
  })

  test(`kinds: ${engine.name}: a download [http.engine]`, async (t) => {
    const whole = randomBytes(8 * MB)
    const edge = await start(() => ({
      size: whole.length,
      contentType: 'message/rfc822',
      async *read(from: number, length: number) {
        for (let at = from; at < from + length; at += 65_536)
          yield whole.subarray(at, Math.min(at + 65_536, from + length))
      },
    }))
    t.teardown(() => edge.close())
    const came = await sendRaw(edge.port, READ, (text) => text.length > whole.length + 200)
    const body = came.text.slice(came.text.indexOf('\r\n\r\n') + 4)
    t.ok(Buffer.from(body, 'latin1').equals(whole))
    const part = await call(edge.port, { path: '/v1/server', token: ring.sk, headers: { Range: 'bytes=5-9' } })
    t.same([part.status, part.headers['content-length']], [206, '5'])
  })

  test(`kinds: ${engine.name}: clients that are slow [request.body.slow]`, async (t) => {
    const large = Buffer.alloc(64 * MB)
    const edge = await start(() => ({ status: 200, bytes: large }))
    t.teardown(() => edge.close())
    const length = `Content-Length: ${MB}\r\n\r\n`
    const cases: readonly (readonly [name: string, begins: string, goesOn: string])[] = [
      ['nothing', '', ''],
      ['half a head', 'GET / HTTP/1.1\r\nX-A: ', ''],
      ['a head, byte by byte', 'GET / HTTP/1.1\r\nX-A: ', 'x'],
      ['half a body', `${POST}${length}{`, ''],
      ['a body, byte by byte', `${POST}${length}{`, ' '],
    ]
    await Promise.all([
      ...cases.map(async ([name, begins, goesOn]) => {
        const ms = await cutAfter(edge.port, begins, goesOn)
        t.ok(ms >= IDLE_MS_MIN && ms <= IDLE_MS_MAX, `${name}: ${ms} ms`)
      }),
      readLate(edge.port).then((bytes) => t.ok(bytes < large.length, `an answer that is not read: ${bytes} bytes`)),
    ])
    t.same(edge.faults, [])
  })

  test(`kinds: ${engine.name}: a body that breaks off [request.abort] [request.body.held]`, async (t) => {
    let handled = 0
    const held = new HeldBytes(2 * MB)
    const edge = await start(() => {
      handled += 1
      return { status: 200, json: {} }
    }, held)
    t.teardown(() => edge.close())
    for (let round = 0; round < 5; round += 1) {
      const socket = connect(edge.port, '127.0.0.1')
      socket.on('error', () => undefined)
      socket.write(`${POST}Content-Length: ${2 * MB}\r\n\r\n${'x'.repeat(MB + MB / 2)}`)
      await until(
        async () => (await call(edge.port, { ...SEND, body: { ...BODY, text: 'x'.repeat(MB) } })).status === 503,
        WAIT_MS,
      )
      socket.destroy()
      await until(
        async () => (await call(edge.port, { ...SEND, body: { ...BODY, text: 'x'.repeat(MB) } })).status === 200,
        WAIT_MS,
      )
    }
    t.ok(handled >= 5)
    t.same(edge.faults, [])
  })

  test(`kinds: ${engine.name}: ${KEPT_REQUESTS} requests over one connection [http.engine]`, async (t) => {
    const edge = await start(() => ({ status: 200, json: {} }))
    t.teardown(() => edge.close())
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    t.teardown(() => agent.destroy())
    const ports = new Set<number | undefined>()
    let answered = 0
    const headers = { Authorization: `Bearer ${ring.sk}` }
    const one = () =>
      new Promise<void>((resolve, reject) => {
        const sent = request({ port: edge.port, host: '127.0.0.1', path: '/v1/server', agent, headers }, (came) => {
          ports.add(came.socket.localPort)
          answered += came.statusCode === 200 ? 1 : 0
          came.resume().on('end', resolve)
        })
        sent.on('error', reject).end()
      })
    for (let sent = 0; sent < KEPT_REQUESTS; sent += 1) await one()
    t.same([answered, ports.size], [KEPT_REQUESTS, 1])
  })
}

/** How long a connection lives, in ms, whose client sends `goesOn` each second. */
function cutAfter(port: number, begins: string, goesOn: string): Promise<number> {
  return new Promise((resolve) => {
    const startedAtMs = performance.now()
    const socket = connect(port, '127.0.0.1')
    const timer = setInterval(() => socket.write(goesOn), 1000)
    socket.on('error', () => undefined)
    socket.on('close', () => {
      clearInterval(timer)
      resolve(Math.round(performance.now() - startedAtMs))
    })
    socket.write(begins)
  })
}

/** The part of an answer that a client gets if it does not read at first. */
function readLate(port: number): Promise<number> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    let bytes = 0
    socket.on('error', () => undefined).on('close', () => resolve(bytes))
    socket.pause()
    socket.write(READ)
    setTimeout(() => socket.on('data', (piece: Buffer) => (bytes += piece.length)).resume(), IDLE_MS_MAX)
  })
}
