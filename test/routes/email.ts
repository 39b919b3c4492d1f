/** email - POST /v1/email over real HTTP, a real Redis and the whole service. */
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

function send(body: object = {}, options: CallOptions = {}): Promise<Called> {
  return service.call('POST /v1/email', { token: testServer.token, body: { ...MESSAGE, ...body }, ...options })
}

// biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects.
async function readWhen(messageId: string, isDone: (message: any) => boolean): Promise<any> {
  return until(async () => {
    const { json } = await service.call(`GET /v1/messages/${messageId}`, { token: testServer.token })
    return isDone(json) ? json : null
  }, 10_000)
}

function patch(changes: object): Promise<Called> {
  return service.operate(`PATCH /v1/operator/accounts/${account.accountId}`, { token: operatorToken, body: changes })
}

/** Chunks of content in the store. */
async function contentKeys(): Promise<string[]> {
  return redis.keys('*:content:*')
}

await patch({ testPerMinuteLimit: 100_000, testMonthlyCap: 1_000_000 })

t.test('send: accepted, then delivered, and read back whole', async (t) => {
  const body = {
    from: { email: 'You@Simulator.Test', name: 'You' },
    to: ['Someone@Example.com', { email: 'other@example.com', name: 'Other' }],
    cc: ['copy@example.com', 'someone@example.com'],
    bcc: [{ email: 'blind@example.com' }],
    subject: 'Sub\tject',
    text: 'naïve ✓',
    html: '<p>naïve ✓</p>',
    headers: { 'X-Thing': 'yes', 'Reply-To': 'reply@example.com' },
    attachments: [
      { name: 'a.txt', content: Buffer.from('attached').toString('base64') },
      { name: 'b.png', content: '', contentType: 'image/x-test', contentId: 'logo' },
    ],
    tag: 'welcome',
    metadata: { order: '17' },
  }
  const called = await send(body)
  t.equal(called.status, 200)
  t.match(called.json, { status: 'accepted', test: true })
  t.strictSame(Object.keys(called.json), ['messageId', 'status', 'submittedAt', 'test'])
  t.match(called.headers.get('ratelimit-policy'), /^"test";q=100000;w=60$/)
  t.match(called.headers.get('ratelimit'), /^"test";r=\d+;t=\d+$/)
  const { messageId } = called.json
  const message = await readWhen(messageId, ({ status }) => status === 'delivered')
  t.match(message, {
    messageId,
    streamId: testServer.streamId,
    source: 'api',
    test: true,
    from: { email: 'You@simulator.test', name: 'You' },
    subject: 'Sub ject',
    tag: 'welcome',
    metadata: { order: '17' },
    submittedAt: called.json.submittedAt,
    attachmentCount: 2,
    contentAvailable: true,
    messageIdHeader: `<${messageId}@simulator.test>`,
    headers: { 'X-Thing': 'yes', 'Reply-To': 'reply@example.com' },
    text: 'naïve ✓',
    html: '<p>naïve ✓</p>',
    attachments: [
      { name: 'a.txt', contentType: 'text/plain', contentId: null, size: 8, inline: false },
      { name: 'b.png', contentType: 'image/x-test', contentId: 'logo', size: 0, inline: true },
    ],
  })
  t.strictSame(
    message.recipients.map((one: Record<string, unknown>) => [one.recipient, one.name, one.kind, one.status]),
    [
      ['Someone@example.com', null, 'to', 'delivered'],
      ['other@example.com', 'Other', 'to', 'delivered'],
      ['copy@example.com', null, 'cc', 'delivered'],
      ['blind@example.com', null, 'bcc', 'delivered'],
    ],
  )
  t.ok(message.sizeBytes > 500)
  t.equal(Date.parse(message.contentExpiresAt) - Date.parse(message.submittedAt), 7 * 86_400_000)
  t.equal(message.events.length, 4)
  t.match(message.events[0], { event: 'delivered', details: { code: 250, response: '250 2.0.0 OK (test)' } })
  // A test server keeps attachments as long as text and HTML.
  t.equal((await contentKeys()).filter((key) => /:a\d/.test(key)).length, 2)
})

