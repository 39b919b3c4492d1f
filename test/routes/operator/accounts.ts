/** accounts - accounts made, listed, changed, approved, paused, resumed and closed, over the whole service. */
import { Redis } from 'ioredis'
import t from 'tap'
import { SHARDS_TOGETHER } from '../../../src/actors/account/create-account.ts'
import { Browser } from '../../support/clients/browser.ts'
import { until } from '../../support/machine/until.ts'
import { startTestService } from '../../support/service/service.ts'

const service = await startTestService({ BILLING: 'on', APPROVAL: 'manual' })
const { testServer, liveServer, account, operatorToken } = service.firstRun
t.teardown(() => service.stop())

const BODY = { from: 'you@simulator.test', to: ['one@example.com'], subject: 'Hello', text: 'x' }
const send = (token: string, headers: Record<string, string> = {}, body: object = BODY) =>
  service.call('POST /v1/email', { token, body, headers })

function patch(body: unknown, { id = account.accountId, token = operatorToken } = {}) {
  return service.operate(`PATCH /v1/operator/accounts/${id}`, { token, body })
}

const operate = (what: string, body?: object) =>
  service.operate(what.replace(' ', ' /v1/operator/accounts'), { token: operatorToken, ...(body && { body }) })
const ACCOUNT = `/${account.accountId}`

t.test('patch: the account as it is afterwards', async (t) => {
  const { status, json } = await patch({})
  t.equal(status, 200)
  t.match(json, {
    accountId: account.accountId,
    status: 'pending',
    approvedCap: 10_000,
    monthlyCap: 10_000,
    highestCap: null,
    serverLimit: 10,
    subscriptionActive: true,
  })
  t.strictSame(
    json.limits.map((one: Record<string, unknown>) => [one.scope, one.period, one.limit]),
    [
      ['account', 'minute', 300],
      ['account', 'month', 10_000],
      ['test', 'minute', 300],
      ['test', 'month', 10_000],
    ],
  )
  const changed = await patch({
    perMinuteLimit: 11,
    approvedCap: 12,
    monthlyCap: 100,
    highestCap: 1000,
    serverLimit: 13,
    testPerMinuteLimit: 14,
    testMonthlyCap: 15,
    inboundPerMinuteLimit: 16,
    note: 'asked for by phone',
  })
  t.match(changed.json, { approvedCap: 12, monthlyCap: 100, highestCap: 1000, serverLimit: 13 })
  t.strictSame(
    changed.json.limits.map(({ limit }: { limit: number }) => limit),
    [11, 100, 14, 15],
  )
})

t.test('patch: a monthly cap above the highest is refused, null is ten times the approved one', async (t) => {
  t.match((await patch({ monthlyCap: 1001 })).json, { error: 'limit_too_high', max: 1000 })
  t.equal((await patch({ monthlyCap: 1000 })).status, 200)
  t.match((await patch({ highestCap: null })).json, { error: 'limit_too_high', max: 120 })
  t.equal((await patch({ highestCap: null, monthlyCap: 120 })).status, 200)
})

t.test('patch: figures out of bounds, unknown fields, foreign ids and keys', async (t) => {
  for (const body of [
    { monthlyCap: 0 },
    { serverLimit: 1_000_000_001 },
    { perMinuteLimit: 1.5 },
    { cap: 1 },
    { note: '' },
  ])
    t.equal((await patch(body)).status, 400)
  for (const id of ['x', testServer.serverId, '01a1f8d8-8300-7005-8000-0e7faee555a7'])
    t.equal((await patch({}, { id })).json.error, 'not_found')
  for (const token of [account.token, testServer.token, `${operatorToken}x`])
    t.equal((await patch({}, { token })).status, 401)
  t.equal(
    (await service.call(`PATCH /v1/operator/accounts/${account.accountId}`, { token: account.token })).status,
    404,
  )
})

