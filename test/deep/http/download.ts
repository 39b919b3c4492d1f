/** Streamed answers: complete, by ranges, to clients that are slow, stop or leave; and their cost together. */

import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { makeContents } from '../../../src/content/contents.ts'
import { makeFileHome } from '../../../src/content/files.ts'
import { startDownload } from '../../../src/http/download.ts'
import type { ResponseSocket } from '../../../src/http/engine/engine.ts'
import { parseRange } from '../../../src/http/range.ts'
import type { Download } from '../../../src/http/respond.ts'
import { spawnNode } from '../../support/machine/node.ts'
import { until } from '../../support/machine/until.ts'
import { call, makeKeyRing, makeRoutes, sendRaw, startEdge } from '../../support/service/edge-listener.ts'

const MB = 1024 * 1024
const PATH = '/v1/server'
const ring = makeKeyRing()
const bytes = randomBytes(3 * MB)

/** Bytes of a buffer in pieces, counting who has begun and ended to read them. */
function served(whole: Buffer, piece = 64 * 1024) {
  const seen = { begun: 0, ended: 0 }
  const download: Download = {
    size: whole.length,
    contentType: 'application/octet-stream',
    headers: { 'Content-Disposition': 'attachment' },
    async *read(from, length) {
      seen.begun += 1
      try {
        for (let at = from; at < from + length; at += piece)
          yield whole.subarray(at, Math.min(at + piece, from + length))
      } finally {
        seen.ended += 1
      }
    },
  }
  return { download, seen }
}

async function serve(download: Download) {
  return startEdge(ring, { routes: makeRoutes('public', () => download) })
}

function fetched(port: number, headers: Record<string, string> = {}, method = 'GET') {
  return new Promise<{ status: number; headers: Record<string, unknown>; body: Buffer }>((resolve, reject) => {
    const sent = request({
      host: '127.0.0.1',
      port,
      method,
      path: PATH,
      agent: false,
      headers: { Authorization: `Bearer ${ring.sk}`, ...headers },
    })
    sent.on('error', reject)
    sent.on('response', (came) => {
      const pieces: Buffer[] = []
      came.on('data', (piece: Buffer) => pieces.push(piece))
      came.on('error', reject)
      came.on('end', () =>
        resolve({ status: came.statusCode ?? 0, headers: came.headers, body: Buffer.concat(pieces) }),
      )
    })
    sent.end()
  })
}

test('download: a range of bytes, as RFC 9110 has it', async (t) => {
  const cases: [string, number, ReturnType<typeof parseRange>][] = [
    ['bytes=0-0', 10, { from: 0, length: 1 }],
    ['bytes=2-', 10, { from: 2, length: 8 }],
    ['bytes=2-99', 10, { from: 2, length: 8 }],
    ['bytes=-3', 10, { from: 7, length: 3 }],
    ['bytes=-99', 10, { from: 0, length: 10 }],
    ['Bytes= 1 - 2', 10, { from: 1, length: 2 }],
    ['bytes=10-', 10, 'none'],
    ['bytes=-0', 10, 'none'],
    ['bytes=0-', 0, 'none'],
    ['bytes=5-4', 10, null],
    ['bytes=0-1,3-4', 10, null],
    ['lines=0-1', 10, null],
    ['bytes=-', 10, null],
    ['bytes=a-b', 10, null],
    ['bytes=1111111111111111-', 10, null],
    [`bytes=0-${' '.repeat(56)}`, 10, { from: 0, length: 10 }],
    [`bytes=0-${' '.repeat(57)}`, 10, null],
  ]
  for (const [header, size, range] of cases) t.same(parseRange(header, size), range, header)
})

test('download: whole, in part, its head alone, and what lies outside', async (t) => {
  const edge = await serve(served(bytes).download)
  t.teardown(() => edge.close())
  const whole = await fetched(edge.port)
  t.equal(whole.status, 200)
  t.match(whole.headers, {
    'content-length': String(bytes.length),
    'content-type': 'application/octet-stream',
    'accept-ranges': 'bytes',
    'content-disposition': 'attachment',
  })
  t.ok(whole.headers['request-id'])
  t.ok(whole.body.equals(bytes))
  const part = await fetched(edge.port, { Range: 'bytes=1000000-2999999' })
  t.equal(part.status, 206)
  t.equal(part.headers['content-range'], `bytes 1000000-2999999/${bytes.length}`)
  t.ok(part.body.equals(bytes.subarray(1_000_000, 3_000_000)))
  const outside = await fetched(edge.port, { Range: `bytes=${bytes.length}-` })
  t.equal(outside.status, 416)
  t.equal(outside.headers['content-range'], `bytes */${bytes.length}`)
  t.equal(outside.body.length, 0)
  const changed = await fetched(edge.port, { Range: 'bytes=0-9', 'If-Range': '"v1"' })
  t.equal(changed.status, 200, 'a range of a version that nobody told is none')
  const head = await fetched(edge.port, {}, 'HEAD')
  t.equal(head.headers['content-length'], String(bytes.length))
  t.equal(head.body.length, 0)
})

