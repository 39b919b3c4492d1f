/**
 * broadcasts - submitted, released, read, cancelled over HTTP, and the contents of each message, on a test server and
 * to a mail server.
 */
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { until } from '../support/machine/until.ts'
import { startTestService } from '../support/service/service.ts'

const service = await startTestService()
t.teardown(() => service.stop())
const { testServer, account, operatorToken } = service.firstRun
const { token } = testServer
const call = (what: string, body?: object, headers: Record<string, string> = {}) =>
  service.call(what, { token, headers, ...(body !== undefined && { body }) })
const { streamId } = (await call('POST /v1/streams', { kind: 'broadcast', name: 'News' })).json
const pace = (pacePerMinute: number | null) =>
  service.operate(`PATCH /v1/operator/streams/${streamId}`, { token: operatorToken, body: { pacePerMinute } })
await pace(60_000)

const message = (name: string, substitutions: object = {}, more: object = {}) => ({
  to: `delivered+${name}@simulator.test`,
  substitutions,
  ...more,
})
const body = (changes: object = {}) => ({
  streamId,
  from: { email: 'News@simulator.test', name: 'Acme News' },
  subject: 'Hello {{name}}',
  text: 'Dear {{name}}, bye.',
  html: '<p>Dear {{name}}</p>',
  tag: 'november',
  metadata: { all: 'yes', own: 'no' },
  messages: ['ada', 'bob', 'cam'].map((name) => message(name, { name: `${name} <&>` }, { metadata: { own: name } })),
  ...changes,
})
const submit = (changes: object = {}, headers = {}) => call('POST /v1/broadcasts', body(changes), headers)
const read = async (id: string) => (await call(`GET /v1/broadcasts/${id}`)).json
const ended = (id: string) =>
  until(async () => {
    const seen = await read(id)
    return seen.completedAt === null ? null : seen
  }, 30_000)

t.test(
  'broadcast: accepted, released, and each message is its own [broadcast.create] [broadcast.read] [broadcast.placeholders]',
  async (t) => {
    const made = await submit()
    t.equal(made.status, 202, made.text)
    t.match(made.json, {
      streamId,
      status: 'accepted',
      from: 'Acme News <News@simulator.test>',
      subject: 'Hello {{name}}',
      tag: 'november',
      metadata: { all: 'yes', own: 'no' },
      total: 3,
      released: 0,
      failed: 0,
      suppressed: 0,
      completedAt: null,
      pausedAt: null,
    })
    const { broadcastId } = made.json
    t.match(await ended(broadcastId), { status: 'completed', released: 3, failed: 0 })
    const found = (await call('POST /v1/messages/search', { broadcastId })).json.messages
    t.equal(found.length, 3)
    for (const [index, name] of ['ada', 'bob', 'cam'].entries()) {
      const own = found.find((one: { recipients: { recipient: string }[] }) =>
        one.recipients[0]?.recipient.includes(name),
      )
      t.match(own, {
        broadcastId,
        source: 'broadcast',
        streamId,
        subject: `Hello ${name} <&>`,
        tag: 'november',
        metadata: { all: 'yes', own: name },
      })
      const whole = await until(async () => {
        const { json } = await call(`GET /v1/messages/${own.messageId}`)
        return json.recipients[0].status === 'delivered' ? json : null
      }, 20_000)
      t.match(whole, {
        from: { email: 'News@simulator.test', name: 'Acme News' },
        text: `Dear ${name} <&>, bye.\n\nUnsubscribe: {{unsubscribeUrl}}\n`,
        html: `<p>Dear ${name} &lt;&amp;&gt;</p><p><a href="{{unsubscribeUrl}}">Unsubscribe</a></p>`,
      })
      const preview = (await call('POST /v1/broadcasts/preview', body({ index }))).json
      const { subject, text, html } = whole
      const shown = { index, from: 'Acme News <News@simulator.test>', to: `delivered+${name}@simulator.test` }
      t.match(preview, { ...shown, subject, text, html }, 'what was previewed')
      const added = whole.sizeBytes - preview.sizeBytes
      t.ok(preview.sizeBytes > 300 && added > 0 && added < 1_500, `${whole.sizeBytes} and ${preview.sizeBytes} bytes`)
    }
    t.equal((await call('POST /v1/messages/search', { broadcastId: randomUUID() })).json.messages.length, 0)
  },
)

t.test(
  'broadcast: the same Idempotency-Key returns the same broadcast again, unchanged [request.idempotency]',
  async (t) => {
    const headers = { 'idempotency-key': randomUUID() }
    const first = await submit({ subject: 'Once {{name}}' }, headers)
    await ended(first.json.broadcastId)
    const again = await submit({ subject: 'Once {{name}}' }, headers)
    t.equal(again.status, 202)
    t.same(again.json, first.json)
    t.equal(again.headers.get('idempotent-replayed'), 'true')
    t.equal(first.headers.get('idempotent-replayed'), null)
    t.equal((await submit({ subject: 'Other {{name}}' }, headers)).json.error, 'idempotency_key_reused')
  },
)

