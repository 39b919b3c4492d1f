/** servers - an account key makes, lists, changes and removes servers, and their keys. */
import t from 'tap'
import { type CallOptions, startTestService } from '../support/service/service.ts'

const service = await startTestService()
const { account, liveServer, testServer, operatorToken } = service.firstRun
t.teardown(() => service.stop())

const call = (what: string, body?: object, options: CallOptions = {}) =>
  service.call(what, { token: account.token, ...(body && { body }), ...options })
const create = (body: object) => call('POST /v1/servers', body)
const operate = (what: string, body?: object) =>
  service.operate(what.replace(' ', ` /v1/operator/accounts/${account.accountId}`), {
    token: operatorToken,
    ...(body && { body }),
  })
const NAME_MAX = 'ü'.repeat(100)

t.test('servers: a new one sends with the key of its answer [server.create]', async (t) => {
  const made = await create({ name: 'Shop', mode: 'test' })
  t.equal(made.status, 201)
  const { key, ...server } = made.json
  t.match(key, { name: 'First key', revokedAt: null, prefix: key.token.slice(0, key.prefix.length) })
  t.match(key.token, /^sk_test_/)
  t.match(server, { name: 'Shop', mode: 'test', sendingDomains: [{ domain: 'simulator.test' }] })
  t.same((await call(`GET /v1/servers/${server.serverId.toUpperCase()}`)).json, server)
  t.same((await service.call('GET /v1/server', { token: key.token })).json, server)
  const sent = await service.call('POST /v1/email', {
    token: key.token,
    body: { from: 'a@simulator.test', to: ['b@example.com'], subject: 'x', text: 'x' },
  })
  t.equal(sent.status, 200)
  t.match((await create({ name: 'Real', mode: 'live', perMinuteLimit: 7, monthlyCap: 70 })).json, {
    key: { token: /^sk_[0-9A-Za-z]{8}_/ },
    limits: [
      { scope: 'account', limit: 300 },
      { scope: 'account', limit: 10_000 },
      { scope: 'server', period: 'minute', limit: 7, used: 0 },
      { scope: 'server', period: 'month', limit: 70, used: 0 },
    ],
  })
})

/** body, path of the one issue */
const WRONG: readonly [object, string][] = [
  [{ mode: 'live' }, 'name'],
  [{ name: '', mode: 'live' }, 'name'],
  [{ name: `${NAME_MAX}x`, mode: 'live' }, 'name'],
  [{ name: 'a', mode: 'staging' }, 'mode'],
  [{ name: 'a' }, 'mode'],
  [{ name: 'a', mode: 'live', perMinuteLimit: 0 }, 'perMinuteLimit'],
  [{ name: 'a', mode: 'live', perMinuteLimit: 1.5 }, 'perMinuteLimit'],
  [{ name: 'a', mode: 'live', monthlyCap: 1_000_000_001 }, 'monthlyCap'],
  [{ name: 'a', mode: 'live', monthlyCap: '5' }, 'monthlyCap'],
  [{ name: 'a', mode: 'test', monthlyCap: 5 }, 'monthlyCap'],
  [{ name: 'a', mode: 'test', perMinuteLimit: 5 }, 'perMinuteLimit'],
  [{ name: 'a', mode: 'live', note: 'x' }, 'note'],
]

t.test('servers: invalid bodies name the field [server.create, server.limits, name.max]', async (t) => {
  for (const [body, path] of WRONG) {
    const { status, json } = await create(body)
    t.equal(status, 400, JSON.stringify(body))
    t.same(
      json.issues.map((issue: { path: string }) => issue.path),
      [path],
    )
  }
  const made = await create({ name: NAME_MAX, mode: 'live', perMinuteLimit: null, monthlyCap: null })
  t.equal(made.json.name, NAME_MAX)
  t.equal((await call(`DELETE /v1/servers/${made.json.serverId}`)).status, 204)
})

t.test('servers: refusals, the earlier one first [refusal.order]', async (t) => {
  const { serverLimit } = (await call('GET /v1/account')).json
  t.match((await create({ name: 'Live', mode: 'live', perMinuteLimit: 301 })).json, {
    error: 'limit_too_high',
    max: 300,
  })
  t.match((await create({ name: 'x', mode: 'live', monthlyCap: 10_001 })).json, {
    error: 'limit_too_high',
    max: 10_000,
  })
  t.equal((await create({ name: 'Live', mode: 'live', perMinuteLimit: 300 })).status, 409)
  await operate('PATCH ', { serverLimit: 4 })
  t.match((await create({ name: 'Live', mode: 'test' })).json, {
    error: 'server_exists',
    serverId: liveServer.serverId,
  })
  t.match((await create({ name: 'Fifth', mode: 'test' })).json, { error: 'server_limit', max: 4 })
  await operate('PATCH ', { serverLimit: 5 })
  t.equal((await create({ name: 'Fifth', mode: 'test' })).status, 201)
  t.match((await create({ name: 'Sixth', mode: 'test' })).json, { error: 'server_limit', max: 5 })
  await operate('PATCH ', { serverLimit })
})

