/** operator-link - the operator's link: a new user becomes a member, a locked-out one chooses a new password. */
import { createHash } from 'node:crypto'
import { Redis } from 'ioredis'
import t from 'tap'
import { shardOf } from '../../cluster/id.ts'
import { SETUP_HOURS, USER_ACCOUNTS_MAX } from '../../schemas/limits.ts'
import { membersKey } from '../../src/state/dashboard/places.ts'
import { Browser } from '../support/clients/browser.ts'
import { startTestService } from '../support/service/service.ts'

const HOUR_MS = 3_600_000
const OLD = 'correct horse battery'
const NEW = 'another horse entirely'
const service = await startTestService()
t.teardown(() => service.stop())
const origin = `http://127.0.0.1:${service.config.httpPort}`
const { account, testServer, dashboardUrl, operatorToken } = service.firstRun

const operate = (what: string, body: object, token = operatorToken) =>
  service.operate(what.replace(' ', ' /v1/operator/accounts'), { token, body })

async function linkFor(address: string, body: object = {}, accountId = account.accountId): Promise<string> {
  const { status, json, text } = await operate(`POST /${accountId}/link`, { address, ...body })
  if (status !== 201) throw new Error(text)
  return Browser.tokenOf(json.url)
}

const ada = new Browser(origin)
const body = { token: Browser.tokenOf(dashboardUrl), address: 'ada@a.example', name: 'Ada', password: OLD }
await ada.call('POST /links/consume', body)

t.test('operator-link: the refusals, in the usual order [link.operator]', async (t) => {
  const address = 'ben@b.example'
  const path = `/v1/operator/accounts/${account.accountId}/link`
  for (const token of [account.token, testServer.token, `${operatorToken}x`])
    t.equal((await operate(`POST /${account.accountId}/link`, {}, token)).status, 401)
  for (const wrong of [{}, { address: 'ben' }, { address, role: 'owner' }, { address, note: '' }, { address, x: 1 }])
    t.equal((await operate(`POST /${account.accountId}/link`, wrong)).status, 400)
  for (const id of ['x', testServer.serverId])
    t.equal((await operate(`POST /${id}/link`, { address })).json.error, 'not_found')
  t.equal((await service.call(`POST ${path}`, { token: operatorToken, body: { address } })).status, 401)
  const { accountId } = (await operate('POST ', { name: 'Over', administrators: [] })).json
  const token = await linkFor(address, {}, accountId)
  await operate(`POST /${accountId}/close`, {})
  t.equal((await operate(`POST /${accountId}/link`, { address })).json.error, 'account_closed')
  t.equal(new Browser(origin).cookie, null)
  t.match((await new Browser(origin).call('POST /links/read', { token })).json, { accountName: 'Over' })
})