t.test('a changed limit counts from the next request', async (t) => {
  await patch({ testPerMinuteLimit: 1_000_000, testMonthlyCap: 1 })
  t.equal((await send(testServer.token)).status, 200)
  t.equal((await send(testServer.token)).json.error, 'cap_reached')
  await patch({ testMonthlyCap: 2 })
  t.equal((await send(testServer.token)).status, 200)
  t.equal((await send(testServer.token)).json.error, 'cap_reached')
  await patch({ testMonthlyCap: 1000 })
})

t.test('payment comes before the state of the account, a replay before both', async (t) => {
  const key = { 'idempotency-key': 'paid' }
  const first = await send(testServer.token, key)
  t.equal(first.status, 200)
  t.equal((await send(liveServer.token)).json.error, 'account_not_active', 'pending: no live sends')
  await patch({ subscriptionActive: false })
  t.equal((await send(liveServer.token)).json.error, 'payment_required')
  t.equal((await send(testServer.token)).status, 402)
  t.equal((await send(testServer.token, key)).text, first.text)
  t.equal((await send(testServer.token, key, { ...BODY, tag: 'x' })).json.error, 'idempotency_key_reused')
  await patch({ subscriptionActive: true })
  t.equal((await send(testServer.token)).status, 200)
})

t.test('approve: a pending account can send from then on, with the approved cap [account.states]', async (t) => {
  for (const body of [{ monthlyCap: '' }, { monthlyCap: 0 }, { monthlyCap: 1_000_000_001 }, { monthlyCap: 5, cap: 5 }])
    t.equal((await operate(`POST ${ACCOUNT}/approve`, body)).status, 400)
  for (const act of ['pause', 'resume']) t.equal((await operate(`POST ${ACCOUNT}/${act}`, {})).status, 403)
  const { status, json } = await operate(`POST ${ACCOUNT}/approve`, { monthlyCap: 50_000, perMinuteLimit: 400 })
  t.equal(status, 200)
  t.match(json, { status: 'active', approvedCap: 50_000, monthlyCap: 50_000, highestCap: null })
  t.equal(json.limits[0].limit, 400)
  t.match(await operate(`POST ${ACCOUNT}/approve`, { monthlyCap: 5 }), {
    status: 409,
    json: { error: 'account_not_pending' },
  })
  t.equal((await send(liveServer.token)).json.error, 'domain_not_verified', 'no longer the account')
})

t.test('pause: refuses only sends; accepted mail waits, and leaves after the resume [account.hold]', async (t) => {
  await patch({ testPerMinuteLimit: 1_000_000, testMonthlyCap: 1_000_000 })
  // A deferred message has its next attempt two seconds later.
  const sent = await send(testServer.token, {}, { ...BODY, to: ['deferred@simulator.test'] })
  const read = async () =>
    (await service.call(`GET /v1/messages/${sent.json.messageId}`, { token: testServer.token })).json
  await until(async () => (await read()).status === 'deferred', 10_000)
  t.match((await operate(`POST ${ACCOUNT}/pause`, {})).json, { status: 'paused' })
  const again = await operate(`POST ${ACCOUNT}/pause`, { hold: true })
  t.match(again, { status: 200, json: { status: 'paused' } })
  if ((await read()).status === 'delivered') {
    t.comment('the machine stood still: the last attempt came before the hold')
    await operate(`POST ${ACCOUNT}/resume`, {})
    return
  }
  for (const token of [testServer.token, liveServer.token])
    t.match(await send(token), { status: 403, json: { error: 'account_paused' } })
  t.equal(
    (await service.call('POST /v1/domains', { token: account.token, body: { domain: 'acme.example' } })).status,
    201,
  )
  const redis = new Redis({ path: service.redis.socketPath })
  const held = () => redis.zcard(`{s000}:held:${account.accountId}`)
  t.ok(await until(async () => (await held()) === 1, 10_000), 'its turn came, and it waits')
  t.match((await operate(`GET ${ACCOUNT}`)).json, { status: 'paused', held: true })
  t.equal((await read()).status, 'deferred')
  t.match((await operate(`POST ${ACCOUNT}/resume`, {})).json, { status: 'active' })
  t.equal((await operate(`POST ${ACCOUNT}/resume`, {})).status, 200, 'unchanged')
  const message = await until(async () => {
    const one = await read()
    return one.status === 'delivered' ? one : null
  }, 10_000)
  t.ok(message.recipients[0].attempts > 1, 'its attempts are counted on')
  t.equal(await held(), 0)
  redis.disconnect()
  t.equal((await send(testServer.token)).status, 200)
})

