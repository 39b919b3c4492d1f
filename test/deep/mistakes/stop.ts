/** A stop with receivers of webhooks that hang: it ends in its ten seconds, whatever is in flight. */
import { connect } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { until } from '../../support/machine/until.ts'
import { Scene, type Started } from '../../support/mistakes/scene.ts'
import { type Receiver, startReceiver } from '../../support/peers/receiver.ts'

const WAIT_MS = 60_000
/**
 * Posts and requests have five seconds; a stop that waits longer for them takes over eight, and ten on a slow machine.
 */
const STOP_MS_MAX = 7_500
const receiver = await startReceiver()
const skip = receiver === null && 'openssl is not installed'
t.teardown(() => receiver?.close())

/** A service with this many webhooks at a receiver that never answers, once all of them are attempted. */
async function posting(t: Test, webhooks: number): Promise<{ scene: Scene; service: Started }> {
  const { url, ca, received, react } = receiver as Receiver
  react(() => undefined)
  const scene = await Scene.make(t)
  const file = join(t.testdir({ 'ca.pem': ca }), 'ca.pem')
  const settings = { NODE_EXTRA_CA_CERTS: file, PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8' }
  const service = await scene.start({ settings })
  const { token } = scene.firstRun.testServer
  const made = []
  for (let n = 0; n < webhooks; n++) made.push(await scene.post('/v1/webhooks', token, { url: `${url}/${n}` }))
  t.ok(made.every((status) => status === 201))
  const before = received.length
  const body = { from: 'you@simulator.test', to: ['someone@simulator.test'], subject: 'Hello', text: 'It works.' }
  t.equal(await scene.post('/v1/email', token, body), 200)
  await until(() => received.length >= before + webhooks, WAIT_MS)
  return { scene, service }
}

async function stopMs(t: Test, service: Started): Promise<number> {
  const beganAtMs = performance.now()
  t.equal(await service.kill('SIGTERM'), 0, service.said().slice(-500))
  const ms = performance.now() - beganAtMs
  t.comment(`stopped in ${Math.round(ms)} ms`)
  return ms
}

/** A client that has begun a request and goes no further. */
function stall(scene: Scene): void {
  const { token } = scene.firstRun.testServer
  const socket = connect(Number(scene.settings.HTTP_PORT), '127.0.0.1')
  socket.on('error', () => undefined)
  const head = `POST /v1/email HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n`
  socket.write(`${head}Content-Length: 1000\r\n\r\n{`)
}

for (const webhooks of [1, 200])
  t.test(`mistakes: a stop while ${webhooks} webhooks and a client hang ends in its time`, { skip }, async (t) => {
    const { scene, service } = await posting(t, webhooks)
    stall(scene)
    t.ok((await stopMs(t, service)) < STOP_MS_MAX)
    t.same(scene.redisProcesses(), [])
  })