const OUTCOMES: readonly [string, string, object, readonly string[]][] = [
  ['delivered', 'delivered', { code: 250 }, ['delivered']],
  ['anything', 'delivered', { code: 250 }, ['delivered']],
  ['bounce', 'bounced', { code: 550, classification: 'InvalidRecipient', hard: true, expired: false }, ['bounced']],
  ['hardbounce+x', 'bounced', { code: 550, classification: 'InvalidRecipient', hard: true }, ['bounced']],
  ['softbounce', 'bounced', { code: 552, hard: false, expired: false }, ['bounced']],
  ['blocked', 'bounced', { code: 550, classification: 'SpamBlock', hard: false }, ['bounced']],
  ['deferred', 'delivered', { code: 250 }, ['deferred', 'deferred', 'delivered']],
  ['expired', 'bounced', { code: 451, hard: false, expired: true }, ['deferred', 'deferred', 'bounced']],
  ['complaint', 'delivered', { feedbackType: 'abuse' }, ['delivered', 'spam_complaint']],
  ['code-550-5.7.26', 'bounced', { code: 550, hard: false }, ['bounced']],
  ['code-421', 'delivered', { code: 250 }, ['deferred', 'deferred', 'delivered']],
]

t.test('simulator: outcome by local part, all at once', async (t) => {
  const sent = await Promise.all(OUTCOMES.map(([local]) => send({ to: [`${local}@simulator.test`] })))
  for (const [index, [local, status, details, events]] of OUTCOMES.entries()) {
    const { messageId } = sent[index]?.json ?? {}
    const message = await readWhen(messageId, (one) => one.status !== 'accepted' && one.status !== 'deferred')
    t.equal(message.status, status, local)
    t.strictSame(
      message.events.map(({ event }: { event: string }) => event),
      events,
      `${local}: events`,
    )
    t.match(message.events.at(-1).details, details, `${local}: details`)
    const attempts = events.filter((event) => event !== 'spam_complaint').length
    t.equal(message.recipients[0].attempts, attempts, `${local}: attempts`)
  }
})

t.test('message status is mixed when recipients differ', async (t) => {
  const { json } = await send({ to: ['bounce@simulator.test', 'delivered@simulator.test'] })
  const message = await readWhen(json.messageId, ({ recipients }) =>
    recipients.every((one: { status: string }) => one.status !== 'accepted'),
  )
  t.equal(message.status, 'mixed')
})

t.test('idempotency: replay, reuse, another key, a refusal leaves the key free', async (t) => {
  const headers = { 'idempotency-key': `key ${randomUUID()}` }
  const refused = await send({ from: 'a@unverified.example' }, { headers })
  t.equal(refused.json.error, 'domain_not_verified')
  const first = await send({}, { headers })
  t.equal(first.headers.get('idempotent-replayed'), null)
  const again = await send({}, { headers })
  t.equal(again.status, 200)
  t.equal(again.headers.get('idempotent-replayed'), 'true')
  t.equal(again.text, first.text)
  const spelt = `{"to":["delivered@simulator.test"], "text":"It works.","subject":"Hello","tag":null,"from":"you@simulator.test"}`
  const respelt = await service.call('POST /v1/email', {
    token: testServer.token,
    body: spelt,
    headers: { ...headers, 'content-type': 'application/json' },
  })
  t.equal(respelt.text, first.text, 'order of names, white space and defaults do not matter')
  const other = await send({ subject: 'Other' }, { headers })
  t.equal(other.status, 422)
  t.equal(other.json.error, 'idempotency_key_reused')
  const fresh = await send({}, { headers: { 'idempotency-key': randomUUID() } })
  t.not(fresh.json.messageId, first.json.messageId)
})

t.test('idempotency: 64 at once make one message', async (t) => {
  const headers = { 'idempotency-key': randomUUID() }
  const before = await usedOf(testServer.token, 'month')
  const calls = await Promise.all(Array.from({ length: 64 }, () => send({}, { headers })))
  t.strictSame([...new Set(calls.map(({ status }) => status))], [200])
  t.equal(new Set(calls.map(({ json }) => json.messageId)).size, 1)
  t.equal(calls.filter((call) => call.headers.get('idempotent-replayed') === 'true').length, 63)
  t.equal(await usedOf(testServer.token, 'month'), before + 1)
})

