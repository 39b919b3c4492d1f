/** requests - the log of requests on a running service: what is kept of each request, and what is not. */
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import t from 'tap'
import type { RequestEntry } from '../../schemas/request-log.ts'
import { until } from '../support/machine/until.ts'
import { startTestService } from '../support/service/service.ts'

// The listener knows the clients only if a rate is set.
const service = await startTestService({ EDGE_RATE: '10000', EDGE_BURST: '10000' })
const redis = new Redis({ path: service.redis.socketPath })
const { testServer, liveServer, account } = service.firstRun
t.teardown(async () => {
  redis.disconnect()
  await service.stop()
})

const WAIT_MS = 30_000
const AGENT = 'Shop/2.1 (ops@acme.example)'
const search = async (body: object = {}, token = testServer.token) =>
  (await service.call('POST /v1/requests/search', { token, body })).json
/** The request of an answer, once it is written. */
const found = (headers: Headers, token = testServer.token) =>
  until(async () => {
    const seen = await service.call(`GET /v1/requests/${headers.get('request-id')}`, { token })
    return seen.status === 200 ? (seen.json as RequestEntry) : null
  }, WAIT_MS)

t.test('requests: the entry of a request, answered and refused [request.log]', async (t) => {
  const { token } = testServer
  const message = { from: 'you@simulator.test', to: ['a@simulator.test'], subject: 'x', text: 'secret words' }
  const headers = { 'user-agent': AGENT }
  const sent = await service.call('POST /v1/email', { token, body: message, headers })
  const one = await found(sent.headers)
  t.match(one, {
    requestId: sent.headers.get('request-id'),
    serverId: testServer.serverId,
    method: 'POST',
    path: '/v1/email',
    status: 200,
    error: null,
    issue: null,
    prefix: token.slice(0, token.lastIndexOf('_')),
    client: '127.0.0.1',
    userAgent: 'Shop/2.1 (<address>)',
    messageIds: [sent.json.messageId],
  })
  t.ok(Math.abs(Date.parse(one.receivedAt) - Date.now()) < 60_000)
  const batch = await service.call('POST /v1/email/batch', { token, body: { messages: [message, message] } })
  t.same(
    (await found(batch.headers)).messageIds,
    batch.json.messages.map(({ messageId }: { messageId: string }) => messageId),
  )
  const bad = await service.call('POST /v1/email', { token, body: { ...message, 'ada@example.net': 1 } })
  t.match(await found(bad.headers), { status: 400, error: 'invalid_request', issue: '<address>', messageIds: [] })
  const nowhere = await service.call('GET /v1/nowhere', { token })
  t.match(await found(nowhere.headers), { path: null, status: 404, error: 'not_found' })
  const wrong = await service.call('GET /v1/account', { token })
  t.match(await found(wrong.headers), { path: '/v1/account', status: 403, error: 'wrong_token_kind' })
  const read = await service.call(`GET /v1/messages/${sent.json.messageId}`, { token })
  t.match(await found(read.headers), { path: '/v1/messages/{id}', messageIds: [] }, 'one that only reads it')
  t.same((await search({ messageId: sent.json.messageId })).requests, [one])
  const stored = await Promise.all((await redis.keys('*:requests:*')).map((key) => redis.xrange(key, '-', '+')))
  t.ok(stored.length > 0 && !/@|secret/.test(JSON.stringify(stored)))
  t.ok((await Promise.all((await redis.keys('*:requests:*')).map((key) => redis.pttl(key)))).every((ms) => ms > 0))
})

t.test('requests: each key sees its own, page by page, newest first [list.page]', async (t) => {
  const of = async (token: string) => (await service.call('DELETE /v1/server', { token })).headers
  for (let n = 0; n < 12; n += 1) await of(testServer.token)
  const mine = await of(testServer.token)
  const others = await of(liveServer.token)
  const accounts = await of(account.token)
  await found(mine)
  await found(others, liveServer.token)
  await found(accounts, account.token)
  const { requests } = await search({ status: 405, limit: 100 })
  const ids = requests.map(({ requestId }: RequestEntry) => requestId)
  t.equal(ids.length, 13)
  t.same(ids, [...ids].sort().reverse())
  t.ok(requests.every(({ serverId }: RequestEntry) => serverId === testServer.serverId))
  const paged: string[] = []
  for (let after: string | null = null; ; ) {
    const page = await search({ status: 405, result: 'refused', limit: 5, ...(after !== null && { after }) })
    paged.push(...page.requests.map(({ requestId }: RequestEntry) => requestId))
    after = page.next
    if (after === null) break
  }
  t.same(paged, ids, 'page by page the same')
  const seen = async (headers: Headers, token: string) =>
    (await service.call(`GET /v1/requests/${headers.get('request-id')}`, { token })).status
  t.equal(await seen(others, testServer.token), 404)
  t.equal(await seen(accounts, testServer.token), 404)
  t.equal(await seen(others, account.token), 200)
  t.match(await found(accounts, account.token), { serverId: null, prefix: /^ak_/ })
  t.same((await search({ error: 'not_found', status: 404, receivedTo: '2026-01-01T00:00:00Z' })).requests, [])
  for (const id of ['x', randomUUID(), testServer.serverId])
    t.equal((await service.call(`GET /v1/requests/${id}`, { token: testServer.token })).status, 404)
})

t.test('requests: those with an unknown key are in no log, those with a revoked one end', async (t) => {
  const before = await redis.keys('*:requests:*')
  await service.call('GET /v1/server', { token: `${testServer.token.slice(0, -1)}x` })
  await service.call('GET /v1/server')
  const { headers } = await service.call('GET /v1/server', { token: testServer.token })
  await found(headers)
  t.same((await redis.keys('*:requests:*')).sort(), before.sort())
  t.same((await search({ status: 401 }, account.token)).requests, [])
})