test('download: an empty one, and what follows on the same connection', async (t) => {
  const edge = await serve(served(Buffer.alloc(0)).download)
  t.teardown(() => edge.close())
  const line = `GET ${PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${ring.sk}\r\n\r\n`
  const twice = await sendRaw(edge.port, line + line, (text) => text.split('HTTP/1.1 200').length === 3)
  t.equal(twice.text.split('HTTP/1.1 200').length, 3)
})

test('download: a client that leaves ends the reading, and is not written to', async (t) => {
  const { download, seen } = served(randomBytes(20 * MB))
  const edge = await serve(download)
  t.teardown(() => edge.close())
  const socket = await open(edge.port)
  await once(socket, 'data')
  socket.destroy()
  await until(() => seen.ended === 1, 10_000)
  t.same(edge.faults, [])
  t.equal((await call(edge.port, { path: PATH, token: ring.sk, headers: { Range: 'bytes=0-9' } })).status, 206)
})

test('download: a source that fails cuts the answer, and the log says why', async (t) => {
  const download: Download = {
    ...served(bytes).download,
    async *read() {
      yield bytes.subarray(0, 1000)
      throw new Error('Frame 1 is not what was written')
    },
  }
  const edge = await serve(download)
  t.teardown(() => edge.close())
  await t.rejects(fetched(edge.port))
  t.match(edge.faults, [{ fault: /Frame 1 is not what was written/ }])
  const short = await serve({ ...download, async *read() {} })
  t.teardown(() => short.close())
  await t.rejects(fetched(short.port), 'one that ends early too')
})

test('download: a client that takes nothing is let go', async (t) => {
  let isClosed = false
  let taken = 0
  const wire = {
    cork: (write: () => void) => write(),
    begin: () => undefined,
    onWritable: () => undefined,
    getWriteOffset: () => taken,
    tryEnd: () => {
      taken = 100
      return [false, false]
    },
    close() {
      isClosed = true
    },
  } as unknown as ResponseSocket
  const { download, seen } = served(bytes)
  const done = new Promise((resolve) => {
    const options = { download, requestId: 'x', range: '', isHead: false, done: resolve, stalledMsMax: 50 }
    startDownload(wire, { isClosing: false }, options)
  })
  t.equal(await done, undefined)
  t.ok(isClosed)
  t.equal(seen.ended, 1)
})

test('download: a listener that closes sends to its end what it has begun', async (t) => {
  const edge = await serve(served(randomBytes(20 * MB)).download)
  const socket = await open(edge.port)
  let got = 0
  socket.on('data', (piece: Buffer) => {
    got += piece.length
  })
  await until(() => got > 0, 10_000)
  await edge.close()
  await until(() => got > 20 * MB, 10_000)
  t.pass('whole')
})

test('download: 35 MB of the content store to 50 slow clients take less than 100 MB', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'sendwright-download-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  const told = () => undefined
  const contents = makeContents({ home: makeFileHome(dir, { worker: () => 'w' }), room: null, told, warn: told })
  const size = 35 * MB
  const mailKey = randomBytes(32)
  const name = '000/in/20261122/large'
  const piece = randomBytes(MB)
  const source = Array.from({ length: 35 }, () => piece)
  t.same(await contents.put({ names: [name], mailKey, kind: 'mail', source, bytesMax: size }), { ok: true })
  const download: Download = {
    size,
    contentType: 'message/rfc822',
    async *read(from, length) {
      const found = await contents.get({ name, mailKey, kind: 'mail', span: { from, length } })
      if (found.kind === 'there') yield* found.pieces
    },
  }
  const edge = await serve(download)
  t.teardown(() => edge.close())
  global.gc?.()
  const before = process.memoryUsage().rss
  let peak = before
  const watch = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage().rss)
  }, 20)
  const sizes = await takenByOthers(edge.port, 50)
  clearInterval(watch)
  t.ok(
    sizes.every((got) => got > size && got < size + 2000),
    'each got all of it',
  )
  const grown = (peak - before) / MB
  t.comment(`${grown.toFixed(0)} MB`)
  t.ok(grown < 100, `${grown} MB`)
})

async function open(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1' })
  await once(socket, 'connect')
  socket.write(`GET ${PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${ring.sk}\r\n\r\n`)
  return socket
}

/** Clients in a separate process, so that only the service's memory is measured. Each pauses after a megabyte. */
async function takenByOthers(port: number, clients: number): Promise<number[]> {
  const script = `
    const { connect } = require('node:net')
    const take = () => new Promise((resolve) => {
      const socket = connect({ port: ${port}, host: '127.0.0.1' })
      socket.write(${JSON.stringify(`GET ${PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${ring.sk}\r\n\r\n`)})
      let got = 0
      let since = 0
      socket.on('data', (piece) => {
        got += piece.length
        since += piece.length
        if (got > ${35 * MB}) { socket.destroy(); resolve(got) }
        else if (since >= ${MB}) { since = 0; socket.pause(); setTimeout(() => socket.resume(), 40) }
      })
      socket.on('close', () => resolve(got))
    })
    Promise.all(Array.from({ length: ${clients} }, take)).then((all) => console.log(JSON.stringify(all)))`
  const child = spawnNode(['-e', script])
  let said = ''
  child.stdout.on('data', (piece: Buffer) => (said += piece))
  await once(child, 'exit')
  return JSON.parse(said) as number[]
}
