/** batch - POST /v1/email/batch over real HTTP: all or nothing, one key, one commit, up to 100 messages and 10 MB. */
import { randomBytes, randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import t from 'tap'
import { until } from '../support/machine/until.ts'
import { type Called, type CallOptions, startTestService } from '../support/service/service.ts'

const service = await startTestService()
const redis = new Redis({ path: service.redis.socketPath })
const { testServer, liveServer, account, operatorToken } = service.firstRun
t.teardown(async () => {
  redis.disconnect()
  await service.stop()
})

const MESSAGE = { from: 'you@simulator.test', to: ['delivered@simulator.test'], subject: 'Hello', text: 'It works.' }
const WAIT_MS = 20_000

function batch(messages: unknown, options: CallOptions = {}): Promise<Called> {
  return service.call('POST /v1/email/batch', { token: testServer.token, body: { messages }, ...options })
}

function patch(changes: object): Promise<Called> {
  return service.operate(`PATCH /v1/operator/accounts/${account.accountId}`, { token: operatorToken, body: changes })
}

/** Messages in every log of the store. */
async function countLog(): Promise<number> {
  const counts = await Promise.all((await redis.keys('*:log:*')).map((key) => redis.xlen(key)))
  return counts.reduce((sum, count) => sum + count, 0)
}

/** Bodies and chunks of content in the store. */
async function contents(): Promise<number> {
  const slices = await Promise.all((await redis.keys('*:bodies:*')).map((key) => redis.hlen(key)))
  return slices.reduce((sum, count) => sum + count, (await redis.keys('*:content:*')).length)
}

async function delivered(messageId: string): Promise<boolean> {
  const { json } = await service.call(`GET /v1/messages/${messageId}`, { token: testServer.token })
  return json.status === 'delivered'
}

await patch({ testPerMinuteLimit: 1_000_000, testMonthlyCap: 10_000_000 })

t.test('batch: 1 and 100 messages are accepted, 0 and 101 are not [batch.all]', async (t) => {
  for (const count of [1, 100]) {
    const before = await countLog()
    const called = await batch(Array.from({ length: count }, (_, n) => ({ ...MESSAGE, subject: `Number ${n}` })))
    t.equal(called.status, 200)
    t.equal(called.json.messages.length, count)
    t.match(called.headers.get('ratelimit-policy'), /^"test";q=1000000;w=60$/)
    t.equal((await countLog()) - before, count)
    const ids: string[] = called.json.messages.map((one: { messageId: string }) => one.messageId)
    t.equal(new Set(ids).size, count)
    for (const [n, id] of [...ids.entries()].filter(([n]) => n % 33 === 0)) {
      const { json } = await service.call(`GET /v1/messages/${id}`, { token: testServer.token })
      t.equal(json.subject, `Number ${n}`, 'in the order of the request')
    }
    await until(() => delivered(ids.at(-1) as string), WAIT_MS)
  }
  for (const count of [0, 101]) {
    const called = await batch(Array.from({ length: count }, () => MESSAGE))
    t.equal(called.status, 400)
    t.same(
      called.json.issues.map((issue: { path: string }) => issue.path),
      ['messages'],
    )
  }
})

t.test('batch: issues are under messages.<n> [batch.answer]', async (t) => {
  const many = Array.from({ length: 51 }, (_, n) => `r${n}@example.com`)
  const called = await batch([
    MESSAGE,
    { ...MESSAGE, to: ['nobody'], streamID: 'x' },
    { ...MESSAGE, to: many, headers: { From: 'x' } },
    { from: MESSAGE.from, to: [{ email: 'a@b' }], subject: '' },
    7,
  ])
  t.equal(called.status, 400)
  t.same(
    called.json.issues.map((issue: { path: string }) => issue.path),
    [
      'messages.1.to.0',
      'messages.1.streamID',
      'messages.2.to',
      'messages.2.headers.From',
      'messages.3.to.0.email',
      'messages.3.subject',
      'messages.3.text',
      'messages.4',
    ],
  )
})

t.test('batch: one refusal refuses all, and names the message [batch.all]', async (t) => {
  const before = [await countLog(), await contents()]
  const foreign = await batch([MESSAGE, { ...MESSAGE, from: 'you@other.example' }])
  t.match(foreign.json, { error: 'domain_not_verified', domain: 'other.example', index: 1 })
  t.equal(foreign.status, 422)
  const unknown = await batch([
    { ...MESSAGE, text: randomBytes(80_000).toString('hex') },
    { ...MESSAGE, streamId: randomUUID() },
  ])
  t.match(unknown.json, { error: 'stream_not_found', index: 1 })
  const attachments = [{ name: 'a', content: randomBytes(7_300_000).toString('base64') }]
  const large = await batch([MESSAGE, MESSAGE, { ...MESSAGE, attachments, text: '\u00e9'.repeat(300_000) }])
  t.match(large.json, { error: 'message_too_large', index: 2, max: 10_485_760 })
  t.same([await countLog(), await contents()], before)
})

t.test('batch: limits count the sum of all recipients, all or nothing [batch.all]', async (t) => {
  await patch({ perMinuteLimit: 5, testPerMinuteLimit: 5, testMonthlyCap: 1_000_000 })
  const three = { ...MESSAGE, to: ['a@simulator.test', 'b@simulator.test', 'c@simulator.test'] }
  const refused = await batch([three, three])
  t.equal(refused.status, 429)
  t.match(refused.json, { error: 'rate_limited', scope: 'test', requested: 6, limit: 5, message: /6 of 5/ })
  t.notOk('index' in refused.json)
  await patch({ testPerMinuteLimit: 1_000_000 })
})

t.test('batch: one Idempotency-Key, shared with the other routes [request.idempotency]', async (t) => {
  const headers = { 'idempotency-key': randomUUID() }
  const before = await countLog()
  const answers = await Promise.all(Array.from({ length: 8 }, () => batch([MESSAGE, MESSAGE], { headers })))
  t.equal(new Set(answers.map(({ text }) => text)).size, 1)
  t.equal(answers.filter((answer) => answer.headers.get('idempotent-replayed') === 'true').length, 7)
  t.equal((await countLog()) - before, 2)
  const other = await batch([MESSAGE], { headers })
  t.equal(other.status, 422)
  t.equal(other.json.error, 'idempotency_key_reused')
  const single = await service.call('POST /v1/email', { token: testServer.token, body: MESSAGE, headers })
  t.equal(single.json.error, 'idempotency_key_reused')
  t.equal((await batch([MESSAGE], { headers: { 'idempotency-key': '' } })).status, 400)
})

t.test('batch: large contents are written ahead, delivered and read back', async (t) => {
  const texts = Array.from({ length: 6 }, () => randomBytes(40_000).toString('hex'))
  const attachments = [{ name: 'a.bin', content: randomBytes(300_000).toString('base64') }]
  const called = await batch([...texts.map((text) => ({ ...MESSAGE, text })), { ...MESSAGE, attachments }])
  t.equal(called.status, 200)
  const ids: string[] = called.json.messages.map((one: { messageId: string }) => one.messageId)
  for (const [n, id] of ids.entries()) {
    await until(() => delivered(id), WAIT_MS)
    const { json } = await service.call(`GET /v1/messages/${id}`, { token: testServer.token })
    t.equal(json.text, texts[n] ?? MESSAGE.text)
    t.ok(json.sizeBytes > 80_000)
  }
})

t.test('batch: 100 messages of 50 recipients are one request', async (t) => {
  const messages = Array.from({ length: 100 }, (_, n) => ({
    ...MESSAGE,
    to: Array.from({ length: 50 }, (_, at) => `r${n}-${at}@simulator.test`),
  }))
  const called = await batch(messages)
  t.equal(called.status, 200)
  const last = called.json.messages[99].messageId
  const { json } = await service.call(`GET /v1/messages/${last}`, { token: testServer.token })
  t.same(
    json.recipients.map(({ recipient }: { recipient: string }) => recipient),
    messages[99]?.to,
  )
})

t.test('batch: the live server’s domain is looked at for each message', async (t) => {
  const called = await batch([MESSAGE], { token: liveServer.token })
  t.match(called.json, { error: 'domain_not_verified', domain: 'simulator.test', index: 0 })
})

function partialBatch(messages: unknown, options: CallOptions = {}, partial: unknown = true): Promise<Called> {
  return batch(messages, { body: { messages, partial }, ...options })
}

t.test('partial batch: bad shapes and refusals fail alone, in the order of the request [batch.partial]', async (t) => {
  const called = await partialBatch([
    MESSAGE,
    { ...MESSAGE, to: ['nobody'] },
    7,
    { ...MESSAGE, from: 'a@unverified.example' },
    { ...MESSAGE, subject: 'Last' },
  ])
  t.equal(called.status, 200)
  const [first, shape, none, domain, last] = called.json.messages
  t.match(first, { status: 'accepted', test: true })
  t.match(shape, { error: 'invalid_request', issues: [{ path: 'to.0' }] })
  t.match(none, { error: 'invalid_request', issues: [{ path: '' }] })
  t.match(domain, { error: 'domain_not_verified', domain: 'unverified.example' })
  const read = await service.call(`GET /v1/messages/${last.messageId}`, { token: testServer.token })
  t.equal(read.json.subject, 'Last')
  t.ok(called.headers.get('ratelimit'))
})

t.test(
  'partial batch: a key replays the whole answer, and another body is refused [request.idempotency]',
  async (t) => {
    const headers = { 'Idempotency-Key': randomUUID() }
    const messages = [{ ...MESSAGE, from: 'a@unverified.example' }, MESSAGE, { ...MESSAGE, html: 7 }]
    const first = await partialBatch(messages, { headers })
    const again = await partialBatch(messages, { headers })
    t.same(again.json, first.json)
    t.equal(again.headers.get('idempotent-replayed'), 'true')
    t.equal((await partialBatch([MESSAGE], { headers })).status, 422)
  },
)

t.test('partial batch: large content of a refused message is removed, that of an accepted one is sent', async (t) => {
  const attachments = [{ name: 'a.bin', content: Buffer.alloc(300_000, 1).toString('base64') }]
  const called = await partialBatch([
    { ...MESSAGE, from: 'a@unverified.example', attachments },
    { ...MESSAGE, attachments },
  ])
  const [refused, accepted] = called.json.messages
  t.equal(refused.error, 'domain_not_verified')
  const read = await service.call(`GET /v1/messages/${accepted.messageId}`, { token: testServer.token })
  t.equal(read.json.attachments[0].size, 300_000)
})

t.test('partial batch: false is a whole batch, another value is a 400', async (t) => {
  t.match((await partialBatch([MESSAGE, { ...MESSAGE, from: 'a@unverified.example' }], {}, false)).json, {
    error: 'domain_not_verified',
    index: 1,
  })
  t.match((await partialBatch([MESSAGE], {}, 'yes')).json, { error: 'invalid_request', issues: [{ path: 'partial' }] })
  t.match((await partialBatch([], {})).json, { error: 'invalid_request', issues: [{ path: 'messages' }] })
})

t.test('partial batch: without one valid message nothing is accepted', async (t) => {
  const called = await partialBatch([7, { ...MESSAGE, to: [] }])
  t.equal(called.status, 200)
  t.same(
    called.json.messages.map((one: { error: string }) => one.error),
    ['invalid_request', 'invalid_request'],
  )
})
