/**
 * factor-routes - second factors from setting up to signing in: authenticator, passkeys, recovery codes; the rule of
 * an account; the limits of codes over two processes.
 */
import t from 'tap'
import { totpCode, totpStepAt } from '../../src/dashboard/factor/totp.ts'
import { decodeBase32 } from '../../src/mail/base32.ts'
import { Authenticator } from '../support/clients/authenticator.ts'
import { Browser } from '../support/clients/browser.ts'
import { freePort } from '../support/machine/port.ts'
import { until } from '../support/machine/until.ts'
import { startHost } from '../support/service/host.ts'
import { startTestService } from '../support/service/service.ts'

const PASSWORD = 'correct horse battery'
const NEW_PASSWORD = 'another horse entirely'
const WAIT_MS = 30_000
const SECRET_KEY = 'a secret of two processes that is long enough'
const service = await startTestService({ SECRET_KEY })
const httpPort = await freePort()
const second = await startHost({
  REDIS_URL: `unix://${service.redis.socketPath}`,
  SECRET_KEY,
  DATA_DIR: service.dataDir,
  ROLES: 'http',
  HTTP_PORT: String(httpPort),
  OPERATOR_PORT: String(await freePort()),
  EDGE_RATE: '0',
  LOG_LEVEL: 'silent',
})
t.teardown(async () => {
  await second.kill('SIGTERM')
  await service.stop()
})
// Passkeys take a name.
const origins = [`http://localhost:${service.config.httpPort}`, `http://localhost:${httpPort}`] as const
const { account, dashboardUrl, operatorToken } = service.firstRun

/** A separate user, signed in. */
async function come(address: string, role?: string): Promise<{ browser: Browser; address: string }> {
  const browser = clientOf()
  const token = Browser.tokenOf(role === undefined ? dashboardUrl : await linkFor(address, { role }))
  const came = await browser.call('POST /links/consume', { token, address, name: 'Ada', password: PASSWORD })
  if (came.status !== 200) throw new Error(came.text)
  return { browser, address }
}

let clients = 0
/** A browser in a separate network. */
function clientOf(origin: string = origins[0]): Browser {
  clients += 1
  return new Browser(origin, `2001:db8:${clients.toString(16)}::1`)
}

async function linkFor(address: string, body: object = {}): Promise<string> {
  const path = `POST /v1/operator/accounts/${account.accountId}/link`
  const { json, text } = await service.operate(path, { token: operatorToken, body: { address, ...body } })
  if (json?.url === undefined) throw new Error(text)
  return json.url
}

/** Sets up an authenticator. Returns its code of the step that is `ahead`, and its recovery codes. */
async function setUpTotp(browser: Browser) {
  const begun = await browser.call('POST /me/totp')
  const secret = decodeBase32(begun.json.secret.toLowerCase())
  const code = (ahead = 0) => totpCode(secret, totpStepAt(Date.now()) + ahead)
  const { challenge } = begun.json
  // The step before, so that the present one and the next can still be used.
  const made = await browser.call('POST /me/totp/confirm', { challenge, code: code(-1) })
  return { made, code, challenge, codes: made.json.recoveryCodes as string[] }
}

async function setUpPasskey(browser: Browser, name = 'Phone') {
  const authenticator = new Authenticator(browser.origin)
  const { json } = await browser.call('POST /me/passkeys/options')
  const credential = authenticator.make(json.options)
  const made = await browser.call('POST /me/passkeys', { challenge: json.challenge, credential, name })
  return { authenticator, made, begun: json, credential }
}

const ada = await come('ada@a.example')
const signIn = (browser: Browser, { address, password = PASSWORD }: { address: string; password?: string }) =>
  browser.call('POST /session', { address, password })

