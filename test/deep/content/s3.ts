/**
 * s3: against a real S3 server (Swift), and with faults between: away, slow, a wrong secret, half uploads, 5xx, a copy
 * that fails.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { makeContents } from '../../../src/content/contents.ts'
import { FRAME_BYTES } from '../../../src/content/frame.ts'
import { makeS3Home } from '../../../src/content/s3.ts'
import { S3_TIMES, type S3Place } from '../../../src/content/s3-wire.ts'
import { SWIFT_SKIP, startSwift } from '../../support/peers/swift.ts'

const MB = 1024 * 1024
const FAST = { ...S3_TIMES, answerMs: 1_000, pieceMs: 1_000, pauseMs: 5 }
const mailKey = randomBytes(32)
const folder = mkdtempSync(join(tmpdir(), 'sendwright-s3-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))

function open(t: Test, place: S3Place, times = FAST, listKeys = 1000) {
  const home = makeS3Home(place, { folder, worker: () => 'me', times, listKeys })
  const reasons: string[] = []
  const warn = (facts: object) => void reasons.push((facts as { reason: string }).reason)
  const contents = makeContents({ home, room: null, told: () => undefined, warn })
  t.teardown(() => contents.close())
  return { home, contents, reasons }
}

type Store = ReturnType<typeof open>

function put({ contents }: Store, names: readonly string[], bytes: Buffer) {
  return contents.put({ names, mailKey, kind: 'mail', source: [bytes], bytesMax: bytes.length })
}

function read({ contents }: Store, name: string) {
  return contents.read({ name, mailKey, kind: 'mail' })
}

async function listed({ home }: Store, prefix: string): Promise<string[]> {
  const names: string[] = []
  for await (const { name, writtenAtMs } of home.list(prefix)) {
    if (!(writtenAtMs > Date.UTC(2020))) throw new Error(`No time: ${name}`)
    names.push(name)
  }
  return names
}

function left(): string[] {
  return readdirSync(join(folder, 'tmp'))
}

t.test('s3: a real server', { skip: SWIFT_SKIP }, async (t) => {
  const swift = await startSwift()
  t.teardown(() => swift.stop())
  await swift.makeBucket('mail')
  const place = { ...swift, bucket: 'mail', prefix: 'of/us' }
  const store = open(t, place, { ...S3_TIMES, pauseMs: 5 })

  await t.test('s3: written, read whole and by ranges, copied, listed, removed', async (t) => {
    for (const bytes of [Buffer.alloc(0), randomBytes(200_000), randomBytes(35 * MB)]) {
      const names = ['007/in/20261122/a', '007/in/20261123/b']
      t.same(await put(store, names, bytes), { ok: true })
      for (const name of names) {
        const found = await read(store, name)
        t.ok(Buffer.isBuffer(found) && found.equals(bytes), `${bytes.length} bytes`)
      }
      if (bytes.length > FRAME_BYTES) {
        const span = { from: FRAME_BYTES - 3, length: 9 }
        const part = await store.contents.read({ name: '007/in/20261122/a', mailKey, kind: 'mail', span })
        t.ok(Buffer.isBuffer(part) && part.equals(bytes.subarray(span.from, span.from + 9)))
      }
      t.ok(await store.contents.remove(['007/in/20261122/a']))
      t.equal(await read(store, '007/in/20261122/a'), 'gone')
      t.same(await store.home.days('007/in'), ['20261123'])
      t.same(await listed(store, '007/in/20261123'), ['007/in/20261123/b'])
      t.equal(await store.home.removeDay('007/in/20261123'), 1)
      t.same(await store.home.days('007/in'), [])
    }
    t.same(left(), [], 'nothing unfinished is left')
  })

  await t.test('s3: more objects than a page of the list', async (t) => {
    const paged = open(t, place, FAST, 3)
    const names = Array.from({ length: 11 }, (_, n) => `008/in/202611${n + 10}/${n}`)
    for (const name of names) await put(paged, [name, `008/in/20261122/${name.slice(-1)}`], Buffer.from('x'))
    t.same(
      await listed(paged, '008/in/20261122'),
      [...Array(10).keys()].map((n) => `008/in/20261122/${n}`),
    )
    t.same(await paged.home.days('008/in'), [...Array.from({ length: 11 }, (_, n) => `202611${n + 10}`), '20261122'])
    t.equal(await paged.home.removeDay('008/in/20261122'), 10)
    for (const name of names) await paged.contents.remove([name])
    t.same(await paged.home.days('008/in'), [])
  })

  await t.test('s3: an identity exists for the second caller', async (t) => {
    t.equal(await store.home.readId(), null)
    await store.home.writeId('an-id')
    t.equal(await store.home.readId(), 'an-id')
    t.equal(await open(t, { ...place, prefix: '' }).home.readId(), null, 'each prefix has its own')
  })

  await t.test('s3: a wrong secret, an unknown key, another bucket', async (t) => {
    const cases: [Partial<S3Place>, RegExp][] = [
      [{ secretAccessKey: 'wrong' }, /^S3 answered 403 SignatureDoesNotMatch$/],
      [{ accessKeyId: 'nobody' }, /^S3 answered 403/],
      [{ bucket: 'other' }, /^S3 answered 404 NoSuchBucket$/],
    ]
    for (const [changes, reason] of cases) {
      const wrong = open(t, { ...place, ...changes })
      t.match(await put(wrong, ['007/in/20261122/a'], Buffer.from('x')), { ok: false, kind: 'away', reason })
      await t.rejects(wrong.home.readId(), /^S3 (answered|has no such)/)
    }
  })

  await t.test('s3: an interrupted upload is repeated, and an incomplete one is not an object', async (t) => {
    const bytes = randomBytes(5 * MB)
    const cutter = await startCutter(t, new URL(swift.endpoint).port)
    const through = open(t, { ...place, endpoint: cutter.endpoint })
    cutter.cutAfter = 2 * MB
    cutter.cuts = 2
    t.same(await put(through, ['009/in/20261122/a'], bytes), { ok: true }, 'the third try is whole')
    t.equal(cutter.cuts, 0)
    const found = await read(store, '009/in/20261122/a')
    t.ok(Buffer.isBuffer(found) && found.equals(bytes))
    cutter.cuts = 99
    t.match(await put(through, ['009/in/20261122/b'], bytes), { ok: false, kind: 'away' })
    t.equal(await read(store, '009/in/20261122/b'), 'gone')
    t.same(left(), [])
  })
})

t.test('s3: away, and away for the sweep too', async (t) => {
  const store = open(t, placeAt('http://127.0.0.1:1'))
  t.match(await put(store, ['007/in/20261122/a'], Buffer.from('x')), {
    ok: false,
    kind: 'away',
    reason: /ECONNREFUSED/,
  })
  t.equal(await read(store, '007/in/20261122/a'), 'away')
  t.equal(await store.contents.remove(['007/in/20261122/a']), false)
  await t.rejects(store.home.days('007/in'), /ECONNREFUSED/)
})

t.test('s3: one that does not answer is waited for three times, not for ever', async (t) => {
  const server = await startFake(t, () => undefined)
  const store = open(t, placeAt(server.endpoint), { ...FAST, answerMs: 200 })
  const startedAtMs = performance.now()
  t.match(await put(store, ['007/in/20261122/a'], Buffer.from('x')), {
    ok: false,
    kind: 'away',
    reason: /did not answer/,
  })
  t.ok(performance.now() - startedAtMs < 20_000)
  t.same(server.asked.filter((asked) => asked.startsWith('PUT')).length, 3)
})

t.test('s3: an answer that stops in the middle is an error, and no other bytes', async (t) => {
  const server = await startFake(t, (_, answer) => {
    answer.writeHead(206, { 'content-range': 'bytes 0-19/100056', 'content-length': '20' })
    answer.write('SWC1')
  })
  const store = open(t, placeAt(server.endpoint), { ...FAST, pieceMs: 200 })
  t.equal(await read(store, '007/in/20261122/a'), 'away')
})

t.test('s3: 503 and 500 are tried again, 403 and 501 are not or end', async (t) => {
  let statuses: number[] = []
  const server = await startFake(t, (_, answer) => {
    answer.writeHead(statuses.shift() ?? 200).end('<Error><Code>SlowDown</Code></Error>')
  })
  const store = open(t, placeAt(server.endpoint))
  const cases: [number[], object, number][] = [
    [[503], { ok: true }, 2],
    [[500, 429], { ok: true }, 3],
    [[503, 503, 503], { ok: false, kind: 'away', reason: 'S3 answered 503 SlowDown' }, 3],
    [[403], { ok: false, kind: 'away', reason: 'S3 answered 403 SlowDown' }, 1],
  ]
  for (const [answers, result, tries] of cases) {
    statuses = answers
    server.asked.length = 0
    t.match(await put(store, ['007/in/20261122/a'], Buffer.from('x')), result, String(answers))
    t.equal(server.asked.filter((asked) => asked.startsWith('PUT')).length, tries)
  }
})

t.test('s3: a copy that fails removes what was written', async (t) => {
  const server = await startFake(t, (request, answer) => {
    answer
      .writeHead(200)
      .end(request.headers['x-amz-copy-source'] === undefined ? '' : '<Error><Code>InternalError</Code></Error>')
  })
  const store = open(t, placeAt(server.endpoint))
  t.match(await put(store, ['007/in/20261122/a', '007/in/20261122/b'], Buffer.from('x')), { ok: false, kind: 'away' })
  t.same(server.asked.filter((asked) => asked.startsWith('DELETE')).sort(), [
    'DELETE /mail/007/in/20261122/a',
    'DELETE /mail/007/in/20261122/b',
  ])
})

function placeAt(endpoint: string): S3Place {
  return { endpoint, region: 'us-east-1', bucket: 'mail', prefix: '', accessKeyId: 'a', secretAccessKey: 'b' }
}

/** A server whose answers the test sets. */
async function startFake(t: Test, answer: (request: IncomingMessage, answer: ServerResponse) => void) {
  const asked: string[] = []
  const server = createHttpServer((request, response) => {
    asked.push(`${request.method} ${request.url}`)
    request.resume()
    answer(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { endpoint: `http://127.0.0.1:${(server.address() as { port: number }).port}`, asked }
}

/** Stands before a server and cuts a connection once so many bytes have gone to it. */
async function startCutter(t: Test, port: string) {
  const cutter = { endpoint: '', cutAfter: Number.POSITIVE_INFINITY, cuts: 0 }
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const target = connect({ port: Number(port), host: '127.0.0.1' })
    let sent = 0
    for (const one of [client, target]) sockets.add(one.on('error', () => undefined))
    target.pipe(client)
    client.on('end', () => target.end())
    client.on('data', (piece: Buffer) => {
      sent += piece.length
      if (sent <= cutter.cutAfter || cutter.cuts === 0) target.write(piece)
      else {
        cutter.cuts -= 1
        sent = Number.NEGATIVE_INFINITY
        client.destroy()
        target.destroy()
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  cutter.endpoint = `http://127.0.0.1:${(server.address() as { port: number }).port}`
  return cutter
}
