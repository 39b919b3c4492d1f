/** people-routes - invited by mail, a role that changes and a removal at once everywhere, limits, links, audit. */
import { Redis } from 'ioredis'
import t from 'tap'
import { MEMBER_LIST } from '../../schemas/dashboard/people.ts'
import { compileBody } from '../../src/http/shape/validate.ts'
import { Browser } from '../support/clients/browser.ts'
import { until } from '../support/machine/until.ts'
import { startMx } from '../support/peers/mx.ts'
import { startTestService } from '../support/service/service.ts'
import { passTime } from '../support/store/pass-time.ts'

const MAIL_MS_MAX = 30_000
const PASSWORD = 'correct horse battery'
const mx = await startMx()
const service = await startTestService({ RELAY_URL: `smtp://127.0.0.1:${mx.port}`, SERVICE_DOMAIN: 'service.example' })
const redis = new Redis({ path: service.redis.socketPath })
t.teardown(async () => {
  redis.disconnect()
  await service.stop()
  await mx.close()
})
const origin = `http://127.0.0.1:${service.config.httpPort}`
const { testServer, liveServer } = service.firstRun

const mails = () => mx.sessions.flatMap(({ messages }) => messages)

/** The token of the newest link in mail to a user, once there are `count`. */
async function mailedTo(address: string, count = 1): Promise<string> {
  const found = await until(() => {
    const own = mails().filter((mail) => mail.includes(`To: ${address}`) && mail.includes('/dashboard/link#'))
    return own.length >= count ? own : null
  }, MAIL_MS_MAX)
  return /\/dashboard\/link#([\w.-]+)/.exec(found.at(-1)?.replaceAll('=\r\n', '') ?? '')?.[1] ?? ''
}

async function come(token: string, body: object, address: string): Promise<Browser> {
  const browser = new Browser(origin, address)
  const came = await browser.call('POST /links/consume', { token, password: PASSWORD, ...body })
  if (came.status !== 200) throw new Error(came.text)
  return browser
}

const ada = await come(
  Browser.tokenOf(service.firstRun.dashboardUrl),
  { address: 'ada@a.example', name: 'Ada' },
  '192.0.2.1',
)
let bob: Browser
let bobId: string

t.test('people: invited by mail, which proves the address; the inviter sees no link [invitation.send]', async (t) => {
  const body = { address: 'bob@b.example', role: 'member' }
  const invited = await ada.call('POST /invitations', body)
  t.equal(invited.status, 201, invited.text)
  t.match(invited.json, { address: 'bob@b.example', role: 'member', readOnly: false })
  t.notMatch(invited.text, 'link')
  const first = await mailedTo('bob@b.example')
  t.match(mails()[0], /^From: Sendwright <postmaster@service\.example>\r$/m)
  t.match(mails()[0], /^Auto-Submitted: auto-generated\r$/m)
  const sent = await ada.call(`POST /invitations/${invited.json.invitationId}/send`)
  t.equal(sent.status, 200, sent.text)
  const second = await mailedTo('bob@b.example', 2)
  t.not(first, second)
  const read = await new Browser(origin).call('POST /links/read', { token: second })
  t.match(read.json, { purpose: 'invitation', address: 'bob@b.example', needsPassword: 'choose', role: 'member' })
  bob = await come(second, { name: 'Bob' }, '192.0.2.2')
  t.match((await new Browser(origin).call('POST /links/read', { token: first })).json, { error: 'link_not_valid' })
  t.same((await ada.call('GET /invitations')).json.invitations, [])
  const { members } = (await ada.call('GET /members')).json
  t.ok(compileBody(MEMBER_LIST)({ members }).ok)
  t.match(members, [
    { name: 'Ada', role: 'administrator' },
    { name: 'Bob', role: 'member', address: 'bob@b.example' },
  ])
  bobId = members[1].userId
  t.match((await ada.call('POST /invitations', { ...body, role: 'administrator' })).json, { error: 'member_exists' })
})

