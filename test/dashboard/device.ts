/** device - strangers who try a user's address lock out neither a browser that the user signed in with, nor a link. */
import t, { type Test } from 'tap'
import { Browser } from '../support/clients/browser.ts'
import { until } from '../support/machine/until.ts'
import { startMx } from '../support/peers/mx.ts'
import { startTestService } from '../support/service/service.ts'

const MAIL_MS_MAX = 30_000
const PASSWORD = 'correct horse battery'
const mx = await startMx()
const service = await startTestService({ RELAY_URL: `smtp://127.0.0.1:${mx.port}`, SERVICE_DOMAIN: 'service.example' })
t.teardown(async () => {
  await service.stop()
  await mx.close()
})
const origin = `http://127.0.0.1:${service.config.httpPort}`
let strangers = 0
let users = 0
const stranger = () => new Browser(origin, `198.51.100.${++strangers}`)
const signIn = (browser: Browser, address: string, password = PASSWORD) =>
  browser.call('POST /session', { address, password })

/** Somebody new, signed in. */
async function come(address: string): Promise<Browser> {
  const { account, operatorToken } = service.firstRun
  const asked = { token: operatorToken, body: { address } }
  const { json } = await service.operate(`POST /v1/operator/accounts/${account.accountId}/link`, asked)
  const browser = new Browser(origin, `192.0.2.${++users}`)
  const body = { token: Browser.tokenOf(json.url), name: 'Somebody', password: PASSWORD }
  const came = await browser.call('POST /links/consume', body)
  if (came.status !== 200) throw new Error(came.text)
  return browser
}

/** Uses up the limit of an address. */
async function lockOut(t: Test, address: string): Promise<void> {
  for (let n = 0; n < 10; n += 1) t.equal((await signIn(stranger(), address, 'wrong password')).status, 401)
  t.match((await signIn(stranger(), address)).json, { error: 'too_many_tries' }, 'whatever the password')
}

t.test('device: its browser signs in whatever strangers try, and has its own tries [session.limits]', async (t) => {
  const ada = await come('ada@a.example')
  await ada.call('DELETE /session')
  t.match(ada.device, /^sendwright-device=[0-9a-f-]{36}\.[\w-]{22}\.[\w-]{43}$/, 'it stays when its user signs out')
  await lockOut(t, 'ada@a.example')
  const { device } = ada
  const forged = `${device?.slice(0, -4)}AAAA`
  for (const cookie of [forged, `${device}; ${device}`, 'sendwright-device=x']) {
    const other = stranger()
    other.device = cookie
    t.equal((await signIn(other, 'ada@a.example')).status, 429, cookie)
  }
  t.equal((await signIn(ada, 'ada@a.example')).status, 200)
  t.equal(ada.device, device, 'a browser keeps its device')
  for (let n = 0; n < 9; n += 1) t.equal((await signIn(ada, 'ada@a.example', 'wrong password')).status, 401)
  t.equal((await signIn(ada, 'ada@a.example')).status, 429, 'ten of its own')
})

t.test("device: another user's, and one from before a new password, are a stranger's [session.limits]", async (t) => {
  const bob = await come('bob@b.example')
  const eve = await come('eve@e.example')
  const { device } = bob
  const body = { current: PASSWORD, password: 'another horse battery' }
  t.equal((await bob.call('POST /me/password', body)).status, 204)
  await lockOut(t, 'bob@b.example')
  for (const cookie of [device, eve.device]) {
    const other = stranger()
    other.device = cookie
    t.equal((await signIn(other, 'bob@b.example', 'another horse battery')).status, 429)
  }
})

t.test('device: three requests of strangers leave a mailed link and a device its own [session.limits]', async (t) => {
  const carol = await come('carol@c.example')
  const ask = (browser: Browser) => browser.call('POST /links', { address: 'carol@c.example', purpose: 'sign-in' })
  t.equal((await ask(stranger())).status, 202)
  const mail = await until(() => {
    const mails = mx.sessions.flatMap(({ messages }) => messages)
    return mails.find((one) => one.includes('To: carol@c.example')) ?? null
  }, MAIL_MS_MAX)
  for (const status of [202, 202, 429]) t.equal((await ask(stranger())).status, status)
  for (const status of [202, 202, 202, 429]) t.equal((await ask(carol)).status, status)
  const [, token = ''] = /\/dashboard\/link#([\w.-]+)/.exec(mail.replaceAll('=\r\n', '')) ?? []
  const home = stranger()
  t.equal((await home.call('POST /links/consume', { token })).status, 200)
  t.match(home.device, 'sendwright-device=')
})