t.test(
  'factor: an authenticator counts once a code of it arrived, and is then required for a session [session.factor]',
  async (t) => {
    const { browser, address } = await come('bea@a.example', 'member')
    const begun = await browser.call('POST /me/totp')
    t.match(begun.json, { secret: /^[A-Z2-7]{32}$/, url: /^otpauth:\/\/totp\/Sendwright%20localhost:bea/ })
    const { challenge } = begun.json
    const wrong = await browser.call('POST /me/totp/confirm', { challenge, code: '000000' })
    t.match(wrong, { status: 400, json: { issues: [{ path: 'code' }] } })
    t.equal((await browser.call('GET /me')).json.totp, false)
    t.equal((await ada.browser.call('POST /me/totp/confirm', { challenge, code: '000000' })).status, 401, 'not hers')
    const { made, code, codes, challenge: used } = await setUpTotp(browser)
    t.equal(made.status, 200, made.text)
    t.equal(codes.length, 10)
    t.equal((await browser.call('POST /me/totp/confirm', { challenge: used, code: code() })).status, 401, 'once')
    t.match((await browser.call('GET /me')).json, { totp: true, recoveryCodesLeft: 10, passkeys: [] })
    t.equal((await browser.call('GET /session')).json.factors[0], 'totp')

    const next = clientOf(origins[1])
    const asked = await signIn(next, { address })
    t.match(asked, { status: 200, json: { secondFactor: ['totp'] } })
    t.equal(asked.json.sessionId, undefined)
    t.match(
      asked.headers.get('set-cookie') ?? '',
      /^sendwright-step=[\w-]{43}; HttpOnly; SameSite=Strict; Path=\/; Max-Age=600$/,
    )
    t.equal((await next.call('GET /session')).status, 401, 'no session yet')
    const body = { challenge: asked.json.challenge, code: code() }
    t.equal((await clientOf().call('POST /session/code', body)).status, 401, 'another browser')
    t.equal((await next.call('POST /session/code', { ...body, code: '000000' })).status, 401)
    const came = await next.call('POST /session/code', { ...body, code: ` ${code().slice(0, 3)} ${code().slice(3)}` })
    t.match(came, { status: 200, json: { user: { address } } })
    t.match(came.json.confirmedUntil, /Z$/)
    t.equal((await next.call('POST /session/code', body)).status, 401, 'the step is taken')
    const again = clientOf()
    const twice = await signIn(again, { address })
    const replayed = { challenge: twice.json.challenge, code: code() }
    t.equal((await again.call('POST /session/code', replayed)).status, 401, 'a code counts once')
    t.equal((await again.call('POST /session/code', { ...replayed, code: code(1) })).status, 200)
  },
)

t.test('factor: a recovery code signs in once, new ones end the old, the log shows it [session.factor]', async (t) => {
  const { browser, address } = await come('cat@a.example', 'member')
  const { codes } = await setUpTotp(browser)
  const next = clientOf()
  const { challenge } = (await signIn(next, { address })).json
  const typed = (codes[3] ?? '').toUpperCase().replace('-', ' ')
  t.equal((await next.call('POST /session/code', { challenge, code: typed })).status, 200)
  t.equal((await next.call('GET /me')).json.recoveryCodesLeft, 9)
  const later = clientOf()
  const asked = await signIn(later, { address })
  const of = (code: string | undefined) => later.call('POST /session/code', { challenge: asked.json.challenge, code })
  t.equal((await of(codes[3])).status, 401, 'used')
  const made = await next.call('POST /me/recovery-codes')
  t.equal(made.json.recoveryCodes.length, 10)
  t.equal((await of(codes[4])).status, 401, 'there are new ones')
  t.equal((await of(made.json.recoveryCodes[0])).status, 200)
  const { userId } = (await next.call('GET /me')).json
  const acts = async () =>
    (await ada.browser.call('GET /audit?limit=100')).json.acts.flatMap((one: { userId: string; act: string }) =>
      one.userId === userId ? one.act : [],
    )
  await until(
    async () => ((await acts()).filter((act: string) => act === 'signInRefused').length === 2 ? true : null),
    WAIT_MS,
  )
  t.ok((await acts()).includes('confirmTotp'))
  t.ok((await acts()).includes('createRecoveryCodes'))
})

