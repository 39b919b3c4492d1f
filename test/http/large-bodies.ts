/**
 * Large bodies have their own room: two of the largest size are held at once, a third one gets a 503, and no other
 * request is refused because of them.
 */
import { connect, type Socket } from 'node:net'
import { test } from 'tap'
import { ROUTES } from '../../schemas/routes.ts'
import { HeldBytes } from '../../src/process/held-bytes.ts'
import { until } from '../support/machine/until.ts'
import { call, makeKeyRing, makeRoutes, startEdge } from '../support/service/edge-listener.ts'

const ring = makeKeyRing()
const BODY = { from: 'a@example.com', to: ['b@example.com'], subject: 'S', text: 'T' }
const BODY_BYTES_MAX = 100_000
const WAIT_MS = 30_000

/** The real routes, with another handler for the large one. */
function smallerRoutes(seen: () => void) {
  return makeRoutes('public', ({ body }) => {
    seen()
    return { status: 202, json: { isPieces: Array.isArray(body) } }
  }).map(({ route, handle }) => ({
    route: route.takesPieces ? { ...route, bodyBytesMax: BODY_BYTES_MAX } : route,
    handle,
  }))
}

/** A request whose body arrives except for its end. */
async function openLarge(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  const head = `POST /v1/broadcasts HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${ring.sk}\r\nContent-Type: application/json\r\n`
  const body = Buffer.alloc(BODY_BYTES_MAX - 1, ' ')
  await new Promise<void>((resolve) =>
    socket.write(Buffer.concat([Buffer.from(`${head}Content-Length: ${BODY_BYTES_MAX}\r\n\r\n`), body]), () =>
      resolve(),
    ),
  )
  return socket
}

test('large bodies: two at once, a third is 503, others are served [broadcast.body] [request.body.held]', async (t) => {
  t.ok(Object.values(ROUTES).some(({ takesPieces }) => takesPieces))
  let handled = 0
  const routes = smallerRoutes(() => {
    handled += 1
  })
  // The common bound would refuse the two: they do not count in it.
  const edge = await startEdge(ring, { routes, held: new HeldBytes(1_000) })
  t.teardown(() => edge.close())
  const large = { method: 'POST', path: '/v1/broadcasts', token: ring.sk, body: BODY }
  const open = [await openLarge(edge.port), await openLarge(edge.port)]
  t.teardown(() => {
    for (const socket of open) socket.destroy()
  })
  const refused = await until(async () => {
    const came = await call(edge.port, large)
    return came.status === 503 ? came : null
  }, WAIT_MS)
  t.same([refused.json.error, refused.headers['retry-after']], ['unavailable', '1'])
  const email = { method: 'POST', path: '/v1/email', token: ring.sk, body: BODY }
  t.equal((await call(edge.port, email)).status, 202, "others' mail is taken meanwhile")
  open[0]?.destroy()
  const taken = await until(async () => {
    const came = await call(edge.port, large)
    return came.status === 202 ? came : null
  }, WAIT_MS)
  t.equal(taken.status, 202, 'who goes away gives the room back')
  const before = handled
  open[1]?.write('}')
  await until(() => handled === before + 1, WAIT_MS)
  t.equal((await call(edge.port, large)).status, 202)
})