t.test('servers: listed newest first, page by page [server.list]', async (t) => {
  const all = (await call('GET /v1/servers')).json
  const names = all.servers.map(({ name }: { name: string }) => name)
  t.same(names, ['Fifth', 'Real', 'Shop', 'Test', 'Live'])
  t.equal(all.next, null)
  const paged: string[] = []
  for (let after = ''; ; ) {
    const { json } = await call(`GET /v1/servers?limit=2${after}`)
    paged.push(...json.servers.map(({ name }: { name: string }) => name))
    if (json.next === null) break
    after = `&after=${json.next}`
  }
  t.same(paged, names)
  t.same((await operate('GET /servers')).json, all, 'the operator sees the same')
  for (const query of ['limit=0', 'limit=101', 'after=x', 'mode=live'])
    t.equal((await call(`GET /v1/servers?${query}`)).status, 400, query)
})

t.test('servers: a change applies from the next request [server.change, server.limits]', async (t) => {
  const patch = (body: object, id = liveServer.serverId) => call(`PATCH /v1/servers/${id}`, body)
  t.match((await patch({ name: 'Main', perMinuteLimit: 2, monthlyCap: 3 })).json, {
    name: 'Main',
    limits: [{}, {}, { scope: 'server', limit: 2 }, { scope: 'server', limit: 3 }],
  })
  t.match((await service.call('GET /v1/server', { token: liveServer.token })).json, { name: 'Main' })
  t.match((await patch({ perMinuteLimit: null, monthlyCap: null })).json.limits.length, 2)
  t.match((await patch({ name: 'Test' })).json, { error: 'server_exists', serverId: testServer.serverId })
  t.match((await patch({ name: 'Test', monthlyCap: 10_001 })).json, { error: 'limit_too_high', max: 10_000 })
  t.equal((await patch({ name: 'Live' })).status, 200)
  t.equal((await patch({})).status, 200)
  for (const body of [{ mode: 'test' }, { name: '' }, { perMinuteLimit: 0 }]) t.equal((await patch(body)).status, 400)
  const wrong = await patch({ perMinuteLimit: 1, monthlyCap: null }, testServer.serverId)
  t.match(wrong, { status: 400, json: { issues: [{ path: 'perMinuteLimit' }] } })
  t.equal((await patch({ perMinuteLimit: null, name: 'Test' }, testServer.serverId)).status, 200)
})

t.test('servers: two live keys, a rotation, and unknown ids [key.live.max, key.revoke]', async (t) => {
  const at = `/v1/servers/${liveServer.serverId}/tokens`
  const second = await call(`POST ${at}`, { name: 'Second' })
  t.equal(second.status, 201)
  t.match((await call(`POST ${at}`, { name: 'Third' })).json, { error: 'token_limit', max: 2 })
  const [, first] = (await call(`GET ${at}`)).json.tokens
  t.equal(first.prefix, liveServer.token.slice(0, first.prefix.length))
  t.equal((await call(`POST ${at}/${first.tokenId}/revoke`)).status, 200)
  t.equal((await service.call('GET /v1/server', { token: liveServer.token })).status, 401)
  t.equal((await service.call('GET /v1/server', { token: second.json.token })).status, 200)
  t.equal((await call(`POST ${at}`, { name: 'x'.repeat(100) })).status, 201)
  for (const body of [{}, { name: '' }, { name: 'x'.repeat(101) }, { name: 'x', y: 1 }])
    t.equal((await call(`POST ${at}`, body)).status, 400)
  for (const id of ['x', testServer.serverId, account.accountId])
    t.equal((await call(`POST ${at}/${id}/revoke`)).status, 404)
  for (const id of [
    'x',
    account.accountId,
    '01a1f8d8-8300-7000-8000-0e7faee555a7',
    '01a1f8d8-8300-7005-8000-0e7faee555a7',
  ]) {
    t.equal((await call(`GET /v1/servers/${id}`)).status, 404)
    t.equal((await call(`PATCH /v1/servers/${id}`, {})).status, 404)
    t.equal((await call(`DELETE /v1/servers/${id}`)).status, 404)
    t.equal((await call(`GET /v1/servers/${id}/tokens`)).status, 404)
    t.equal((await call(`POST /v1/servers/${id}/tokens`, { name: 'x' })).status, 404)
  }
  for (const what of ['GET /v1/servers', `DELETE /v1/servers/${testServer.serverId}`])
    t.equal((await service.call(what, { token: testServer.token })).json.error, 'wrong_token_kind')
})

t.test('servers: a server of another account is not there', async (t) => {
  const other = await service.operate('POST /v1/operator/accounts', {
    token: operatorToken,
    body: { name: 'Other', administrators: [] },
  })
  const foreign = await service.operate(`POST /v1/operator/accounts/${other.json.accountId}/servers`, {
    token: operatorToken,
    body: { name: 'Theirs', mode: 'live' },
  })
  t.equal(foreign.status, 201)
  t.equal((await call(`GET /v1/servers/${foreign.json.serverId}`)).status, 404)
  t.equal((await call(`DELETE /v1/servers/${foreign.json.serverId}`)).status, 404)
})

t.test('servers: removed, its keys are dead and its name is free [server.remove]', async (t) => {
  const { json } = await create({ name: 'Brief', mode: 'test' })
  const at = `/v1/servers/${json.serverId}`
  t.equal((await call(`DELETE ${at}`)).status, 204)
  t.equal((await call(`DELETE ${at}`)).status, 404)
  t.equal((await call(`GET ${at}`)).status, 404)
  t.equal((await call(`GET ${at}/tokens`)).status, 404)
  t.equal((await service.call('GET /v1/server', { token: json.key.token })).status, 401)
  const { servers } = (await call('GET /v1/servers')).json
  t.notOk(servers.some(({ serverId }: { serverId: string }) => serverId === json.serverId))
  t.equal((await create({ name: 'Brief', mode: 'live' })).status, 201)
})