t.test(
  'broadcast: a preview stores nothing, and is refused if its body or its stream is wrong [broadcast.preview]',
  async (t) => {
    const list = async () => (await call(`GET /v1/broadcasts?streamId=${streamId}`)).json.broadcasts.length
    const before = await list()
    const preview = (changes: object = {}) => call('POST /v1/broadcasts/preview', body(changes))
    const first = await preview()
    t.equal(first.status, 200)
    t.match(first.json, { index: 0, subject: 'Hello ada <&>' })
    t.match((await preview({ index: 2, html: undefined, subject: 'All' })).json, { subject: 'All', html: null })
    for (const [changes, path] of [
      [{ index: 3 }, 'index'],
      [{ index: -1 }, 'index'],
      [{ index: 0.5 }, 'index'],
      [{ subject: 'Hello {{#name}}' }, 'subject'],
      [{ messages: [message('eve')] }, 'messages.0.substitutions.name'],
      [{ messages: [] }, 'messages'],
    ] as const) {
      const refused = await preview(changes)
      t.match(refused.json, { error: 'invalid_request', issues: [{ path }] }, refused.text)
    }
    const unknown = await preview({ streamId: randomUUID() })
    t.match([unknown.status, unknown.json.error], [422, 'stream_not_found'])
    const { streams } = (await call('GET /v1/streams')).json
    const other = streams.find(({ kind }: { kind: string }) => kind === 'transactional')
    t.equal((await preview({ streamId: other.streamId })).json.error, 'stream_kind_not_allowed')
    for (const text of ['{{name}}'.repeat(100_000), `{{name}}${'é'.repeat(4_000_000)}`]) {
      const large = await preview({ text, messages: [message('dan', { name: 'x'.repeat(500) })] })
      t.match(large.json, { error: 'message_too_large', max: 10_485_760 })
      t.ok(large.json.sizeBytes > 10_485_760)
    }
    t.equal(await list(), before)
  },
)

t.test('broadcast: a suppressed recipient is left out and counted [broadcast.suppressed]', async (t) => {
  await call('POST /v1/suppressions', { streamId, recipients: ['gone1@simulator.test', 'Gone2@simulator.test'] })
  const to = ['gone1@simulator.test', 'gone2@simulator.test', 'delivered+here@simulator.test']
  const made = await submit({ subject: 'x', text: 'y', html: undefined, messages: to.map((one) => ({ to: one })) })
  t.match(made.json, { total: 1, suppressed: 2 })
  t.match(await ended(made.json.broadcastId), { released: 1, failed: 0 })
  const none = await submit({
    subject: 'x',
    text: 'y',
    html: undefined,
    messages: to.slice(0, 2).map((one) => ({ to: one })),
  })
  t.match(none.json, { status: 'completed', total: 0, suppressed: 2, released: 0, failed: 0 })
  t.equal(none.json.completedAt, none.json.submittedAt)
})

t.test('broadcast: cancelled, paused, resumed [broadcast.cancel] [broadcast.pause]', async (t) => {
  await pace(600)
  const messages = Array.from({ length: 300 }, (_, n) => message(`n${n}`, { name: 'x' }))
  const { broadcastId } = (await submit({ messages })).json
  await until(async () => ((await read(broadcastId)).released > 5 ? true : null), 20_000)
  const paused = await call(`POST /v1/broadcasts/${broadcastId}/pause`)
  t.match(paused.json, { status: 'processing', subject: 'Hello {{name}}', from: 'Acme News <News@simulator.test>' })
  t.type(paused.json.pausedAt, 'string')
  t.same(await read(broadcastId), paused.json)
  t.equal((await call(`POST /v1/broadcasts/${broadcastId}/resume`)).json.pausedAt, null)
  const cancelled = await call(`POST /v1/broadcasts/${broadcastId}/cancel`)
  t.equal(cancelled.status, 200)
  t.equal(cancelled.json.status, 'cancelled')
  t.equal(cancelled.json.released + cancelled.json.failed, 300)
  t.ok(cancelled.json.failed > 200)
  t.same(await read(broadcastId), cancelled.json)
  for (const order of ['cancel', 'pause', 'resume'])
    t.match(await call(`POST /v1/broadcasts/${broadcastId}/${order}`), {
      status: 409,
      json: { error: 'broadcast_not_open' },
    })
  await pace(60_000)
})

t.test('broadcast: listed, newest first, by stream and status [broadcast.list]', async (t) => {
  const other = (await call('POST /v1/streams', { kind: 'broadcast', name: 'Other' })).json.streamId
  const made = await submit({ streamId: other })
  await ended(made.json.broadcastId)
  const all = (await call('GET /v1/broadcasts')).json
  t.equal(all.broadcasts[0].broadcastId, made.json.broadcastId)
  t.equal(all.next, null)
  t.same((await call(`GET /v1/broadcasts?streamId=${other}`)).json.broadcasts.length, 1)
  t.ok(
    (await call('GET /v1/broadcasts?status=cancelled')).json.broadcasts.every(
      (one: { status: string }) => one.status === 'cancelled',
    ),
  )
  const pages: string[] = []
  for (let after = ''; after !== 'end'; ) {
    const { json } = await call(`GET /v1/broadcasts?limit=2${after === '' ? '' : `&after=${after}`}`)
    pages.push(...json.broadcasts.map((one: { broadcastId: string }) => one.broadcastId))
    after = json.next ?? 'end'
  }
  t.same(
    pages,
    all.broadcasts.map((one: { broadcastId: string }) => one.broadcastId),
  )
})

