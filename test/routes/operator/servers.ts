/** servers - servers of an account, and the keys of both, by the operator. */
import t from 'tap'
import { startTestService } from '../../support/service/service.ts'

const service = await startTestService()
const { account, liveServer, testServer, operatorToken } = service.firstRun
t.teardown(() => service.stop())

const operate = (what: string, body?: object, token = operatorToken) =>
  service.operate(what.replace(' ', ' /v1/operator'), { token, ...(body && { body }) })
const ACCOUNT = `/accounts/${account.accountId}`
const UNKNOWN = '01a1f8d8-8300-7000-8000-0e7faee555a7'

t.test('operator-servers: a new server and new keys work at once [server.create, key.create]', async (t) => {
  const made = await operate(`POST ${ACCOUNT}/servers`, {
    name: 'Given',
    mode: 'live',
    perMinuteLimit: 5,
    note: 'why',
  })
  t.equal(made.status, 201)
  t.match((await service.call('GET /v1/server', { token: made.json.key.token })).json, { name: 'Given' })
  const second = await operate(`POST /servers/${made.json.serverId}/tokens`, { name: 'Second', note: 'why' })
  t.match(second.json.token, /^sk_[0-9A-Za-z]{8}_/)
  t.equal((await service.call('GET /v1/server', { token: second.json.token })).status, 200)
  t.match((await operate(`POST /servers/${made.json.serverId}/tokens`, { name: 'Third' })).json, {
    error: 'token_limit',
    max: 2,
  })
  const list = (await operate(`GET /servers/${made.json.serverId}/tokens`)).json
  t.same(
    list.tokens.map(({ name }: { name: string }) => name),
    ['Second', 'First key'],
  )
  const at = `/servers/${made.json.serverId}/tokens/${second.json.tokenId}/revoke`
  t.type((await operate(`POST ${at}`, {})).json.revokedAt, 'string')
  t.equal((await service.call('GET /v1/server', { token: second.json.token })).status, 401)
  t.match((await operate(`POST /servers/${testServer.serverId}/tokens`, { name: 'x' })).json.token, /^sk_test_/)
  const own = await operate(`POST ${ACCOUNT}/tokens`, { name: 'Account' })
  t.equal((await service.call('GET /v1/account', { token: own.json.token })).status, 200)
  t.equal((await operate(`POST ${ACCOUNT}/tokens/${own.json.tokenId}/revoke`, {})).status, 200)
  t.equal((await service.call('GET /v1/account', { token: own.json.token })).status, 401)
  t.equal((await operate(`GET ${ACCOUNT}/tokens`)).json.tokens.length, 2)
})

t.test('operator-servers: the rules of the account apply to the operator too [server.limits]', async (t) => {
  t.match((await operate(`POST ${ACCOUNT}/servers`, { name: 'Live', mode: 'live' })).json, {
    error: 'server_exists',
    serverId: liveServer.serverId,
  })
  t.match((await operate(`POST ${ACCOUNT}/servers`, { name: 'x', mode: 'live', monthlyCap: 10_001 })).json, {
    error: 'limit_too_high',
    max: 10_000,
  })
  t.match(await operate(`POST ${ACCOUNT}/servers`, { name: 'x', mode: 'test', monthlyCap: 1 }), {
    status: 400,
    json: { issues: [{ path: 'monthlyCap' }] },
  })
})

t.test('operator-servers: unknown ids, and keys of others', async (t) => {
  const paths: [what: string, body?: object][] = [
    ['GET /accounts/{id}/servers'],
    ['POST /accounts/{id}/servers', { name: 'x', mode: 'live' }],
    ['GET /accounts/{id}/tokens'],
    ['POST /accounts/{id}/tokens', { name: 'x' }],
    ['POST /accounts/{id}/tokens/x/revoke', {}],
    ['GET /servers/{id}/tokens'],
    ['POST /servers/{id}/tokens', { name: 'x' }],
    ['POST /servers/{id}/tokens/x/revoke', {}],
  ]
  for (const [path, body] of paths) {
    for (const id of ['x', UNKNOWN, UNKNOWN.replace('-7000-', '-7fff-')]) {
      const called = await operate(path.replace('{id}', id), body)
      t.match(called, { status: 404, json: { error: 'not_found' } }, `${path} ${id}`)
    }
    const id = path.includes('/servers/{') ? liveServer.serverId : account.accountId
    for (const token of [account.token, liveServer.token])
      t.equal((await operate(path.replace('{id}', id), body, token)).status, 401, path)
  }
})

t.test('operator-servers: in a closed account nothing is created or revoked [account.closed]', async (t) => {
  const [{ tokenId }] = (await operate(`GET ${ACCOUNT}/tokens`)).json.tokens
  await operate(`POST ${ACCOUNT}/close`, {})
  const writes: [what: string, body: object][] = [
    [`POST ${ACCOUNT}/servers`, { name: 'x', mode: 'live' }],
    [`POST ${ACCOUNT}/tokens`, { name: 'x' }],
    [`POST ${ACCOUNT}/tokens/${tokenId}/revoke`, {}],
    [`POST /servers/${liveServer.serverId}/tokens`, { name: 'x' }],
  ]
  for (const [what, body] of writes)
    t.match(await operate(what, body), { status: 409, json: { error: 'account_closed' } })
  t.equal((await operate(`GET ${ACCOUNT}/servers`)).status, 200)
})