t.test('limit: 64 clients against 300 a minute, exactly 300 pass', async (t) => {
  t.equal((await patch({ testPerMinuteLimit: 300 })).status, 200)
  const { calls, before, after } = await runInOneMinute()
  const passed = calls.filter(({ status }) => status === 200)
  const refused = calls.filter(({ status }) => status !== 200)
  t.equal(passed.length, 300 - before)
  t.equal(after, 300)
  t.match(refused[0]?.json, { error: 'rate_limited', scope: 'test', period: 'minute', limit: 300, requested: 1 })
  for (const { status, json, headers } of refused) {
    if (status !== 429 || json.used !== 300) t.fail('another refusal', { status, json })
    const waitS = Number(headers.get('retry-after'))
    if (!(waitS >= 1 && waitS <= 60)) t.fail('Retry-After', { waitS })
  }
  await patch({ testPerMinuteLimit: 100_000 })
})

/** 448 sends by 64 clients that all fall into one minute of the store's clock; a run that straddles two is repeated. */
async function runInOneMinute(): Promise<{ calls: Called[]; before: number; after: number }> {
  for (let run = 0; run < 3; run++) {
    const before = await limitOf('minute')
    const calls = (
      await Promise.all(
        Array.from({ length: 64 }, async () => {
          const own: Called[] = []
          for (let call = 0; call < 7; call++) own.push(await send())
          return own
        }),
      )
    ).flat()
    const after = await limitOf('minute')
    if (before.resetsAt === after.resetsAt) return { calls, before: before.used, after: after.used }
  }
  throw new Error('No run fell into one minute')
}

async function limitOf(period: string): Promise<{ used: number; resetsAt: string }> {
  const { json } = await service.call('GET /v1/server', { token: testServer.token })
  return json.limits.find((limit: { period: string }) => limit.period === period)
}

async function usedOf(token: string, period: string): Promise<number> {
  const { json } = await service.call('GET /v1/server', { token })
  return json.limits.find((limit: { period: string }) => limit.period === period).used
}

t.test('limit: a request that needs more than is left is refused whole', async (t) => {
  const used = await usedOf(testServer.token, 'month')
  await patch({ testMonthlyCap: used + 2 })
  const three = await send({ to: ['a@example.com', 'b@example.com', 'c@example.com'] })
  t.equal(three.status, 429)
  t.match(three.json, { error: 'cap_reached', scope: 'test', period: 'month', limit: used + 2, used, requested: 3 })
  t.equal((await send({ to: ['a@example.com', 'A@example.com', 'b@example.com'] })).status, 200, 'twice is once')
  t.equal((await send()).json.error, 'cap_reached')
  await patch({ testMonthlyCap: 1 })
  t.match((await send({ to: ['a@example.com', 'b@example.com'] })).json.message, /2 of 1$/, 'can never pass')
  await patch({ testMonthlyCap: 1_000_000 })
  t.equal((await send()).status, 200, 'a changed limit counts from the next request')
})