t.test('broadcast: the refusals, with their paths [broadcast.messages] [refusal.order]', async (t) => {
  const issues = async (changes: object) =>
    (await submit(changes)).json.issues.map(({ path }: { path: string }) => path)
  t.same(await issues({ text: '{{#if}}' }), ['text'])
  t.same(await issues({ messages: [message('a')] }), ['messages.0.substitutions.name'])
  t.same(await issues({ messages: [message('a', { name: '1' }), message('A', { name: '2' })] }), ['messages.1.to'])
  t.same(await issues({ messages: [] }), ['messages'])
  t.same(await issues({ more: 1, text: undefined, html: undefined }), ['more', 'text'])
  t.equal((await service.call('POST /v1/broadcasts', { token, body: '{"a":' })).status, 400)
  t.equal(
    (await service.call('POST /v1/broadcasts', { token: account.token, body: body() })).json.error,
    'wrong_token_kind',
  )
  t.equal((await service.call('POST /v1/broadcasts', { body: body() })).status, 401)
  t.equal((await submit({ streamId: randomUUID() })).json.error, 'stream_not_found')
  t.equal((await submit({ streamId: testServer.streamId })).json.error, 'stream_kind_not_allowed')
  t.equal((await submit({ from: 'a@unknown.example' })).json.error, 'domain_not_verified')
  t.equal((await call(`GET /v1/broadcasts/${randomUUID()}`)).json.error, 'not_found')
  t.equal((await call(`POST /v1/broadcasts/${streamId}/cancel`)).json.error, 'not_found')
  t.equal((await call('GET /v1/broadcasts?status=odd')).json.error, 'invalid_request')
})

t.test('broadcast: three thousand in one body, and attachments that all share [broadcast.body]', async (t) => {
  await service.operate(`PATCH /v1/operator/accounts/${account.accountId}`, {
    token: operatorToken,
    body: { testMonthlyCap: 100_000 },
  })
  const attachments = [{ name: 'a.txt', content: Buffer.alloc(100_000, 'x').toString('base64') }]
  const messages = Array.from({ length: 3_000 }, (_, n) => message(`many${n}`, { name: `person ${n}` }))
  const made = await submit({ messages, attachments })
  t.equal(made.status, 202, made.text.slice(0, 200))
  t.match(
    await until(async () => {
      const seen = await read(made.json.broadcastId)
      return seen.completedAt === null ? null : seen
    }, 120_000),
    { status: 'completed', released: 3_000, failed: 0 },
  )
  const [one] = (await call('POST /v1/messages/search', { broadcastId: made.json.broadcastId, limit: 1 })).json.messages
  t.equal(one.attachmentCount, 1)
})

t.test('broadcast: small ones that come together are all taken [broadcast.body]', async (t) => {
  const messages = [message('once', { name: 'x' })]
  const all = await Promise.all(Array.from({ length: 16 }, () => submit({ messages })))
  t.same(new Set(all.map(({ status }) => status)), new Set([202]))
})

t.test(
  'broadcast: fifty thousand with a value each are read, and one more is refused [broadcast.messages]',
  async (t) => {
    const many = (count: number) => Array.from({ length: count }, (_, n) => message(`most${n}`, { name: String(n) }))
    await service.operate(`PATCH /v1/operator/accounts/${account.accountId}`, {
      token: operatorToken,
      body: { testMonthlyCap: 10_000 },
    })
    // More lists and objects than any other body may have. The check that stops it comes last.
    t.match(await submit({ messages: many(50_000) }), {
      status: 429,
      json: { error: 'cap_reached', requested: 50_000 },
    })
    t.match(await submit({ messages: many(50_001) }), { status: 400, json: { issues: [{ path: 'messages' }] } })
  },
)

t.test('broadcast: a cap holds the whole [broadcast.create]', async (t) => {
  await service.operate(`PATCH /v1/operator/accounts/${account.accountId}`, {
    token: operatorToken,
    body: { testMonthlyCap: 3_100 },
  })
  const messages = Array.from({ length: 500 }, (_, n) => message(`cap${n}`, { name: 'x' }))
  t.match(await submit({ messages }), { status: 429, json: { error: 'cap_reached', requested: 500 } })
  await service.operate(`PATCH /v1/operator/accounts/${account.accountId}`, {
    token: operatorToken,
    body: { testMonthlyCap: 100 },
  })
  const none = { subject: 'x', text: 'y', html: undefined, messages: [{ to: 'gone1@simulator.test' }] }
  t.match(await submit(none), { status: 202, json: { total: 0, suppressed: 1 } }, 'nobody is left, so nothing is taken')
})
