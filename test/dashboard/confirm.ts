/**
 * confirm - a signed-in user has their own count of confirmations, whatever strangers try with the address; failed
 * tries are in the log; another account does not extend a session.
 */
import t from 'tap'
import { Browser } from '../support/clients/browser.ts'
import { until } from '../support/machine/until.ts'
import { startTestService } from '../support/service/service.ts'

const PASSWORD = 'correct horse battery'
const ADDRESS = 'ada@a.example'
const WAIT_MS = 30_000
const service = await startTestService()
t.teardown(() => service.stop())
const origin = `http://127.0.0.1:${service.config.httpPort}`
const { dashboardUrl, operatorToken } = service.firstRun
const ada = new Browser(origin)
const come = (token: string) =>
  ada.call('POST /links/consume', { token, address: ADDRESS, name: 'Ada', password: PASSWORD })
await come(Browser.tokenOf(dashboardUrl))

const signIn = (browser: Browser, password: string) => browser.call('POST /session', { address: ADDRESS, password })
const acts = async (act: string) =>
  (await ada.call('GET /audit?limit=100')).json.acts.filter((one: { act: string }) => one.act === act)

t.test('confirm: ten wrong tries of strangers lock the address, and no signed-in user [session.confirm]', async (t) => {
  const other = new Browser(origin, '192.0.2.8')
  t.equal((await signIn(other, PASSWORD)).status, 200)
  for (let n = 0; n < 9; n += 1) await signIn(new Browser(origin, `2001:db8:${n}::1`), 'not the right one')
  t.equal((await signIn(new Browser(origin, '192.0.2.9'), PASSWORD)).status, 429)
  t.equal((await ada.call('POST /session/confirm', { password: PASSWORD })).status, 200)
  const tries = await Promise.all(
    Array.from({ length: 12 }, () => ada.call('POST /session/confirm', { password: 'not the right one' })),
  )
  t.equal(tries.filter(({ status }) => status === 401).length, 9, 'the eleventh is one too many')
  t.match(tries.find(({ status }) => status === 429)?.json, { error: 'too_many_tries', resetsAt: /Z$/ })
  const body = { current: PASSWORD, password: 'another horse entirely' }
  t.equal((await ada.call('POST /me/password', body)).status, 429, 'the same count')
  t.equal((await other.call('POST /session/confirm', { password: PASSWORD })).status, 429, 'in all his sessions')
})

t.test('confirm: failed tries are in the log, a limit once while it is reached [member.audit]', async (t) => {
  const { userId } = (await ada.call('GET /me')).json
  await until(async () => ((await acts('signInRefused')).length === 18 ? true : null), WAIT_MS)
  await until(async () => ((await acts('limitReached')).length === 2 ? true : null), WAIT_MS)
  await signIn(new Browser(origin, '192.0.2.10'), PASSWORD)
  for (const one of [...(await acts('signInRefused')), ...(await acts('limitReached'))])
    t.match(one, { userId, userName: 'Ada', targets: {} })
  t.equal((await acts('limitReached')).length, 2, 'one of the address, one of him')
})

t.test('confirm: a session in another account keeps the begin of the first one [session.life]', async (t) => {
  const call = (what: string, body: object) =>
    service.operate(what.replace(' ', ' /v1/operator/accounts'), { token: operatorToken, body })
  const { accountId } = (await call('POST ', { name: 'Second', administrators: [] })).json
  const invited = new Browser(origin, '192.0.2.11')
  const { url } = (await call(`POST /${accountId}/link`, { address: ADDRESS })).json
  const joined = await invited.call('POST /links/consume', { token: Browser.tokenOf(url), password: PASSWORD })
  t.equal(joined.status, 200, joined.text)
  const current = async () =>
    (await invited.call('GET /me/sessions')).json.sessions.find((one: { current: boolean }) => one.current)
  const before = await current()
  const [, first] = joined.json.accounts
  t.equal((await invited.call('POST /session/account', { accountId: first.accountId })).status, 200)
  const after = await current()
  t.notSame(after.sessionId, before.sessionId)
  t.equal(after.createdAt, before.createdAt)
})

t.test('confirm: failed tries fill no log of another account [member.audit] [session.limits]', async (t) => {
  const { account } = service.firstRun
  const path = `POST /v1/operator/accounts/${account.accountId}/link`
  const { json } = await service.operate(path, { token: operatorToken, body: { address: 'bea@a.example' } })
  const bea = new Browser(origin, '192.0.2.20')
  await bea.call('POST /links/consume', { token: Browser.tokenOf(json.url), name: 'Bea', password: PASSWORD })
  const { userId } = (await bea.call('GET /me')).json
  const ofBea = async () => {
    const { acts } = (await bea.call('GET /audit?limit=100')).json
    return acts.flatMap((one: { act: string; userId: string }) => (one.userId === userId ? [one.act] : []))
  }
  const flood = new Browser(origin, '192.0.2.21')
  const { challenge } = (await flood.call('POST /session/passkey/options', {})).json
  const response = { userHandle: Buffer.from(userId).toString('base64url') }
  const tries = Array.from({ length: 31 }, () =>
    flood.call('POST /session/passkey', { challenge, credential: { id: 'none of hers', response } }),
  )
  t.equal((await Promise.all(tries)).filter(({ status }) => status === 401).length, 30)
  const body = { address: 'bea@a.example', password: 'not the right one' }
  t.equal((await flood.call('POST /session', body)).status, 429, 'its client has reached a limit, and she none')
  t.equal((await new Browser(origin, '192.0.2.22').call('POST /session', body)).status, 401)
  await until(async () => (await ofBea()).includes('signInRefused'), WAIT_MS)
  t.same(await ofBea(), ['signInRefused', 'signIn', 'joinAccount'])
})
