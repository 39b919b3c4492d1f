/** operator-accounts - PATCH /v1/operator/accounts/{accountId}, and billing and approval, over the whole service. */
import t from 'tap'
import { startTestService } from '../support/service.ts'

const service = await startTestService({ BILLING: 'on', APPROVAL: 'manual' })
const { testServer, liveServer, account, operatorToken } = service.firstRun
t.teardown(() => service.stop())

const BODY = { from: 'you@simulator.test', to: ['one@example.com'], subject: 'Hello', text: 'x' }
const send = (token: string, headers: Record<string, string> = {}, body: object = BODY) =>
  service.call('POST /v1/email', { token, body, headers })

function patch(body: unknown, { id = account.accountId, token = operatorToken } = {}) {
  return service.operate(`PATCH /v1/operator/accounts/${id}`, { token, body })
}

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
