/**
 * Tests of src/http/feed.ts: the clients of a feed, and the buffer of a client that reads slowly, over a real
 * listener.
 */

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

import { test } from 'tap'
import type { FeedSink } from '../../src/http/respond.ts'
import { until } from '../support/machine/until.ts'
import { call, makeKeyRing, makeRoutes, startEdge } from '../support/service/edge-listener.ts'
import { makeGate } from '../support/service/gate.ts'

const PATH = '/v1/server'
const WAIT_MS = 20_000
/** A letter that no header and no comment contains. */
const PIECE = 'z'.repeat(8 * 1024)
/** The buffer of a client in the service, and the maximum of the system in addition. */
const WAITING_BYTES_MAX = 1024 * 1024
const SYSTEM_BYTES_MAX = 64 * 1024 * 1024
const ring = makeKeyRing()
const HEAD = `GET ${PATH} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${ring.sk}\r\n\r\n`

/** A feed whose sink a test holds. */
function heard() {
  const seen = { sinks: [] as FeedSink[], ended: 0, skipped: 0 }
  const feed = {
    start(sink: FeedSink) {
      seen.sinks.push(sink)
      return () => {
        seen.ended += 1
      }
    },
    skip() {
      seen.skipped += 1
    },
  }
  return { feed, seen }
}

/** Opens a feed and reads nothing. */
async function openPaused(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  socket.pause()
  socket.write(HEAD)
  await once(socket, 'connect')
  return socket
}

test('feed: the head alone, or a client that is gone by then, starts none and gives its place back [event.feed]', async (t) => {
  const { feed, seen } = heard()
  const gone = makeGate()
  const routes = makeRoutes('public', async (request) => {
    gone.arrived(request)
    await gone.released
    return feed
  })
  const edge = await startEdge(ring, { routes })
  t.teardown(() => edge.close())
  const socket = await openPaused(edge.port)
  const request = await gone.request
  socket.destroy()
  await until(() => request.aborted, WAIT_MS)
  gone.release()
  await until(() => seen.skipped === 1, WAIT_MS)
  const came = await call(edge.port, { method: 'HEAD', path: PATH, token: ring.sk })
  t.match([came.status, came.headers['content-type']], [200, 'text/event-stream'])
  t.same([seen.sinks.length, seen.skipped, seen.ended], [0, 2, 0])
})

test('feed: what waited for a slow client comes as soon as it reads, without another event [event.feed]', async (t) => {
  const { feed, seen } = heard()
  const edge = await startEdge(ring, { routes: makeRoutes('public', () => feed) })
  t.teardown(() => edge.close())
  const socket = await openPaused(edge.port)
  await until(() => seen.sinks.length === 1, WAIT_MS)
  const [sink] = seen.sinks as [FeedSink]
  // As much as the system takes, found by a client that is let go; then a little less than that.
  let most = 0
  for (; seen.ended === 0 && most < SYSTEM_BYTES_MAX; most += PIECE.length) sink.send(PIECE)
  t.equal(seen.ended, 1, 'who reads nothing is let go')
  socket.destroy()
  const slow = await openPaused(edge.port)
  t.teardown(() => slow.destroy())
  await until(() => seen.sinks.length === 2, WAIT_MS)
  let sent = 0
  for (; sent < most - WAITING_BYTES_MAX / 4; sent += PIECE.length) seen.sinks[1]?.send(PIECE)
  t.equal(seen.ended, 1, 'so much may wait')
  let got = 0
  slow.on('data', (bytes: Buffer) => {
    got += bytes.toString('latin1').replaceAll(/[^z]/g, '').length
  })
  slow.resume()
  await until(() => got >= sent, WAIT_MS)
  t.equal(got, sent, 'each byte once')
  seen.sinks[1]?.send('y')
  seen.sinks[1]?.end()
  t.equal(seen.ended, 2)
})

test('feed: an end hands over what waits still [event.feed]', async (t) => {
  const { feed, seen } = heard()
  const edge = await startEdge(ring, { routes: makeRoutes('public', () => feed) })
  t.teardown(() => edge.close())
  const socket = await openPaused(edge.port)
  await until(() => seen.sinks.length === 1, WAIT_MS)
  const [sink] = seen.sinks as [FeedSink]
  let sent = 0
  for (; sent < 4.5 * 1024 * 1024; sent += PIECE.length) sink.send(PIECE)
  sink.end()
  sink.send('after the end')
  let text = ''
  socket.on('data', (bytes: Buffer) => {
    text += bytes.toString('latin1')
  })
  socket.resume()
  // RFC 9112 7.1: the last chunk, with nothing between it and the one before.
  await until(() => text.endsWith('z\r\n0\r\n\r\n'), WAIT_MS)
  t.equal(text.replaceAll(/[^z]/g, '').length, sent)
  t.notOk(text.includes('after the end'))
  t.notMatch(text.slice(text.indexOf('\r\n\r\n')), 'Connection', 'no header stands in the body')
  socket.destroy()
})
