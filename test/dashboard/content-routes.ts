/**
 * content-routes - the contents of mail: the roles that may read it, its log entry, hiding; a frame's policy; test
 * messages; sending again.
 */
import t from 'tap'
import { MESSAGE_CONTENT } from '../../schemas/dashboard/content.ts'
import { compileBody } from '../../src/http/shape/validate.ts'
import { Browser } from '../support/clients/browser.ts'
import { until } from '../support/machine/until.ts'
import { startMx } from '../support/peers/mx.ts'
import { startZone } from '../support/peers/zone.ts'
import { verifyDomain } from '../support/service/crash-live.ts'
import { startTestService } from '../support/service/service.ts'

const PASSWORD = 'correct horse battery'
const MAIL_MS_MAX = 30_000
const HTML = '<p>Hello <a href="https://acme.example/reset?a=1&amp;b=2">reset</a> <a href=javascript:x>x</a></p>'
const mx = await startMx()
const zone = await startZone()
const service = await startTestService({
  RELAY_URL: `smtp://127.0.0.1:${mx.port}`,
  DNS_SERVERS: zone.server,
  SERVICE_DOMAIN: 'service.example',
})
t.teardown(async () => {
  await service.stop()
  await zone.close()
  await mx.close()
})
const origin = `http://127.0.0.1:${service.config.httpPort}`
const { liveServer, testServer } = service.firstRun
await verifyDomain(service.config.httpPort, service.firstRun, { zone, domain: 'acme.example' })
const ada = new Browser(origin)
const token = Browser.tokenOf(service.firstRun.dashboardUrl)
await ada.call('POST /links/consume', { token, address: 'ada@a.example', name: 'Ada', password: PASSWORD })
const live = `/servers/${liveServer.serverId}`
const frame = (path: string, headers: Record<string, string> = {}) =>
  fetch(`${origin}/dashboard/mail/${path}`, { headers: { cookie: ada.cookie ?? '', ...headers } })

const body = { from: 'news@acme.example', to: ['bob@b.example'], subject: 'Hello', text: 'It works.', html: HTML }
const { messageId } = (await service.call('POST /v1/email', { token: liveServer.token, body })).json

t.test('content: requested separately, logged, hidden if the account hides it [member.content]', async (t) => {
  t.match((await ada.call(`GET ${live}/messages/${messageId}`)).json, {
    subject: 'Hello',
    text: null,
    html: null,
    links: [],
    images: [],
  })
  const read = await ada.call(`GET ${live}/messages/${messageId}/content`)
  t.ok(compileBody(MESSAGE_CONTENT)(read.json).ok, read.text)
  t.same(read.json, { text: 'It works.', html: HTML, links: ['https://acme.example/reset?a=1&b=2'] })
  t.match((await ada.call('GET /audit')).json.acts[0], { act: 'readContent', targets: { id: messageId } })
  t.equal((await ada.call('PATCH /account', { hideContent: true })).status, 200)
  t.match((await ada.call(`GET ${live}/messages/${messageId}/content`)).json, { error: 'content_hidden' })
  t.equal((await frame(`${liveServer.serverId}/${messageId}`)).status, 403)
  await ada.call('PATCH /account', { hideContent: false })
  const other = `GET /servers/${testServer.serverId}/messages/${messageId}/content`
  t.equal((await ada.call(other)).status, 404)
})

t.test('content: in a frame without any rights, and only there [member.frame]', async (t) => {
  const seen = await frame(`${liveServer.serverId}/${messageId}`, { 'sec-fetch-dest': 'iframe' })
  t.equal(seen.status, 200)
  t.equal(
    seen.headers.get('content-security-policy'),
    "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; frame-ancestors 'self'",
  )
  t.match(seen.headers.get('content-type'), /^text\/html/)
  t.equal(seen.headers.get('x-dns-prefetch-control'), 'off')
  t.equal(seen.headers.get('referrer-policy'), 'no-referrer')
  t.equal(seen.headers.get('cache-control'), 'no-store')
  t.match(await seen.text(), '<base target="_blank"><p>Hello')
  const images = await frame(`${liveServer.serverId}/${messageId}?images=remote`)
  t.match(images.headers.get('content-security-policy'), 'img-src data: https:')
  t.equal((await frame(`${liveServer.serverId}/${messageId}?images=all`)).status, 400)
  t.equal((await frame(`${liveServer.serverId}/${messageId}`, { 'sec-fetch-dest': 'document' })).status, 403)
  t.equal((await fetch(`${origin}/dashboard/mail/${liveServer.serverId}/${messageId}`)).status, 401)
  const sent = await ada.call(`POST /servers/${testServer.serverId}/test-message`, {
    from: 'you@simulator.test',
    to: 'delivered@simulator.test',
    subject: 'Plain',
    text: 'a < b',
  })
  const plain = await frame(`${testServer.serverId}/${sent.json.messageId}`)
  t.match(plain.headers.get('content-security-policy'), /^sandbox allow-popups;/)
  t.match(await plain.text(), 'a &lt; b')
})

