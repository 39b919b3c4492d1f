/** server - GET /v1/server: the present limits, on both kinds of server. */
import t from 'tap'
import { startTestService } from '../support/service/service.ts'

const service = await startTestService()
const { testServer, liveServer, account } = service.firstRun
t.teardown(() => service.stop())

const read = (token: string) => service.call('GET /v1/server', { token })

t.test('test server: one shared limit for each period, and the simulator to send from', async (t) => {
  const { json } = await read(testServer.token)
  t.match(json, { serverId: testServer.serverId, name: 'Test', mode: 'test' })
  t.strictSame(
    json.limits.map((one: Record<string, unknown>) => [one.scope, one.period, one.limit, one.used]),
    [
      ['test', 'minute', 300, 0],
      ['test', 'month', 10_000, 0],
    ],
  )
  t.strictSame(json.sendingDomains, [{ domain: 'simulator.test', failingSince: null }])
})

t.test('live server: limits of its account, no domain', async (t) => {
  const { json } = await read(liveServer.token)
  t.match(json, { serverId: liveServer.serverId, name: 'Live', mode: 'live', sendingDomains: [] })
  t.strictSame(
    json.limits.map((one: Record<string, unknown>) => [one.scope, one.period, one.limit]),
    [
      ['account', 'minute', 300],
      ['account', 'month', 10_000],
    ],
  )
})

t.test('periods end at the next UTC minute and month', async (t) => {
  const { json } = await read(liveServer.token)
  const [minute, month] = json.limits.map(({ resetsAt }: { resetsAt: string }) => resetsAt)
  t.match(minute, /:00\.000Z$/)
  t.match(month, /-01T00:00:00\.000Z$/)
})

t.test('what was accepted is counted, one for each recipient', async (t) => {
  const body = { from: 'you@simulator.test', to: ['a@example.com', 'b@example.com'], subject: 'Hello', text: 'x' }
  await service.call('POST /v1/email', { token: testServer.token, body })
  const { json } = await read(testServer.token)
  t.equal(json.limits[1].used, 2)
  t.equal((await read(liveServer.token)).json.limits[1].used, 0, 'on test servers only')
})

t.test('only a server key', async (t) => {
  t.match((await read(account.token)).json, { error: 'wrong_token_kind', message: /server key/ })
  t.equal((await service.call('GET /v1/server')).status, 401)
})
