/**
 * Tests of src/http/pieces.ts: answers of unknown length over real listeners of both engines, to clients that read,
 * read slowly, stop or leave.
 */

import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { test } from 'tap'
import type { ResponseSocket } from '../../src/http/engine/engine.ts'
import { startPieces } from '../../src/http/pieces.ts'
import type { Pieces } from '../../src/http/respond.ts'
import { until } from '../support/machine/until.ts'
import { makeKeyRing, makeRoutes, sendRaw, startEdge } from '../support/service/edge-listener.ts'
import { ENGINES, isWhole, readAnswer } from '../support/service/engines.ts'

const PATH = '/v1/server'
const WAIT_MS = 20_000
const MB = 1024 * 1024
const ring = makeKeyRing()
const GET = `GET ${PATH} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${ring.sk}\r\n\r\n`
const NEXT = GET.replace(PATH, '/v1/openapi.json')

interface Seen {
  made: number
  closed: number
  ends: boolean[]
}

/** An answer of so many pieces; the number in each differs. */
function answered(count: number, { chars = 64 * 1024, msMax = 60_000, fails = false } = {}) {
  const seen: Seen = { made: 0, closed: 0, ends: [] }
  const answer: Pieces = {
    contentType: 'text/csv; charset=utf-8',
    headers: { 'X-A': 'b' },
    msMax,
    async *pieces() {
      try {
        for (let number = 0; number < count; number += 1) {
          seen.made += 1
          yield pieceOf(number, chars)
        }
        if (fails) throw new Error('The next page cannot be read')
      } finally {
        seen.closed += 1
      }
    },
    end: (isWhole) => seen.ends.push(isWhole),
  }
  return { answer, seen }
}

function pieceOf(number: number, chars: number): string {
  return `${number} é `.padEnd(chars, 'z')
}

function hashOf(count: number, chars: number): string {
  const hash = createHash('sha256')
  for (let number = 0; number < count; number += 1) hash.update(pieceOf(number, chars))
  return hash.digest('hex')
}

function fetched(port: number) {
  return new Promise<{ status: number; type: string; hash: string }>((resolve, reject) => {
    const headers = { Authorization: `Bearer ${ring.sk}` }
    const sent = request({ host: '127.0.0.1', port, path: PATH, agent: false, headers }, (came) => {
      const hash = createHash('sha256')
      came.on('data', (piece: Buffer) => hash.update(piece))
      came.on('error', reject)
      came.on('end', () => {
        const type = String(came.headers['content-type'])
        resolve({ status: came.statusCode ?? 0, type, hash: hash.digest('hex') })
      })
    })
    sent.on('error', reject)
    sent.end()
  })
}

async function opened(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write(GET)
  await once(socket, 'connect')
  return socket
}

