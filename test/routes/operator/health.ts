/** health - the answers to a supervisor, a load balancer and a monitor, with the store reachable and not. */
import t from 'tap'
import { until } from '../../support/machine/until.ts'
import { startTestService } from '../../support/service/service.ts'

const service = await startTestService()
const { testServer } = service.firstRun
t.teardown(() => service.stop())

const BODY = { from: 'you@simulator.test', to: ['one@example.com'], subject: 'Hello', text: 'x' }
const send = () => service.call('POST /v1/email', { token: testServer.token, body: BODY })

t.test('healthy, ready, and counted', async (t) => {
  t.equal((await service.operate('GET /healthz')).text, 'ok\n')
  t.equal((await service.operate('GET /readyz')).status, 200)
  await send()
  const { text, headers } = await service.operate('GET /metrics')
  t.match(headers.get('content-type'), /^text\/plain; version=0\.0\.4/)
  t.match(text, /^sendwright_accepted_requests_total 1$/m)
  t.match(text, /^sendwright_store_up 1$/m)
  t.match((await service.operateActors('GET /metrics')).text, /^sendwright_shards_running 256$/m)
  t.equal((await service.call('GET /healthz', { token: testServer.token })).status, 404, 'not on the public listener')
})

t.test('a process without the API answers for itself only', async (t) => {
  const token = service.firstRun.operatorToken
  for (const path of ['/healthz', '/readyz', '/metrics'])
    t.equal((await service.operateActors(`GET ${path}`)).status, 200, path)
  const isApart = process.env.TOPOLOGY === 'apart'
  t.equal((await service.operateActors('GET /v1/operator/accounts', { token })).status, isApart ? 404 : 200)
  t.equal((await service.operate('GET /v1/operator/accounts', { token })).status, 200)
})

t.test('store away: not ready, 503 with Retry-After, and back without a restart', async (t) => {
  await service.redis.kill('SIGKILL')
  await until(async () => (await service.operate('GET /readyz')).status === 503, 5000)
  t.equal((await service.operate('GET /healthz')).status, 200)
  const called = await send()
  t.equal(called.status, 503)
  t.equal(called.json.error, 'unavailable')
  t.ok(Number(called.headers.get('retry-after')) >= 1)
  t.equal((await service.call('GET /v1/server', { token: testServer.token })).status, 503)
  t.match((await service.operate('GET /metrics')).text, /^sendwright_store_up 0$/m)
  await service.redis.restart()
  await until(async () => (await send()).status === 200, 10_000)
  await until(async () => (await service.operate('GET /readyz')).status === 200, 10_000)
})
