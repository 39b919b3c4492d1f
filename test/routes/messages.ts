/** messages - GET /v1/messages/{id}: the keys that may read each message, and for how long. */
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import t from 'tap'
import { until } from '../support/machine/until.ts'
import { startTestService } from '../support/service/service.ts'

const service = await startTestService()
const redis = new Redis({ path: service.redis.socketPath })
const { testServer, liveServer, account } = service.firstRun
t.teardown(async () => {
  redis.disconnect()
  await service.stop()
})

const BODY = { from: 'you@simulator.test', to: ['one@example.com'], subject: 'Hello', text: 'It works.' }
const { json: sent } = await service.call('POST /v1/email', { token: testServer.token, body: BODY })
const read = (id: string, token = testServer.token) => service.call(`GET /v1/messages/${id}`, { token })
await until(async () => (await read(sent.messageId)).json.status === 'delivered', 10_000)

t.test('invalid ids, and ids of another server, are not found', async (t) => {
  const { messageId } = sent
  const [head, , , ...rest] = messageId.split('-')
  const elsewhere = [head, messageId.split('-')[1], '7001', ...rest].join('-')
  for (const id of ['x', randomUUID(), elsewhere, testServer.serverId, testServer.streamId]) {
    const called = await read(id)
    t.equal(called.status, 404, id === 'x' ? 'no uuid' : 'no message')
    t.strictSame(called.json, (await read(messageId, liveServer.token)).json, 'as that of another server')
  }
  t.equal((await read(messageId.toUpperCase())).status, 200, 'either case of an id')
  t.equal((await read(messageId, account.token)).json.error, 'wrong_token_kind')
})

t.test('a fresh message has not been attempted', async (t) => {
  const held = await startTestService({}, { room: () => 0 })
  t.teardown(() => held.stop())
  const { token } = held.firstRun.testServer
  const { json } = await held.call('POST /v1/email', { token, body: { ...BODY, cc: ['two@example.com'] } })
  const message = await held.call(`GET /v1/messages/${json.messageId}`, { token })
  t.match(message.json, { status: 'accepted', sizeBytes: null, events: [] })
  t.match(message.json.recipients[1], {
    recipient: 'two@example.com',
    kind: 'cc',
    status: 'accepted',
    statusAt: json.submittedAt,
    attempts: 0,
    nextAttemptAt: json.submittedAt,
    code: null,
    response: null,
  })
})

t.test('links and images are listed while the content is kept [message.links]', async (t) => {
  const html = '<a href="https://acme.example/r?a=1&amp;b=2">Reset <b>now</b></a><img src="cid:logo" alt="Acme">'
  const body = {
    from: 'you@simulator.test',
    to: ['l@simulator.test'],
    subject: 'x',
    html,
    text: 'https://acme.example/t.',
  }
  const made = await service.call('POST /v1/email', { token: testServer.token, body })
  const { json } = await service.call(`GET /v1/messages/${made.json.messageId}`, { token: testServer.token })
  t.same(json.links, [
    { part: 'html', href: 'https://acme.example/r?a=1&b=2', text: 'Reset now' },
    { part: 'text', href: 'https://acme.example/t', text: null },
  ])
  t.same(json.images, [{ src: 'cid:logo', alt: 'Acme' }])
})

t.test('text and html end before the message does', async (t) => {
  await redis.unlink(await redis.keys('*:bodies:*'))
  const { json } = await read(sent.messageId)
  t.match(json, { text: null, html: null, links: [], contentAvailable: false, subject: 'Hello', status: 'delivered' })
})

t.test('a revoked key reads nothing, even from a cache', async (t) => {
  const rows = await redis.keys('*:key:*')
  for (const row of rows) {
    if ((await redis.hget(row, 'serverId')) === testServer.serverId) await redis.hset(row, 'revoked', '1700000000000')
  }
  for (const what of [`GET /v1/messages/${sent.messageId}`, 'GET /v1/messages/x', 'GET /v1/server'])
    t.equal((await service.call(what, { token: testServer.token })).status, 401, what.slice(0, 17))
  t.equal((await read(sent.messageId, liveServer.token)).status, 404)
})