for (const engine of ENGINES) {
  const start = (answer: Pieces) => startEdge(ring, { engine, routes: makeRoutes('public', () => answer) })

  test(`pieces: ${engine.name}: whole and in order, and the connection is used again [export.csv]`, async (t) => {
    const { answer, seen } = answered(200)
    const edge = await start(answer)
    t.teardown(() => edge.close())
    t.same(await fetched(edge.port), { status: 200, type: answer.contentType, hash: hashOf(200, 64 * 1024) })
    t.same(seen, { made: 200, closed: 1, ends: [true] })
    const small = answered(3, { chars: 10 })
    const other = await start(small.answer)
    t.teardown(() => other.close())
    const twice = await sendRaw(other.port, GET, (text) => isWhole(text))
    t.match(readAnswer(twice.text), { status: 200, headers: { 'x-a': 'b', 'transfer-encoding': 'chunked' } })
    t.equal(
      Buffer.from(readAnswer(twice.text)?.body ?? '', 'latin1').toString(),
      [0, 1, 2].map((n) => pieceOf(n, 10)).join(''),
    )
    const empty = await start(answered(0).answer)
    t.teardown(() => empty.close())
    t.match(readAnswer((await sendRaw(empty.port, GET, (text) => isWhole(text))).text), { status: 200, body: '' })
  })

  test(`pieces: ${engine.name}: another request follows on the connection [export.csv]`, async (t) => {
    const { answer } = answered(2, { chars: 10 })
    const edge = await start(answer)
    t.teardown(() => edge.close())
    const socket = await opened(edge.port)
    let text = ''
    socket.setEncoding('latin1').on('data', (piece: string) => (text += piece))
    await until(() => isWhole(text), WAIT_MS)
    text = ''
    socket.write(NEXT)
    await until(() => text.startsWith('HTTP/1.1 200'), WAIT_MS)
    socket.destroy()
  })

  test(`pieces: ${engine.name}: no more is made than a client takes [export.bounds]`, async (t) => {
    const { answer, seen } = answered(1_500)
    const edge = await start(answer)
    t.teardown(() => edge.close())
    const socket = await opened(edge.port)
    socket.pause()
    await until(() => seen.made > 1, WAIT_MS)
    let before = -1
    // The system takes some megabytes; from then on nothing is made.
    await until(async () => {
      const isStill = seen.made === before
      before = seen.made
      await new Promise((resolve) => setTimeout(resolve, 300))
      return isStill && seen.made === before
    }, WAIT_MS)
    t.ok(seen.made * 64 * 1024 < 48 * MB, `${seen.made} pieces`)
    let bytes = 0
    socket.on('data', (piece: Buffer) => (bytes += piece.length))
    socket.resume()
    await until(() => seen.ends.length === 1, WAIT_MS)
    t.same([seen.made, seen.ends], [1_500, [true]])
    await until(() => bytes > 1_500 * 64 * 1024, WAIT_MS)
    socket.destroy()
  })

  test(`pieces: ${engine.name}: a client that leaves ends the reading [export.bounds]`, async (t) => {
    const { answer, seen } = answered(100_000)
    const edge = await start(answer)
    t.teardown(() => edge.close())
    const socket = await opened(edge.port)
    await once(socket, 'data')
    socket.destroy()
    await until(() => seen.closed === 1 && seen.ends.length === 1, WAIT_MS)
    t.same([seen.ends, edge.faults], [[false], []])
  })

  test(`pieces: ${engine.name}: a source that fails cuts the answer, and the log has the reason`, async (t) => {
    const { answer, seen } = answered(3, { fails: true })
    const edge = await start(answer)
    t.teardown(() => edge.close())
    await t.rejects(fetched(edge.port), 'no last chunk')
    t.match(edge.faults, [{ fault: /The next page cannot be read/ }])
    t.same(seen.ends, [false])
  })

  test(`pieces: ${engine.name}: a client that reads on and on is let go at the end of its time [export.bounds]`, async (t) => {
    const { answer, seen } = answered(100_000, { msMax: 1_000 })
    const edge = await start(answer)
    t.teardown(() => edge.close())
    const socket = await opened(edge.port)
    const trickle = setInterval(() => socket.read(1), 20)
    t.teardown(() => clearInterval(trickle))
    socket.pause()
    await until(() => seen.ends.length === 1, WAIT_MS)
    t.same(seen.ends, [false])
  })

  test(`pieces: ${engine.name}: a listener that closes cuts it at once [export.bounds]`, async (t) => {
    const { answer, seen } = answered(100_000)
    const edge = await start(answer)
    const socket = await opened(edge.port)
    await once(socket, 'data')
    socket.resume()
    const closed = once(socket, 'close')
    const startedMs = performance.now()
    await edge.close()
    await closed
    t.same(seen.ends, [false])
    t.ok(performance.now() - startedMs < 4_500, 'not after the time of requests in hand')
  })
}

test('pieces: a client that takes nothing is let go [export.bounds]', async (t) => {
  let isClosed = false
  const wire = {
    cork: (write: () => void) => write(),
    begin: () => undefined,
    onWritable: () => undefined,
    write: () => false,
    close() {
      isClosed = true
    },
  } as unknown as ResponseSocket
  const { answer, seen } = answered(10)
  const feeds = new Set<() => void>()
  const fault = await new Promise((resolve) => {
    startPieces(wire, { feeds }, { answer, requestId: 'x', done: resolve, stalledMsMax: 50 })
    t.equal(feeds.size, 1)
  })
  t.same([fault, isClosed, seen.made, seen.closed, seen.ends, feeds.size], [undefined, true, 1, 1, [false], 0])
})
