/** connect - a connection, or the text of the reason why there is none. */

import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import t from 'tap'
import { connect } from '../../../src/outbound/thread/connect.ts'

const NEVER = new AbortController().signal

t.test('connect: taken, refused, cut off', async (t) => {
  const listener = createServer()
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  const { port } = listener.address() as AddressInfo
  const input = { host: 'mx.test', address: '127.0.0.1', port, timeoutMs: 5000 }
  const connected = await connect(input, NEVER)
  t.equal(connected.ok && connected.socket.remotePort, port)
  if (connected.ok) connected.socket.destroy()
  t.match(await connect(input, AbortSignal.abort()), {
    ok: false,
    text: `connect ECANCELED mx.test[127.0.0.1]:${port}`,
  })
  await new Promise((resolve) => listener.close(resolve))
  t.match(await connect(input, NEVER), {
    ok: false,
    ms: Number,
    text: `connect ECONNREFUSED mx.test[127.0.0.1]:${port}`,
  })
})

t.test('connect: a limit of nothing is over before any connection', async (t) => {
  const listener = createServer()
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  t.teardown(() => listener.close())
  const { port } = listener.address() as AddressInfo
  const late = connect({ host: 'mx.test', address: '127.0.0.1', port, timeoutMs: 1 }, NEVER)
  // The event loop is blocked past the limit, so the timer runs before the socket is read.
  const untilMs = performance.now() + 20
  while (performance.now() < untilMs);
  t.match(await late, { ok: false, text: `connect ETIMEDOUT mx.test[127.0.0.1]:${port}` })
})