t.test('pause without hold: accepted mail is delivered [account.hold]', async (t) => {
  const sent = await send(testServer.token, {}, { ...BODY, to: ['deferred@simulator.test'] })
  t.match((await operate(`POST ${ACCOUNT}/pause`, { hold: false })).json, { status: 'paused' })
  t.match((await operate(`GET ${ACCOUNT}`)).json, { held: false })
  await until(async () => {
    const { json } = await service.call(`GET /v1/messages/${sent.json.messageId}`, { token: testServer.token })
    return json.status === 'delivered'
  }, 10_000)
  await operate(`POST ${ACCOUNT}/resume`, {})
  t.equal((await operate(`POST ${ACCOUNT}/pause`, { hold: 'yes' })).status, 400)
})

t.test(
  'create: pending until approved, without server and key; listed over all shards [account.create, account.list]',
  async (t) => {
    const ids = [account.accountId]
    for (let n = 0; n < 20; n++) {
      const { status, json } = await operate('POST ', {
        name: `Account ${n}`,
        administrators: ['ann@acme.example'],
        note: 'x',
      })
      t.equal(status, 201)
      t.match(json, {
        name: `Account ${n}`,
        status: 'pending',
        approvedCap: 10_000,
        monthlyCap: 10_000,
        serverLimit: 10,
      })
      ids.push(json.accountId)
    }
    const shards = new Set(ids.map((id) => id.slice(15, 18)))
    t.equal(shards.size, SHARDS_TOGETHER, 'placed over the shards that are filled together')
    t.same((await operate(`GET /${ids[1]}/servers`)).json, { servers: [], next: null })
    t.same((await operate(`GET /${ids[1]}/tokens`)).json, { tokens: [], next: null })
    const whole = (await operate('GET ?limit=100')).json
    t.same(
      whole.accounts.map(({ accountId }: { accountId: string }) => accountId),
      [...ids].sort().reverse(),
    )
    t.equal(whole.next, null)
    const paged: object[] = []
    for (let after = ''; ; ) {
      const { json } = await operate(`GET ?limit=4${after}`)
      paged.push(...json.accounts)
      if (json.next === null) break
      after = `&after=${json.next}`
    }
    t.same(paged, whole.accounts)
    for (const query of ['limit=0', 'limit=101', 'after=x', 'status=active'])
      t.equal((await operate(`GET ?${query}`)).status, 400, query)
  },
)

t.test('create: invalid bodies name the field [account.create, operator.note]', async (t) => {
  const body = { name: 'x', administrators: ['ann@acme.example'] }
  const cases: [object, string][] = [
    [{ name: 'x' }, 'administrators'],
    [{ administrators: [] }, 'name'],
    [{ ...body, name: '' }, 'name'],
    [{ ...body, name: 'x'.repeat(101) }, 'name'],
    [{ ...body, administrators: ['nobody'] }, 'administrators.0'],
    [{ ...body, administrators: Array(51).fill('ann@acme.example') }, 'administrators'],
    [{ ...body, note: 'x'.repeat(1001) }, 'note'],
    [{ ...body, mode: 'live' }, 'mode'],
  ]
  for (const [wrong, path] of cases)
    t.match(
      await operate('POST ', wrong),
      { status: 400, json: { issues: [{ path }] } },
      JSON.stringify(wrong).slice(0, 60),
    )
  const most = { name: 'x'.repeat(100), administrators: Array(50).fill('ann@acme.example'), note: 'x'.repeat(1000) }
  t.equal((await operate('POST ', most)).status, 201)
})