t.test(
  'factor: a mailed link, a new password and an operator’s link replace no factor; a link that removes it says so [session.factor] [link.operator]',
  async (t) => {
    const { browser, address } = await come('dan@a.example', 'member')
    const { code } = await setUpTotp(browser)
    const late = clientOf()
    const before = await signIn(late, { address })
    const other = clientOf()
    const link = Browser.tokenOf(await linkFor(address, { role: 'member' }))
    const came = await other.call('POST /links/consume', { token: link, password: NEW_PASSWORD })
    t.match(came, { status: 200, json: { secondFactor: ['totp'] } })
    t.equal((await other.call('GET /session')).status, 401)
    t.equal((await browser.call('GET /session')).status, 401, 'the sessions before have ended')
    const { challenge } = before.json
    t.equal((await late.call('POST /session/code', { challenge, code: code() })).status, 401, 'the password is another')
    const way = Browser.tokenOf(await linkFor(address, { role: 'member', removeFactors: true }))
    const out = await clientOf().call('POST /links/consume', { token: way, password: PASSWORD })
    t.match(out, { status: 200, json: { user: { address }, factors: [] } })
    t.match((await signIn(clientOf(), { address })).json, { factors: [] })
  },
)

t.test('passkey: as a second step, and alone if it has verified its holder [session.passkey]', async (t) => {
  const { browser, address } = await come('eve@a.example', 'member')
  const { authenticator, made, begun, credential } = await setUpPasskey(browser)
  t.match(made, { status: 201, json: { passkey: { name: 'Phone', lastUsedAt: null } } }, made.text)
  t.equal(made.json.recoveryCodes.length, 10)
  t.equal(begun.options.rp.id, 'localhost')
  const again = { challenge: begun.challenge, credential, name: 'Again' }
  t.equal((await browser.call('POST /me/passkeys', again)).status, 401, 'a challenge is used once')

  const next = clientOf()
  const asked = await signIn(next, { address })
  t.match(asked.json, { secondFactor: ['passkey'] })
  const { challenge } = asked.json
  const options = (await next.call('POST /session/passkey/options', { challenge })).json.options
  t.equal(options.allowCredentials.length, 1)
  const show = (of: object) => next.call('POST /session/passkey', { challenge, credential: of })
  t.equal((await show(authenticator.show(options, 'http://evil.example'))).status, 401, 'another origin')
  t.equal((await show(authenticator.show({ ...options, rpId: 'evil.example' }))).status, 401)
  t.equal((await show(new Authenticator(origins[0]).show(options))).status, 401, 'another passkey')
  t.equal((await show({})).status, 401)
  const shown = authenticator.show(options)
  t.match(await show(shown), { status: 200, json: { user: { address } } })
  t.equal((await show(shown)).status, 401, 'once')

  const alone = clientOf()
  const free = (await alone.call('POST /session/passkey/options', {})).json
  t.same(free.options.allowCredentials, [])
  t.equal(free.options.userVerification, 'required')
  const body = (of: object) => ({ challenge: free.challenge, credential: of })
  authenticator.verifies = false
  t.equal((await alone.call('POST /session/passkey', body(authenticator.show(free.options)))).status, 401)
  authenticator.verifies = true
  t.equal((await clientOf().call('POST /session/passkey', body(authenticator.show(free.options)))).status, 401)
  const came = await alone.call('POST /session/passkey', body(authenticator.show(free.options)))
  t.match(came, { status: 200, json: { user: { address }, factors: ['passkey'] } })
  authenticator.counter = 1
  const copy = clientOf()
  const third = (await copy.call('POST /session/passkey/options', {})).json
  const copied = { challenge: third.challenge, credential: authenticator.show(third.options) }
  t.equal((await copy.call('POST /session/passkey', copied)).status, 401, 'a copy that counts behind')
})

t.test(
  'passkey: listed, renamed, removed; a session is confirmed by one and by a code [session.confirm]',
  async (t) => {
    const { browser } = await come('fay@a.example', 'member')
    const { authenticator, made } = await setUpPasskey(browser)
    const { passkeyId } = made.json.passkey
    const renamed = await browser.call(`PATCH /me/passkeys/${passkeyId}`, { name: 'Desk' })
    t.match(renamed, { status: 200, json: { passkeyId, name: 'Desk' } })
    t.match((await browser.call('GET /me')).json.passkeys, [{ passkeyId, name: 'Desk' }])
    const begun = (await browser.call('POST /session/confirm/options')).json
    const body = { challenge: begun.challenge, credential: authenticator.show(begun.options) }
    t.match(await browser.call('POST /session/confirm', body), { status: 200, json: { confirmedUntil: /Z$/ } })
    t.equal((await browser.call('POST /session/confirm', body)).status, 401)
    const { code } = await setUpTotp(browser)
    t.equal((await browser.call('POST /session/confirm', { code: '000000' })).status, 401)
    t.equal((await browser.call('POST /session/confirm', { code: code() })).status, 200)
    for (const none of [{}, { challenge: begun.challenge }])
      t.equal((await browser.call('POST /session/confirm', none)).status, 400)
    t.equal((await browser.call(`DELETE /me/passkeys/${passkeyId}`)).status, 204)
    t.equal((await browser.call(`DELETE /me/passkeys/${passkeyId}`)).status, 404)
    t.equal((await browser.call('POST /session/confirm/options')).status, 404)
    t.equal((await browser.call('DELETE /me/totp')).status, 204)
    t.match((await browser.call('GET /me')).json, { totp: false, recoveryCodesLeft: 0, passkeys: [] })
  },
)

