/**
 * webhook - killed between a post and its outcome, answered or not: posted again, the same delivery with a higher
 * attempt, in its order.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { freePort } from '../../support/machine/port.ts'
import { until } from '../../support/machine/until.ts'
import { startReceiver } from '../../support/peers/receiver.ts'
import { startHost } from '../../support/service/host.ts'
import { startRedis } from '../../support/store/redis.ts'

const WAIT_MS = 60_000
/** A claim of an ended process is valid for this long. */
const HOLD_MS = 15_000

t.test('webhook: killed before the outcome is committed, the delivery is posted again', async (t) => {
  const receiver = await startReceiver()
  if (receiver === null) return t.comment('openssl is not installed: skipped')
  const redis = await startRedis()
  const dataDir = mkdtempSync(join(tmpdir(), 'sendwright-webhook-'))
  writeFileSync(join(dataDir, 'ca'), receiver.ca)
  const port = await freePort()
  const settings = {
    REDIS_URL: `unix://${redis.socketPath}`,
    SECRET_KEY: 'a secret of the tests that is long enough',
    DATA_DIR: dataDir,
    HTTP_PORT: String(port),
    OPERATOR_PORT: String(await freePort()),
    MX_PORT: '0',
    SUBMISSION_PORT: '0',
    SUBMISSION_TLS_PORT: '0',
    EDGE_RATE: '0',
    LOG_LEVEL: 'silent',
    PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8',
    NODE_EXTRA_CA_CERTS: join(dataDir, 'ca'),
  }
  let host = await startHost(settings)
  t.teardown(async () => {
    await host.kill('SIGKILL')
    await receiver.close()
    await redis.stop()
    rmSync(dataDir, { recursive: true, force: true })
  })
  const firstRun = join(dataDir, 'first-run.json')
  await until(() => existsSync(firstRun), WAIT_MS)
  const { token } = JSON.parse(readFileSync(firstRun, 'utf8')).testServer
  const post = async (path: string, body: object) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', connection: 'close' }
    const request = { method: 'POST', headers, body: JSON.stringify(body) }
    return (await fetch(`http://127.0.0.1:${port}${path}`, request)).json() as Promise<{ webhookId: string }>
  }
  receiver.react(() => undefined)
  const { webhookId } = await post('/v1/webhooks', { url: `${receiver.url}/hook` })
  for (const event of ['bounced', 'delivered', 'deferred']) await post(`/v1/webhooks/${webhookId}/test`, { event })
  await until(() => receiver.received.length === 1, WAIT_MS)
  await host.kill('SIGKILL')
  receiver.react(null)
  host = await startHost(settings)
  await until(() => receiver.received.length === 4, WAIT_MS)
  const [first, ...rest] = receiver.received
  t.match(first?.json, { event: 'bounced', attempt: 1 })
  const again = rest.find(({ json }) => json.id === first?.json.id)
  t.match(again?.json, { event: 'bounced', attempt: 2 })
  t.ok(
    (rest[0]?.atMs ?? 0) - (first?.atMs ?? 0) > HOLD_MS / 2,
    'nothing of the webhook is attempted while the claim stands',
  )
  t.same(
    rest.filter((one) => one !== again).map(({ json }) => [json.event, json.attempt]),
    [
      ['delivered', 1],
      ['deferred', 1],
    ],
  )

  // Answered with 200 and received, while the store is frozen: the outcome is on its way to a store that ends too.
  const heard = new Promise<void>((resolve) => {
    receiver.react((_request, response, socket) => {
      void redis.kill('SIGSTOP')
      response.setHeader('connection', 'close')
      socket.once('close', () => resolve())
      response.end('ok')
    })
  })
  await post(`/v1/webhooks/${webhookId}/test`, { event: 'bounced' })
  await heard
  await host.kill('SIGKILL')
  receiver.react(null)
  await redis.restart()
  host = await startHost(settings)
  await until(() => receiver.received.length === 6, WAIT_MS)
  const [answered, repeated] = receiver.received.slice(4)
  t.match(answered?.json, { event: 'bounced', attempt: 1 })
  t.same(repeated?.json, { ...answered?.json, attempt: 2 }, 'the same delivery, counted on')
})