t.test('read: administrators are shown to the operator, and are in no stream [account.detail]', async (t) => {
  const { json } = await operate('POST ', {
    name: 'Seen',
    administrators: ['ann@acme.example', 'bob@acme.example', 'ann@acme.example'],
  })
  const { json: detail } = await operate(`GET /${json.accountId.toUpperCase()}`)
  t.match(detail, {
    ...json,
    administrators: ['ann@acme.example', 'bob@acme.example'],
    held: false,
    servers: 0,
    last24Hours: { delivered: 0, bounced: 0, complained: 0, bounceRate: null, complaintRate: null },
  })
  const redis = new Redis({ path: service.redis.socketPath })
  for (const key of await redis.keys('*')) {
    if ((await redis.type(key)) !== 'stream') continue
    t.notMatch(JSON.stringify(await redis.xrange(key, '-', '+')), 'acme.example"', key)
  }
  redis.disconnect()
  for (const id of ['x', testServer.serverId, '01a1f8d8-8300-7005-8000-0e7faee555a7'])
    t.equal((await operate(`GET /${id}`)).status, 404)
})

t.test(
  'close: reads answer, writes do not, accepted mail is still delivered [account.states, account.closed]',
  async (t) => {
    const sent = await send(testServer.token, {}, { ...BODY, to: ['deferred@simulator.test'] })
    await operate(`POST ${ACCOUNT}/pause`, {})
    t.match((await operate(`POST ${ACCOUNT}/close`, { note: 'gone' })).json, { status: 'closed' })
    for (const [act, error] of [
      ['close', 'account_closed'],
      ['pause', 'account_closed'],
      ['resume', 'account_closed'],
    ])
      t.match(await operate(`POST ${ACCOUNT}/${act}`, {}), { status: 409, json: { error } })
    t.match((await operate(`POST ${ACCOUNT}/approve`, { monthlyCap: 5 })).json, { error: 'account_not_pending' })
    t.equal((await patch({ monthlyCap: 5 })).json.error, 'account_closed')
    for (const token of [testServer.token, liveServer.token])
      t.match(await send(token), { status: 403, json: { error: 'account_not_active' } })
    t.equal((await operate(`GET ${ACCOUNT}`)).json.status, 'closed')
    await until(async () => {
      const { json } = await service.call(`GET /v1/messages/${sent.json.messageId}`, { token: testServer.token })
      return json.status === 'delivered'
    }, 10_000)
  },
)

t.test('approve: without a cap by the requested volume; above 1,000,000 the cap is required', async (t) => {
  const { accountId } = (await operate('POST ', { name: 'Northwind', administrators: [] })).json
  const token = operatorToken
  const link = { token, body: { address: 'ada@northwind.example' } }
  const { url } = (await service.operate(`POST /v1/operator/accounts/${accountId}/link`, link)).json
  const ada = new Browser(`http://127.0.0.1:${service.config.httpPort}`)
  const body = { token: Browser.tokenOf(url), name: 'Ada', password: 'correct horse battery' }
  t.equal((await ada.call('POST /links/consume', body)).status, 200)
  const apply = (monthlyVolume: number) => ada.call('POST /account/application', { monthlyVolume, purpose: 'Receipts' })
  t.equal((await apply(1_000_001)).status, 200)
  const { status, json } = await operate(`POST /${accountId}/approve`, {})
  t.equal(status, 400)
  t.match(json, { error: 'invalid_request', issues: [{ path: 'monthlyCap', message: /applied for 1000001 emails/ }] })
  t.equal((await apply(60_000)).status, 200)
  const approved = await operate(`POST /${accountId}/approve`, {})
  t.match(approved, { status: 200, json: { status: 'active', approvedCap: 250_000, monthlyCap: 250_000 } })
  t.match(await operate(`POST /${accountId}/approve`, {}), { status: 409, json: { error: 'account_not_pending' } })
})