t.test(
  'factor: an account can require one of all members: nothing else answers before [session.factor] [member.settings]',
  async (t) => {
    const { browser, address } = await come('gus@a.example', 'member')
    const settings = (requireSecondFactor: boolean) => ada.browser.call('PATCH /account', { requireSecondFactor })
    t.match((await settings(true)).json, { error: 'second_factor_required' }, 'who asks it has one')
    const { made } = await setUpPasskey(ada.browser)
    t.equal((await settings(true)).status, 200)
    t.equal((await browser.call('GET /servers')).status, 200, 'who is signed in goes on')
    const next = clientOf()
    const came = await signIn(next, { address })
    t.match(came.json, { needsFactor: true, account: { requireSecondFactor: true } })
    for (const what of ['GET /servers', 'GET /members', `GET /servers/${service.firstRun.testServer.serverId}/streams`])
      t.match(await next.call(what), { status: 409, json: { error: 'second_factor_required' } }, what)
    const { code } = await setUpTotp(next)
    t.match((await next.call('GET /session')).json, { needsFactor: false, factors: ['totp'] })
    t.equal((await next.call('GET /servers')).status, 200)
    const last = await next.call('DELETE /me/totp')
    t.match(last, { status: 409, json: { error: 'second_factor_required', message: /your last one/ } })
    const members = (await ada.browser.call('GET /members')).json.members
    t.equal(members.find((one: { address: string }) => one.address === address).secondFactor, true)
    t.ok(code())
    t.equal((await settings(false)).status, 200)
    t.equal((await ada.browser.call(`DELETE /me/passkeys/${made.json.passkey.passkeyId}`)).status, 204)
    const later = await come('hal@a.example', 'member')
    t.equal(later.browser.cookie === null, false)
    t.match((await later.browser.call('GET /session')).json, {
      needsFactor: false,
      account: { requireSecondFactor: false },
    })
  },
)

t.test(
  'factor: codes count as tries, exact over two processes; tries of others never block a passkey [session.limits]',
  async (t) => {
    const { browser, address } = await come('ida@a.example', 'member')
    await setUpTotp(browser)
    const { authenticator } = await setUpPasskey(browser)
    const asked = await Promise.all(
      origins.map(async (origin) => {
        const client = clientOf(origin)
        return { client, challenge: (await signIn(client, { address })).json.challenge }
      }),
    )
    const tries = await Promise.all(
      Array.from({ length: 20 }, (_, n) => {
        const { client, challenge } = asked[n % 2] as (typeof asked)[number]
        return client.call('POST /session/code', { challenge, code: '000000' })
      }),
    )
    t.equal(tries.filter(({ status }) => status === 401).length, 8, 'two passwords and eight codes')
    t.equal(tries.filter(({ status }) => status === 429).length, 12)
    t.equal((await signIn(clientOf(), { address })).status, 429)
    const alone = clientOf()
    const { options, challenge } = (await alone.call('POST /session/passkey/options', {})).json
    const credential = authenticator.show(options)
    t.equal((await alone.call('POST /session/passkey', { challenge, credential })).status, 200)
    const flood = clientOf(origins[1])
    const pages = await Promise.all(
      Array.from({ length: 35 }, () => flood.call('POST /session/passkey', { challenge, credential })),
    )
    t.equal(pages.filter(({ status }) => status === 401).length, 30)
  },
)
