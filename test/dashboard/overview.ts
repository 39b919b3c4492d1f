/** overview - one answer for the overview of a server, whose parts are those that their own routes answer. */
import t from 'tap'
import { Browser } from '../support/clients/browser.ts'
import { startTestService } from '../support/service/service.ts'

const service = await startTestService()
t.teardown(() => service.stop())
const { testServer, liveServer, account, dashboardUrl } = service.firstRun
const ada = new Browser(`http://127.0.0.1:${service.config.httpPort}`)
const body = { token: Browser.tokenOf(dashboardUrl), address: 'ada@a.example', name: 'Ada' }
await ada.call('POST /links/consume', { ...body, password: 'correct horse battery' })

t.test('overview: each part as its own route answers it, in one request [dashboard.overview]', async (t) => {
  const { token } = testServer
  await service.call('POST /v1/webhooks', { token, body: { url: 'https://hooks.example/mail' } })
  await service.call('POST /v1/domains', { token: account.token, body: { domain: 'mail.acme.example' } })
  const { status, json } = await ada.call(`GET /servers/${testServer.serverId}/overview`)
  t.equal(status, 200)
  const own = async (path: string) => (await ada.call(`GET ${path}`)).json
  const of = (path: string) => own(`/servers/${testServer.serverId}${path}`)
  t.same(json.streams, (await of('/streams')).streams)
  t.same(json.webhooks, (await of('/webhooks')).webhooks)
  t.same(json.health, (await of('/webhooks/health')).webhooks)
  t.same(json.domains, (await own('/domains')).domains)
  t.same(json.checklist, await own('/checklist'))
  t.same(json.server.serverId, testServer.serverId)
  t.equal(json.webhooks.length, 1)
  t.equal(json.health[0].webhookId, json.webhooks[0].webhookId)
})

t.test('overview: only for members, and of their own servers [dashboard.overview]', async (t) => {
  const stranger = new Browser(`http://127.0.0.1:${service.config.httpPort}`)
  t.equal((await stranger.call(`GET /servers/${testServer.serverId}/overview`)).status, 401)
  t.equal((await ada.call('GET /servers/0193b2a4-6c00-7017-8000-0123456789ab/overview')).status, 404)
  t.equal((await ada.call(`GET /servers/${liveServer.serverId}/overview`)).json.webhooks.length, 0)
})