t.test(
  'content: test messages to oneself, a message again, by the ordinary path [member.test-message] [member.send-again]',
  async (t) => {
    const test = { from: 'news@acme.example', subject: 'Test', text: 'Hello' }
    const foreign = await ada.call(`POST ${live}/test-message`, { ...test, to: 'bob@b.example' })
    t.match(foreign.json, { error: 'invalid_request', issues: [{ path: 'to' }] })
    const unverified = await ada.call(`POST ${live}/test-message`, {
      ...test,
      from: 'x@other.example',
      to: 'ada@a.example',
    })
    t.match(unverified.json, { error: 'domain_not_verified' })
    const own = await ada.call(`POST ${live}/test-message`, { ...test, to: 'Ada@a.example' })
    t.match([own.status, own.json.status], [200, 'accepted'], own.text)
    const path = `POST ${live}/messages/${messageId}/send-again`
    t.match((await ada.call(path, {})).json, { error: 'invalid_request', issues: [{ path: 'recipients' }] })
    const foreigner = await ada.call(path, { recipients: ['bob@b.example', 'eve@b.example'] })
    t.match(foreigner.json, { error: 'invalid_request', issues: [{ path: 'recipients.1' }] })
    const again = await ada.call(path, { recipients: ['bob@b.example'] })
    t.equal(again.status, 200, again.text)
    t.not(again.json.messageId, messageId)
    const [one, other] = await Promise.all(
      [messageId, again.json.messageId].map(
        async (id) => (await service.call(`GET /v1/messages/${id}`, { token: liveServer.token })).json,
      ),
    )
    for (const name of ['from', 'subject', 'text', 'html', 'tag', 'metadata', 'headers'])
      t.same(other[name], one[name], name)
    t.match(other.recipients, [{ recipient: 'bob@b.example', kind: 'to' }])
    await until(() => mx.sessions.flatMap(({ messages }) => messages).length >= 3, MAIL_MS_MAX)
    const none = `POST ${live}/messages/${live.slice(9)}/send-again`
    t.equal((await ada.call(none, { recipients: ['bob@b.example'] })).status, 404)
    const acts = (await ada.call('GET /audit')).json.acts.map(({ act }: { act: string }) => act)
    t.ok(acts.includes('sendAgain') && acts.includes('sendTestMessage'))
  },
)

t.test(
  'content: sent again to the chosen recipients alone, Bcc hidden from the others [member.send-again]',
  async (t) => {
    const people = { to: ['t@b.example'], cc: ['c@b.example', 'd@b.example'], bcc: ['x@b.example', 'y@b.example'] }
    const sent = await service.call('POST /v1/email', { token: liveServer.token, body: { ...body, ...people } })
    const again = async (...recipients: string[]) => {
      const answer = await ada.call(`POST ${live}/messages/${sent.json.messageId}/send-again`, { recipients })
      if (answer.status !== 200) return answer.json
      const { json } = await service.call(`GET /v1/messages/${answer.json.messageId}`, { token: liveServer.token })
      return json.recipients.map(({ recipient, kind }: { recipient: string; kind: string }) => `${kind} ${recipient}`)
    }
    t.same(await again('x@b.example', 't@b.example'), ['to t@b.example', 'bcc x@b.example'])
    t.same(await again('d@b.example', 'y@b.example'), ['to d@b.example', 'bcc y@b.example'])
    t.same(await again('x@b.example'), ['to x@b.example'])
    t.match(await again('x@b.example', 'y@b.example'), { error: 'invalid_request', issues: [{ path: 'recipients' }] })
  },
)