t.test('operator-link: a new user becomes a member with the role of the link, once [link.operator]', async (t) => {
  const made = await operate(`POST /${account.accountId}/link`, { address: 'ben@b.example', role: 'member' })
  t.equal(made.status, 201, made.text)
  t.match(made.json.url, /^http:\/\/localhost:\d+\/dashboard\/link#[0-9a-f]{34}\.[\w-]{43}$/)
  const hours = (Date.parse(made.json.expiresAt) - Date.now()) / HOUR_MS
  t.ok(hours > SETUP_HOURS - 1 && hours < SETUP_HOURS + 1)
  const token = Browser.tokenOf(made.json.url)
  const ben = new Browser(origin, '192.0.2.2')
  t.same((await ben.call('POST /links/read', { token })).json, {
    purpose: 'setup',
    accountName: 'First account',
    role: 'member',
    address: 'ben@b.example',
    needsPassword: 'choose',
  })
  const other = { token, address: 'eve@e.example', name: 'Ben', password: OLD }
  const came = await ben.call('POST /links/consume', other)
  t.match(came, { status: 200, json: { role: 'member', user: { address: 'ben@b.example' } } }, 'bound to its address')
  for (const what of ['read', 'consume'])
    t.equal((await ben.call(`POST /links/${what}`, what === 'read' ? { token } : other)).status, 410)
})

t.test('operator-link: a locked-out user chooses a new password and keeps the role [link.operator]', async (t) => {
  t.equal((await ada.call('GET /session')).status, 200)
  const token = await linkFor('ADA@a.example', { role: 'member' })
  const back = new Browser(origin, '192.0.2.3')
  t.match((await back.call('POST /links/read', { token })).json, { purpose: 'reset', needsPassword: 'choose' })
  const short = await back.call('POST /links/consume', { token, password: 'short' })
  t.match(short, { status: 400, json: { issues: [{ path: 'password' }] } })
  t.equal((await ada.call('GET /session')).status, 200, 'nothing was used up')
  const came = await back.call('POST /links/consume', { token, password: NEW })
  t.match(came, { status: 200, json: { role: 'administrator', user: { address: 'ada@a.example', name: 'Ada' } } })
  t.equal((await ada.call('GET /session')).status, 401, 'the sessions before have ended')
  const signIn = (password: string) =>
    new Browser(origin, '192.0.2.3').call('POST /session', { address: 'ada@a.example', password })
  t.equal((await signIn(OLD)).status, 401)
  t.equal((await signIn(NEW)).status, 200)
  t.equal((await back.call('POST /links/consume', { token, password: OLD })).status, 410)
  t.equal((await signIn(NEW)).status, 200)
})

t.test('operator-link: a user joins another account too [link.operator]', async (t) => {
  const { accountId } = (await operate('POST ', { name: 'Second', administrators: [] })).json
  const token = await linkFor('ada@a.example', {}, accountId)
  const browser = new Browser(origin, '192.0.2.4')
  const came = await browser.call('POST /links/consume', { token, password: OLD })
  t.match(came, { status: 200, json: { role: 'administrator', account: { accountId } } })
  t.equal(came.json.accounts.length, 2)
})

t.test(
  'operator-link: links for one address are siblings in all accounts: of two at once one works [link.operator]',
  async (t) => {
    const { accountId } = (await operate('POST ', { name: 'Third', administrators: [] })).json
    const body = { token: await linkFor('gus@g.example'), name: 'Gus', password: OLD }
    t.equal((await new Browser(origin, '192.0.2.19').call('POST /links/consume', body)).status, 200)
    const tokens = [await linkFor('gus@g.example'), await linkFor('GUS@g.example', {}, accountId)]
    const other = await linkFor('hal@h.example')
    for (const token of [...tokens, other])
      t.equal((await new Browser(origin).call('POST /links/read', { token })).status, 200)
    const came = await Promise.all(
      tokens.map((token, at) => {
        const one = new Browser(origin, `192.0.2.${20 + at}`)
        return one.call('POST /links/consume', { token, password: OLD })
      }),
    )
    t.equal(came.filter(({ status }) => status === 200).length, 1)
    for (const token of tokens) {
      const read = await new Browser(origin).call('POST /links/read', { token })
      t.match([read.status, read.json.error], [410, 'link_not_valid'])
    }
    t.equal((await new Browser(origin).call('POST /links/read', { token: other })).status, 200, 'of another address')
    const again = await linkFor('gus@g.example')
    t.equal((await new Browser(origin).call('POST /links/read', { token: again })).status, 200, 'made afterwards')
  },
)

t.test('operator-link: a removed user does not return by an earlier link [link.operator]', async (t) => {
  const kim = new Browser(origin, '192.0.2.30')
  const entry = { token: await linkFor('kim@k.example'), name: 'Kim', password: OLD }
  t.equal((await kim.call('POST /links/consume', entry)).status, 200)
  const first = new Browser(origin, '192.0.2.31')
  const token = await linkFor('ivy@i.example')
  const body = { token, name: 'Ivy', password: OLD }
  const { userId } = (await first.call('POST /links/consume', body)).json.user
  const kept = await linkFor('ivy@i.example')
  t.equal((await kim.call(`DELETE /members/${userId}`)).status, 204)
  t.equal((await first.call('POST /links/consume', { token: kept, password: OLD })).status, 410)
})

t.test('operator-link: an interrupted removal continues when it is requested again [link.operator]', async (t) => {
  const lea = new Browser(origin, '192.0.2.32')
  const entry = { token: await linkFor('lea@l.example'), name: 'Lea', password: OLD }
  t.equal((await lea.call('POST /links/consume', entry)).status, 200)
  const joins = { token: await linkFor('max@m.example'), name: 'Max', password: OLD }
  const { userId } = (await new Browser(origin, '192.0.2.33').call('POST /links/consume', joins)).json.user
  const kept = await linkFor('max@m.example')
  const redis = new Redis({ path: service.redis.socketPath })
  t.teardown(() => redis.disconnect())
  // The state after only the first commit.
  await redis.hdel(membersKey(shardOf(account.accountId) as number, account.accountId), userId)
  t.equal((await lea.call(`DELETE /members/${userId}`)).status, 204)
  t.equal((await new Browser(origin).call('POST /links/read', { token: kept })).status, 410)
  const again = await linkFor('max@m.example')
  t.equal((await lea.call(`DELETE /members/${userId}`)).status, 404, 'done is done')
  for (const id of ['x', account.accountId]) t.equal((await lea.call(`DELETE /members/${id}`)).status, 404)
  t.equal(
    (await new Browser(origin).call('POST /links/read', { token: again })).status,
    200,
    'who is none ends nothing',
  )
})

t.test(
  'operator-link: a user in the maximum number of accounts gets a refusal, and loses neither them nor the link [member.accounts]',
  async (t) => {
    const entry = { token: await linkFor('ned@n.example'), name: 'Ned', password: OLD }
    const { userId } = (await new Browser(origin, '192.0.2.34').call('POST /links/consume', entry)).json.user
    const { accountId } = (await operate('POST ', { name: 'One more', administrators: [] })).json
    const token = await linkFor('ned@n.example', {}, accountId)
    const redis = new Redis({ path: service.redis.socketPath })
    t.teardown(() => redis.disconnect())
    const row = `{s${String(shardOf(userId)).padStart(3, '0')}}:user:${userId}`
    // Only the owner may write what it holds in memory.
    await service.service.stop()
    const accounts = Array.from({ length: USER_ACCOUNTS_MAX }, (_, n) =>
      accountId.replace(/.{12}$/, String(n).padStart(12, '0')),
    )
    const unsure = Object.fromEntries(accounts.map((one) => [one, Date.now()]))
    await redis.hset(row, 'accounts', JSON.stringify(accounts), 'unsure', JSON.stringify(unsure))
    await service.restart()
    const ned = new Browser(origin, '192.0.2.35')
    const full = await ned.call('POST /links/consume', { token, password: NEW })
    t.match([full.status, full.json], [409, { error: 'account_limit', max: USER_ACCOUNTS_MAX }])
    t.same(JSON.parse((await redis.hget(row, 'accounts')) ?? ''), accounts)
    t.match((await ned.call('POST /links/read', { token })).json, { accountName: 'One more' })
  },
)

t.test('operator-link: a link ends with the key that created it [link.operator]', async (t) => {
  const token = await linkFor('jo@j.example')
  const redis = new Redis({ path: service.redis.socketPath })
  t.teardown(() => redis.disconnect())
  const row = `{s000}:key:${createHash('sha256').update(operatorToken).digest('hex')}`
  await redis.hset(row, 'revoked', String(Date.now()))
  t.equal((await new Browser(origin).call('POST /links/read', { token })).status, 410)
  await redis.hset(row, 'revoked', '')
  t.equal((await new Browser(origin).call('POST /links/read', { token })).status, 200)
})