t.test('people: another role and a removal hold at the next click [member.role] [member.last]', async (t) => {
  const streams = `POST /servers/${testServer.serverId}/streams`
  t.equal((await bob.call(streams, { kind: 'broadcast', name: 'Of Bob' })).status, 201)
  t.match((await bob.call('POST /domains', { domain: 'b.example' })).json, { error: 'role_not_allowed' })
  t.match((await bob.call('PATCH /account', { name: 'Mine' })).json, { error: 'role_not_allowed' })
  t.equal((await ada.call(`PATCH /members/${bobId}`, { readOnly: true })).json.readOnly, true)
  t.match((await bob.call(streams, { kind: 'broadcast', name: 'Again' })).json, { error: 'role_not_allowed' })
  t.equal((await bob.call('GET /session')).json.readOnly, true)
  t.equal((await bob.call(`GET /servers/${liveServer.serverId}/streams`)).status, 200)
  t.equal((await ada.call(`PATCH /members/${bobId}`, { role: 'administrator', readOnly: false })).status, 200)
  const adaId = (await ada.call('GET /me')).json.userId
  t.equal((await bob.call(`PATCH /members/${adaId}`, { role: 'member' })).status, 200)
  t.match((await ada.call('GET /invitations')).json, { error: 'role_not_allowed' })
  t.match((await bob.call(`DELETE /members/${bobId}`)).json, { error: 'last_administrator' })
  t.equal((await bob.call(`PATCH /members/${adaId}`, { role: 'administrator' })).status, 200)
  const other = await bob.call('POST /session', { address: 'bob@b.example', password: PASSWORD })
  t.equal(other.status, 200)
  t.equal((await ada.call(`DELETE /members/${bobId}`)).status, 204)
  t.equal((await ada.call(`DELETE /members/${bobId}`)).status, 404)
  for (const what of ['GET /session', 'GET /servers', streams]) t.equal((await bob.call(what)).status, 401, what)
  t.match((await bob.call('POST /session', { address: 'bob@b.example', password: PASSWORD })).json, {
    error: 'sign_in_failed',
  })
})

t.test(
  'people: a mailed link signs in or sets a new password; its siblings end with it [link.mail] [link.once]',
  async (t) => {
    const stranger = new Browser(origin, '192.0.2.9')
    const [known, unknown] = [
      await stranger.call('POST /links', { address: 'ada@a.example', purpose: 'sign-in' }),
      await stranger.call('POST /links', { address: 'nobody@a.example', purpose: 'reset' }),
    ]
    t.same([known.status, known.text], [unknown.status, unknown.text])
    const signIn = await mailedTo('ada@a.example')
    await stranger.call('POST /links', { address: 'ada@a.example', purpose: 'reset' })
    const reset = await mailedTo('ada@a.example', 2)
    t.match((await stranger.call('POST /links/read', { token: reset })).json, {
      purpose: 'reset',
      needsPassword: 'choose',
    })
    const password = 'another horse battery'
    const came = await stranger.call('POST /links/consume', { token: reset, password })
    t.equal(came.status, 200, came.text)
    t.equal((await ada.call('GET /session')).status, 401, 'all sessions end with the password')
    t.match((await stranger.call('POST /links/consume', { token: signIn })).json, { error: 'link_not_valid' })
    t.match((await stranger.call('POST /links/consume', { token: reset, password })).json, { error: 'link_not_valid' })
    t.equal((await ada.call('POST /session', { address: 'ada@a.example', password: PASSWORD })).status, 401)
    t.equal((await ada.call('POST /session', { address: 'ada@a.example', password })).status, 200)
    const changed = await ada.call('POST /me/password', { current: password, password: PASSWORD })
    t.equal(changed.status, 204, changed.text)
    t.equal((await stranger.call('GET /session')).status, 401)
    const notices = await until(() => {
      const told = mails().filter((mail) => /^Subject: Your password was changed\r$/m.test(mail))
      return told.length >= 2 ? told : null
    }, MAIL_MS_MAX)
    for (const notice of notices) {
      t.match(notice, /^To: ada@a\.example\r$/m)
      t.notMatch(notice, /https?:/, 'no link is in it [session.notice]')
    }
    const own = (await ada.call('GET /me/sessions')).json.sessions
    t.match(own, [{ current: true, accountName: 'First account' }])
    t.equal(own.length, 1)
    t.notOk(mails().some((mail) => mail.includes('To: nobody@a.example')))
  },
)

