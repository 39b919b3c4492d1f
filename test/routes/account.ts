/** account - an account key reads its account and manages its keys. */
import t from 'tap'
import { startTestService } from '../support/service/service.ts'

const service = await startTestService()
const { account, liveServer, operatorToken } = service.firstRun
t.teardown(() => service.stop())

const call = (what: string, token = account.token) => service.call(what, { token })

t.test('account: status, caps and limits of the key’s account [account.read]', async (t) => {
  const { status, json } = await call('GET /v1/account')
  t.equal(status, 200)
  t.match(json, {
    accountId: account.accountId,
    name: 'First account',
    status: 'active',
    approvedCap: 10_000,
    monthlyCap: 10_000,
    highestCap: null,
    serverLimit: 10,
    subscriptionActive: true,
  })
  t.equal((await call('GET /v1/account', liveServer.token)).json.error, 'wrong_token_kind')
  t.equal((await call('GET /v1/account?x=1')).status, 400)
})

t.test('account: keys are listed newest first, and revoked from the answer on [key.revoke, key.list]', async (t) => {
  const [first] = (await call('GET /v1/account/tokens')).json.tokens
  t.match(first, { name: 'First key', revokedAt: null, prefix: account.token.slice(0, 11) })
  t.notOk('token' in first)
  const made = await service.operate(`POST /v1/operator/accounts/${account.accountId}/tokens`, {
    token: operatorToken,
    body: { name: 'Second' },
  })
  t.equal(made.status, 201)
  t.match(made.json.token, /^ak_/)
  const third = await service.operate(`POST /v1/operator/accounts/${account.accountId}/tokens`, {
    token: operatorToken,
    body: { name: 'Third' },
  })
  t.match(third, { status: 409, json: { error: 'token_limit', max: 2 } })
  const second = made.json.token as string
  t.equal((await call('GET /v1/account', second)).status, 200)
  const page = await call('GET /v1/account/tokens?limit=1')
  t.match(page.json, { tokens: [{ name: 'Second' }], next: made.json.tokenId })
  t.match((await call(`GET /v1/account/tokens?limit=1&after=${page.json.next}`)).json, {
    tokens: [{ name: 'First key' }],
    next: null,
  })
  const revoked = await call(`POST /v1/account/tokens/${made.json.tokenId.toUpperCase()}/revoke`)
  t.equal(revoked.status, 200)
  t.type(revoked.json.revokedAt, 'string')
  for (const what of ['GET /v1/account', 'GET /v1/account/tokens', 'GET /v1/servers', 'GET /v1/domains'])
    t.equal((await call(what, second)).status, 401, what)
  t.equal((await call(`POST /v1/account/tokens/${made.json.tokenId}/revoke`, second)).status, 401)
  t.same((await call(`POST /v1/account/tokens/${made.json.tokenId}/revoke`)).json, revoked.json, 'unchanged')
  for (const id of ['x', account.accountId, liveServer.serverId])
    t.equal((await call(`POST /v1/account/tokens/${id}/revoke`)).json.error, 'not_found')
})

t.test('account: reads of a closed one are answered, and every write is 403 [account.closed]', async (t) => {
  const operate = (act: string) =>
    service.operate(`POST /v1/operator/accounts/${account.accountId}/${act}`, { token: operatorToken, body: {} })
  const { tokens } = (await call('GET /v1/account/tokens')).json
  t.equal((await operate('close')).status, 200)
  const id = liveServer.serverId
  const token = account.token
  const reads = ['/account', '/account/tokens', '/account/retention', '/servers', '/domains']
  for (const what of [...reads, ...['', '/tokens', '/retention'].map((path) => `/servers/${id}${path}`)])
    t.equal((await call(`GET /v1${what}`)).status, 200, what)
  const writes: [what: string, body?: object][] = [
    [`POST /v1/account/tokens/${tokens[0].tokenId}/revoke`],
    ['POST /v1/servers', { name: 'x', mode: 'live' }],
    [`PATCH /v1/servers/${id}`, {}],
    [`PATCH /v1/account/retention`, {}],
    [`PATCH /v1/servers/${id}/retention`, {}],
    [`DELETE /v1/servers/${id}`],
    [`DELETE /v1/servers/none`],
    [`POST /v1/servers/${id}/tokens`, { name: 'x' }],
    [`POST /v1/servers/none/tokens`, { name: 'x' }],
    [`POST /v1/servers/${id}/tokens/x/revoke`],
    ['POST /v1/domains', { domain: 'acme.example' }],
  ]
  for (const [what, body] of writes) {
    const called = await service.call(what, { token, ...(body && { body }) })
    t.match(called, { status: 403, json: { error: 'account_not_active' } }, what)
  }
  t.equal((await service.call('GET /v1/server', { token: liveServer.token })).status, 200)
})
