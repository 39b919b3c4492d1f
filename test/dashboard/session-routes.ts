/** session-routes - a user signs in by the printed link, signs out and in again, by the contract. */
import t from 'tap'
import { SESSION } from '../../schemas/dashboard/session.ts'
import { compileBody } from '../../src/http/shape/validate.ts'
import { Browser } from '../support/clients/browser.ts'
import { startTestService } from '../support/service/service.ts'

const service = await startTestService()
t.teardown(() => service.stop())
const origin = `http://127.0.0.1:${service.config.httpPort}`
const ADDRESS = 'Ada@example.net'
const PASSWORD = 'correct horse battery'
const isSession = compileBody(SESSION)
const token = Browser.tokenOf(service.firstRun.dashboardUrl)

t.test('link: the first user signs in by the printed link, once [link.once] [session.read]', async (t) => {
  const browser = new Browser(origin)
  const read = await browser.call('POST /links/read', { token })
  t.same(
    [read.status, read.json],
    [
      200,
      { purpose: 'setup', accountName: 'First account', role: 'administrator', address: null, needsPassword: 'choose' },
    ],
  )
  t.match((await browser.call('POST /links/consume', { token })).json.issues, [{ path: 'address' }])
  const short = await browser.call('POST /links/consume', { token, address: ADDRESS, name: 'Ada', password: 'short' })
  t.match(short.json, { error: 'invalid_request', issues: [{ path: 'password' }] })
  const body = { token, address: ADDRESS, name: 'Ada', password: PASSWORD }
  const made = await browser.call('POST /links/consume', body)
  t.equal(made.status, 200, made.text)
  t.ok(isSession(made.json).ok, made.text)
  const [session = '', device = ''] = made.headers.getSetCookie()
  t.match(session, /^sendwright=ss_\w+; HttpOnly; SameSite=Strict; Path=\/; Max-Age=\d+$/)
  t.match(device, /^sendwright-device=[\w.-]+; HttpOnly; SameSite=Strict; Path=\/; Max-Age=15552000$/)
  t.equal(made.headers.get('cache-control'), 'no-store')
  t.match(made.json, { user: { address: ADDRESS, name: 'Ada' }, role: 'administrator', readOnly: false })
  t.equal(made.json.accounts.length, 1)
  const seen = await browser.call('GET /session')
  t.same(seen.json, made.json)
  for (const what of ['read', 'consume'])
    t.match((await new Browser(origin).call(`POST /links/${what}`, { ...(what === 'read' ? { token } : body) })).json, {
      error: 'link_not_valid',
    })
  t.equal((await browser.call('DELETE /session')).status, 204)
  t.equal(browser.cookie, null)
})

t.test('session: signed in by password, and out, at once everywhere [session.sign-in]', async (t) => {
  const browser = new Browser(origin, '192.0.2.2')
  t.equal((await browser.call('GET /session')).status, 401)
  const wrong = await browser.call('POST /session', { address: ADDRESS, password: 'correct horse batterx' })
  const unknown = await browser.call('POST /session', { address: 'bob@example.net', password: PASSWORD })
  t.same([wrong.status, unknown.status], [401, 401])
  t.same(wrong.json, unknown.json)
  t.equal(wrong.json.error, 'sign_in_failed')
  const signedIn = await browser.call('POST /session', { address: ADDRESS.toLowerCase(), password: PASSWORD })
  t.equal(signedIn.status, 200, signedIn.text)
  const { cookie } = browser
  t.equal((await browser.call('GET /session')).json.sessionId, signedIn.json.sessionId)
  t.equal((await browser.call('GET /servers')).json.servers.length, 2)
  t.equal((await browser.call('DELETE /session')).status, 204)
  browser.cookie = cookie
  for (const what of ['GET /session', 'GET /servers', `GET /servers/${service.firstRun.testServer.serverId}/streams`])
    t.equal((await browser.call(what)).status, 401, what)
})

t.test('session: invalid sessions, and the allowed origins [session.cookie] [session.origin]', async (t) => {
  const browser = new Browser(origin, '192.0.2.3')
  await browser.call('POST /session', { address: ADDRESS, password: PASSWORD })
  const ss = browser.cookie?.split('=')[1] ?? ''
  for (const path of ['/v1/server', '/v1/servers', '/v1/nothing'])
    t.equal((await service.call(`GET ${path}`, { token: ss })).status, 401, path)
  const stranger = new Browser(origin, '192.0.2.3')
  const bearer = { authorization: `Bearer ${service.firstRun.account.token}` }
  t.equal((await stranger.call('GET /servers', undefined, bearer)).status, 401)
  stranger.cookie = `sendwright=${service.firstRun.account.token}`
  t.equal((await stranger.call('GET /servers')).status, 401)
  stranger.cookie = `${browser.cookie}; ${browser.cookie}`
  t.equal((await stranger.call('GET /servers')).status, 401, 'two of them are none')
  const other = `http://127.0.0.1:${service.config.operatorPort}`
  for (const from of [other, 'https://evil.example', 'null', ''])
    t.match((await browser.call('DELETE /session', undefined, { origin: from })).json, { error: 'cross_origin' }, from)
  t.match((await browser.call('POST /session', {}, { origin: other })).json, { error: 'cross_origin' })
  t.equal((await browser.call('GET /nothing')).status, 404)
  t.equal((await new Browser(origin).call('GET /nothing')).json.error !== undefined, true, 'never a page')
  t.match((await browser.call('POST /session/account', '{', { 'content-type': 'text/plain' })).status, 415)
  t.equal((await browser.call('POST /session/account', {})).status, 400)
  const localhost = `http://localhost:${service.config.httpPort}`
  t.equal((await browser.call('DELETE /session', undefined, { origin: localhost })).status, 204)
})