t.test(
  'account: settings, keys, the next steps, the object of an id, and the log [member.settings] [member.audit]',
  async (t) => {
    t.match((await ada.call('PATCH /account', { monthlyCap: 1_000_000 })).json, {
      error: 'limit_too_high',
      max: 100_000,
    })
    t.match((await ada.call('PATCH /account', { monthlyCap: 20_000, name: 'Acme' })).json, {
      monthlyCap: 20_000,
      name: 'Acme',
    })
    const hidden = await ada.call('PATCH /account', { hideContent: true })
    t.equal(hidden.status, 200, hidden.text)
    const factors = await ada.call('PATCH /account', { requireSecondFactor: true })
    t.match(factors, { status: 409, json: { error: 'second_factor_required' } }, 'who has none asks it of nobody')
    t.match((await ada.call('GET /session')).json.account, { name: 'Acme', hideContent: true })
    t.match((await ada.call('POST /account/application', { monthlyVolume: 1, purpose: 'x' })).json, {
      error: 'account_not_pending',
    })
    const key = await ada.call('POST /account/tokens', { name: 'Second' })
    t.match(key.json, { name: 'Second', token: /^ak_/ })
    t.equal((await service.call('GET /v1/account', { token: key.json.token })).status, 200)
    t.match((await ada.call('POST /account/tokens', { name: 'Third' })).json, { error: 'token_limit' })
    t.equal((await ada.call(`POST /account/tokens/${key.json.tokenId}/revoke`)).status, 200)
    const message = {
      from: 'you@simulator.test',
      to: ['delivered@simulator.test'],
      subject: 'Hello',
      text: 'It works.',
    }
    const { messageId } = (await service.call('POST /v1/email', { token: testServer.token, body: message })).json
    t.match((await ada.call('POST /find', { text: messageId })).json, {
      kind: 'message',
      serverId: testServer.serverId,
    })
    t.match((await ada.call('POST /find', { text: testServer.streamId })).json, { kind: 'stream' })
    t.match((await ada.call('POST /find', { text: 'nothing' })).json, { kind: null })
    t.same((await ada.call('GET /checklist')).json, {
      message: true,
      webhook: false,
      domain: false,
      liveKey: false,
      secondAdministrator: false,
    })
    const { acts } = (await ada.call('GET /audit')).json
    const names = acts.map((one: { act: string }) => one.act)
    for (const name of [
      'createAccountKey',
      'revokeAccountToken',
      'patchSettings',
      'deleteMember',
      'patchMember',
      'createStream',
      'createInvitation',
      'signIn',
      'joinAccount',
    ])
      t.ok(names.includes(name), name)
    t.match(acts[0], { act: 'revokeAccountToken', userName: 'Ada', targets: { tokenId: key.json.tokenId } })
    for (const log of await redis.keys('*:account-audit:*'))
      t.notMatch(JSON.stringify(await redis.zrange(log, 0, -1)), '@')
    const page = (await ada.call(`GET /audit?limit=1&after=${acts[0].auditId}`)).json
    t.same([page.acts[0].auditId, page.acts.length], [acts[1].auditId, 1])
  },
)

t.test('people: the administrators of a new account are invited by mail [account.create]', async (t) => {
  const { operatorToken } = service.firstRun
  const made = await service.operate('POST /v1/operator/accounts', {
    token: operatorToken,
    body: { name: 'Northwind', administrators: ['zoe@z.example', 'yan@z.example', 'zoe@z.example'] },
  })
  t.equal(made.status, 201, made.text)
  const { accountId } = made.json
  const token = await mailedTo('zoe@z.example')
  const read = await new Browser(origin, '192.0.2.40').call('POST /links/read', { token })
  t.match(read.json, { purpose: 'invitation', accountName: 'Northwind', role: 'administrator' })
  const zoe = await come(token, { name: 'Zoe' }, '192.0.2.40')
  t.match((await zoe.call('GET /session')).json, { role: 'administrator', account: { accountId } })
  const { invitations } = (await zoe.call('GET /invitations')).json
  t.match(invitations, [{ address: 'yan@z.example', role: 'administrator' }], 'one for each address')
  t.equal(invitations.length, 1)
  const detail = await service.operate(`GET /v1/operator/accounts/${accountId}`, { token: operatorToken })
  t.same(detail.json.administrators, ['zoe@z.example', 'yan@z.example'], 'they are told of its domains as before')
})

t.test('people: a user without any account is deleted, and can return as a new user [member.index]', async (t) => {
  const rows = () => redis.keys(`*:user:${bobId}`)
  t.equal((await rows()).length, 1, 'for half an hour')
  // Only the owner may write what it holds in memory, so the time passes over a restart.
  await service.service.stop()
  await passTime(redis)
  await service.restart()
  await until(async () => (await rows()).length === 0, MAIL_MS_MAX)
  const { accountId } = (await ada.call('GET /session')).json.account
  const linked = await service.operate(`POST /v1/operator/accounts/${accountId}/link`, {
    token: service.firstRun.operatorToken,
    body: { address: 'bob@b.example', role: 'member', note: 'Bob is back' },
  })
  t.equal(linked.status, 201, linked.text)
  const token = Browser.tokenOf(linked.json.url)
  t.match((await ada.call('POST /links/read', { token })).json, { purpose: 'setup', needsPassword: 'choose' })
  const again = await come(token, { name: 'Robert' }, '192.0.2.2')
  t.match((await again.call('GET /me')).json, { name: 'Robert', totp: false })
})
