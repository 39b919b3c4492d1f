/** factor-sessions - a second factor ends earlier sessions; a factor shown in a session counts for that one. */
import { request } from 'node:http'
import { Redis } from 'ioredis'
import t from 'tap'
import { totpCode, totpStepAt } from '../../src/dashboard/factor/totp.ts'
import { decodeBase32 } from '../../src/mail/base32.ts'
import { Browser } from '../support/clients/browser.ts'
import { until } from '../support/machine/until.ts'
import { startMx } from '../support/peers/mx.ts'
import { startTestService } from '../support/service/service.ts'

const PASSWORD = 'correct horse battery'
const MAIL_MS_MAX = 30_000
const mx = await startMx()
const service = await startTestService({ RELAY_URL: `smtp://127.0.0.1:${mx.port}` })
const redis = new Redis({ path: service.redis.socketPath })
t.teardown(async () => {
  redis.disconnect()
  await service.stop()
  await mx.close()
})
const origin = `http://localhost:${service.config.httpPort}`
const { account, dashboardUrl, operatorToken } = service.firstRun
const ada = new Browser(origin)
await ada.call('POST /links/consume', {
  token: Browser.tokenOf(dashboardUrl),
  address: 'ada@a.example',
  name: 'Ada',
  password: PASSWORD,
})

let clients = 0
const newBrowser = () => new Browser(origin, `2001:db8:${(++clients).toString(16)}::1`)

const operate = async (what: string, body: object) =>
  (await service.operate(what.replace(' ', ' /v1/operator/accounts'), { token: operatorToken, body })).json

async function come(address: string, accountId = account.accountId): Promise<Browser> {
  const browser = newBrowser()
  const token = Browser.tokenOf((await operate(`POST /${accountId}/link`, { address })).url)
  const came = await browser.call('POST /links/consume', { token, name: 'Bea', password: PASSWORD })
  if (came.status !== 200) throw new Error(came.text)
  return browser
}

/** Begins an authenticator. Returns the confirmation, and its code of the step that is `ahead`. */
async function begin(browser: Browser) {
  const { secret, challenge } = (await browser.call('POST /me/totp')).json
  const code = (ahead = 0) => totpCode(decodeBase32(secret.toLowerCase()), totpStepAt(Date.now()) + ahead)
  return { body: { challenge, code: code(-1) }, code }
}

/** Takes from all sessions of a user what was shown in them. */
async function forgetShown(userId: string): Promise<void> {
  for (const key of await redis.keys('*:key:*'))
    if ((await redis.hget(key, 'userId')) === userId) await redis.hset(key, 'factor', '0')
}

t.test('factor: the first one ends the sessions that were opened with a password alone [session.factor]', async (t) => {
  const address = 'bea@a.example'
  const owner = await come(address)
  const thief = newBrowser()
  await thief.call('POST /session', { address, password: PASSWORD })
  t.equal((await thief.call('GET /session')).status, 200)
  const { body } = await begin(owner)
  t.equal((await owner.call('POST /me/totp/confirm', body)).status, 200)
  t.equal((await thief.call('GET /session')).status, 401)
  t.equal((await owner.call('GET /servers')).status, 200)
})

t.test('factor: a user with one shows it to change factors, and for another account [session.factor]', async (t) => {
  const { accountId } = await operate('POST ', { name: 'Second', administrators: [] })
  await come('cat@a.example', accountId)
  const cat = await come('cat@a.example')
  const { userId } = (await cat.call('GET /me')).json
  const { body, code } = await begin(cat)
  t.equal((await cat.call('POST /me/totp/confirm', body)).status, 200)
  t.equal((await cat.call('POST /me/recovery-codes')).status, 200, 'it was just set')
  const refused = { status: 403, json: { error: 'confirmation_required', message: /you have a second factor/ } }
  t.equal((await cat.call('POST /session/confirm', { password: PASSWORD })).status, 200)
  await forgetShown(userId)
  for (const what of ['POST /me/totp', 'POST /me/passkeys/options', 'POST /me/recovery-codes', 'DELETE /me/totp'])
    t.match(await cat.call(what), refused, what)
  t.match(await cat.call('POST /session/account', { accountId }), refused)
  t.equal((await cat.call('POST /session/confirm', { code: code() })).status, 200)
  t.equal((await cat.call('POST /me/recovery-codes')).status, 200)
  const other = await cat.call('POST /session/account', { accountId })
  t.match(other, { status: 200, json: { account: { accountId }, needsFactor: false } }, 'it goes along')
})

t.test('factor: a session that ends while the body arrives changes nothing [session.factor]', async (t) => {
  const dan = await come('dan@a.example')
  const text = JSON.stringify((await begin(dan)).body)
  const headers = {
    origin,
    cookie: dan.cookie ?? '',
    'content-type': 'application/json',
    'content-length': text.length,
  }
  const { httpPort } = service.config
  const held = request({ port: httpPort, path: '/dashboard/api/me/totp/confirm', method: 'POST', headers })
  const answered = new Promise<number>((resolve, reject) => {
    held.on('response', ({ statusCode = 0 }) => resolve(statusCode)).on('error', reject)
  })
  // The head is sent with the first byte. An answer after that has read it.
  held.write(text.slice(0, 1))
  await dan.call('GET /session')
  await dan.call('GET /servers')
  t.equal((await dan.call('DELETE /session')).status, 204)
  held.end(text.slice(1))
  t.equal(await answered, 401)
  const again = newBrowser()
  t.same((await again.call('POST /session', { address: 'dan@a.example', password: PASSWORD })).json.factors, [])
})

t.test('factor: an invitation is used by the final step, not by those before it [session.factor]', async (t) => {
  const address = 'eve@a.example'
  const { accountId } = await operate('POST ', { name: 'Third', administrators: [] })
  const eve = await come(address, accountId)
  const begun = await begin(eve)
  t.equal((await eve.call('POST /me/totp/confirm', begun.body)).status, 200)
  await ada.call('POST /invitations', { address, role: 'member' })
  const mail = await until(
    () =>
      // The notice about the authenticator is sent too.
      mx.sessions
        .flatMap(({ messages }) => messages)
        .find((one) => one.includes(`To: ${address}`) && one.includes('link#')),
    MAIL_MS_MAX,
  )
  const token = /link#([\w.-]+)/.exec(mail.replaceAll('=\r\n', ''))?.[1] ?? ''
  const next = newBrowser()
  const asked = await next.call('POST /links/consume', { token, password: PASSWORD })
  t.match(asked, { status: 200, json: { secondFactor: ['totp'] } }, asked.text)
  const members = async () => JSON.stringify((await ada.call('GET /members')).json.members)
  t.notMatch(await members(), address)
  t.equal((await next.call('POST /links/read', { token })).status, 200, 'it works still')
  const came = await next.call('POST /session/code', { challenge: asked.json.challenge, code: begun.code() })
  t.match(came, { status: 200, json: { account: { accountId: account.accountId }, role: 'member' } }, came.text)
  t.match(await members(), address)
  t.match((await next.call('POST /links/read', { token })).json, { error: 'link_not_valid' })
})