t.test('refusals come in their order', async (t) => {
  await patch({ testMonthlyCap: 1 })
  // In the body 10.4 MB of base64, as built 10.7 MB with its line ends.
  const attachments = [{ name: 'a.bin', content: Buffer.alloc(7_800_000).toString('base64') }]
  const broken = {
    ...MESSAGE,
    from: 'a@unverified.example',
    streamId: randomUUID(),
    to: ['a@x.test', 'b@x.test'],
    attachments,
  }
  const steps: readonly [string, number, string | null, string, CallOptions][] = [
    ['no key', 401, 'unauthorized', 'POST /v1/nothing', { body: '{' }],
    ['unknown key', 401, 'unauthorized', 'POST /v1/email', { token: `${testServer.token.slice(0, -1)}~`, body: '{' }],
    ['operator key', 401, 'unauthorized', 'POST /v1/email', { token: operatorToken, body: '{' }],
    ['path', 404, 'not_found', 'POST /v1/nothing', { token: account.token, body: '{' }],
    ['method', 405, 'method_not_allowed', 'PUT /v1/email', { token: account.token, body: '{' }],
    [
      'kind',
      403,
      'wrong_token_kind',
      'POST /v1/email',
      { token: account.token, body: '{', headers: { 'content-type': 'text/plain' } },
    ],
    [
      'media',
      415,
      'unsupported_media_type',
      'POST /v1/email',
      { body: '{', headers: { 'content-type': 'text/plain', 'idempotency-key': '' } },
    ],
    ['header', 400, 'invalid_request', 'POST /v1/email', { body: '{', headers: { 'idempotency-key': 'é' } }],
    ['body', 400, 'invalid_request', 'POST /v1/email', { body: { ...broken, subject: '' } }],
    ['stream', 422, 'stream_not_found', 'POST /v1/email', { body: broken }],
    ['domain', 422, 'domain_not_verified', 'POST /v1/email', { body: { ...broken, streamId: testServer.streamId } }],
    [
      'size',
      422,
      'message_too_large',
      'POST /v1/email',
      { body: { ...broken, streamId: testServer.streamId, from: MESSAGE.from } },
    ],
    [
      'limit',
      429,
      'cap_reached',
      'POST /v1/email',
      { body: { ...broken, streamId: testServer.streamId, from: MESSAGE.from, attachments: [] } },
    ],
  ]
  for (const [name, status, error, what, options] of steps) {
    const isKeyless = name === 'no key'
    const called = await service.call(what, { ...(isKeyless ? {} : { token: testServer.token }), ...options })
    t.equal(called.status, status, name)
    t.equal(called.json?.error, error, name)
    if (name === 'header') t.notOk('issues' in called.json, 'a header has no issues')
    if (name === 'body')
      t.strictSame(
        called.json.issues.map(({ path }: { path: string }) => path),
        ['subject'],
      )
    if (name === 'domain') t.equal(called.json.domain, 'unverified.example')
    if (name === 'size') t.ok(called.json.sizeBytes > called.json.max && called.json.max === 10_485_760)
  }
  t.strictSame(await largeContent(), [], 'and no content of theirs is left')
  await patch({ testMonthlyCap: 1_000_000 })
})

/** Content that was written ahead of its message. */
async function largeContent(): Promise<string[]> {
  const keys = await contentKeys()
  const lives = await Promise.all(keys.map((key) => redis.pttl(key)))
  return keys.filter((_, index) => (lives[index] ?? 0) < 120_000)
}

t.test('large content is delivered, kept for seven days, and read back', async (t) => {
  const text = randomBytes(400_000).toString('base64')
  const content = randomBytes(1_000_000).toString('base64')
  const earlier = new Set(await contentKeys())
  const { status, json } = await send({
    to: ['deferred@simulator.test', 'delivered@simulator.test'],
    text,
    attachments: [{ name: 'a.bin', content }],
  })
  t.equal(status, 200)
  const waiting = await readWhen(json.messageId, ({ recipients }) => recipients[1].status === 'delivered')
  t.equal(waiting.text, text)
  const isAttachment = (key: string) => /:a0(\.\d+)?$/.test(key) && !earlier.has(key)
  // The message after its keys. What has not ended then had them.
  const attachments = (await contentKeys()).filter(isAttachment)
  const { recipients } = await readWhen(json.messageId, () => true)
  if (recipients[0].status !== 'delivered') t.equal(attachments.length, 4)
  const ended = await readWhen(json.messageId, ({ status: now }) => now === 'delivered')
  t.ok(ended.sizeBytes > 1_800_000, 'attachments counted as built')
  const kept = (await contentKeys()).filter(isAttachment)
  t.equal(kept.length, 4, 'attachments stay on a test server')
  for (const key of kept) t.ok(Math.abs((await redis.pttl(key)) - 7 * 86_400_000) < 3_600_000)
})

t.test('a message just under the size as built passes', async (t) => {
  const content = Buffer.alloc(7_500_000, 7).toString('base64')
  const { status } = await send({ attachments: [{ name: 'a.bin', content }] })
  t.equal(status, 200)
})

t.test('the simulator is no domain of a live server', async (t) => {
  const { json } = await service.call('POST /v1/email', { token: liveServer.token, body: MESSAGE })
  t.equal(json.error, 'domain_not_verified')
})

t.test('no address is ever in a stream', async (t) => {
  for (const key of await redis.keys('*')) {
    if ((await redis.type(key)) !== 'stream') continue
    const entries = JSON.stringify(await redis.xrange(key, '-', '+'))
    if (/@(simulator\.test|example\.com)/i.test(entries)) t.fail('address in a stream', { key })
  }
  t.pass('looked at')
})
