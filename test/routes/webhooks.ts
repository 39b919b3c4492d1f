/** webhooks - registered, signed, delivered, retried, dead, replayed: against a real receiver on TLS. */
import { createHmac, randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import t from 'tap'
import { EVENT_BODIES, EVENTS, type EventName } from '../../schemas/webhook.ts'
import { compileBody } from '../../src/http/shape/validate.ts'
import { until } from '../support/machine/until.ts'
import { isSigned, type Received, startReceiver } from '../support/peers/receiver.ts'
import { startTestService } from '../support/service/service.ts'

const WAIT_MS = 20_000
const NO_ID = '01a1f8d8-8300-7000-8000-0e7faee555a7'
const receiver = await startReceiver()
if (receiver === null) {
  t.pass('openssl is not installed: skipped')
  process.exit(0)
}
const service = await startTestService({ PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8' }, { smtp: { ca: receiver.ca } })
const { testServer, liveServer, account } = service.firstRun
t.teardown(async () => {
  await service.stop()
  await receiver.close()
})

const token = testServer.token
const create = (body: object = {}, path = `/${randomUUID()}`) =>
  service.call('POST /v1/webhooks', { token, body: { url: receiver.url + path, ...body } })
const call = (what: string, body?: object) => service.call(what, { token, ...(body !== undefined && { body }) })

const send = async (to: string[], more: object = {}) => {
  const body = { from: 'shop@simulator.test', to, subject: 'Order', text: 'Hello', ...more }
  const sent = await service.call('POST /v1/email', { token, body })
  t.equal(sent.status, 200)
  return sent.json.messageId as string
}
const at = (path: string): Received[] => receiver.received.filter((one) => one.path === path)
const isBody = Object.fromEntries(EVENTS.map((event) => [event, compileBody(EVENT_BODIES[event])])) as Record<
  EventName,
  ReturnType<typeof compileBody>
>

t.test('webhooks: created with a secret once, listed, read, removed [webhook.create, webhook.read]', async (t) => {
  const created = await create({}, '/life')
  t.equal(created.status, 201)
  t.match(created.json, { enabled: true, streamId: null, inboundContent: 'full', events: EVENTS })
  t.match(created.json.secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
  const { webhookId, secret, ...shown } = created.json
  t.same((await call(`GET /v1/webhooks/${webhookId}`)).json, { webhookId, ...shown })
  const again = await create({ events: ['bounced'] }, '/life')
  t.match([again.status, again.json], [409, { error: 'webhook_exists', webhookId }])
  const other = await create({ inboundContent: 'reference', events: ['bounced', 'inbound'] }, '/other')
  t.match(other.json, { events: ['bounced', 'inbound'], inboundContent: 'reference' })
  const list = await call('GET /v1/webhooks?limit=1')
  t.same([list.json.webhooks.length, list.json.next], [1, other.json.webhookId])
  t.equal(list.json.webhooks[0].secret, undefined)
  const rest = await call(`GET /v1/webhooks?after=${list.json.next}`)
  t.same(rest.json, { webhooks: [{ webhookId, ...shown }], next: null })
  for (const id of [webhookId, other.json.webhookId]) {
    t.equal((await call(`DELETE /v1/webhooks/${id}`)).status, 204)
    t.equal((await call(`DELETE /v1/webhooks/${id}`)).status, 404)
    t.equal((await call(`GET /v1/webhooks/${id}`)).status, 404)
  }
  t.equal((await create({}, '/life')).status, 201, 'its URL is free again')
})

const REFUSED: readonly [string, object, string][] = [
  ['no https', { url: 'http://example.com/' }, 'url'],
  ['user info', { url: 'https://a:b@example.com/' }, 'url'],
  ['fragment', { url: 'https://example.com/#a' }, 'url'],
  ['no URL', { url: 'example.com' }, 'url'],
  ['too long', { url: `https://example.com/${'a'.repeat(2048)}` }, 'url'],
  ['private literal', { url: 'https://10.0.0.1/' }, 'url'],
  ['private literal in IPv6', { url: 'https://[fd00::1]/' }, 'url'],
  ['private literal in hex', { url: 'https://0x0a000001/' }, 'url'],
  ['mapped literal', { url: 'https://[::ffff:10.0.0.1]/' }, 'url'],
  ['no events', { events: [] }, 'events'],
  ['an event twice', { events: ['bounced', 'bounced'] }, 'events'],
  ['unknown event', { events: ['opened'] }, 'events.0'],
  ['unknown content', { inboundContent: 'some' }, 'inboundContent'],
  ['source in our format', { inboundContent: 'raw' }, 'inboundContent'],
  ['source in the format of Resend', { inboundContent: 'raw', format: 'resend' }, 'inboundContent'],
  ['unknown field', { secret: 'x' }, 'secret'],
]

t.test('webhooks: refused registrations [webhook.url]', async (t) => {
  for (const [name, body, path] of REFUSED) {
    const refused = await service.call('POST /v1/webhooks', { token, body: { url: 'https://example.com/', ...body } })
    t.equal(refused.status, 400, name)
    t.same(
      refused.json.issues?.map((issue: { path: string }) => issue.path),
      [path],
      name,
    )
  }
  const stream = await create({ streamId: NO_ID })
  t.match([stream.status, stream.json.error], [422, 'stream_not_found'])
  const foreign = await create({ streamId: liveServer.streamId })
  t.match([foreign.status, foreign.json.error], [422, 'stream_not_found'])
  const wrongKind = await service.call('GET /v1/webhooks', { token: account.token })
  t.match([wrongKind.status, wrongKind.json.error], [403, 'wrong_token_kind'])
  t.equal((await service.call('GET /v1/webhooks')).status, 401)
})

t.test('webhooks: another server sees and changes none of them', async (t) => {
  const { webhookId } = (await create()).json
  for (const what of [
    `GET /v1/webhooks/${webhookId}`,
    `DELETE /v1/webhooks/${webhookId}`,
    `POST /v1/webhooks/${webhookId}/disable`,
    `POST /v1/webhooks/${webhookId}/secrets`,
    `GET /v1/webhooks/${webhookId}/deliveries`,
    `GET /v1/webhooks/not-an-id/deliveries`,
    `POST /v1/webhooks/${NO_ID}/enable`,
  ]) {
    const called = await service.call(what, { token: liveServer.token })
    t.match([called.status, called.json.error], [404, 'not_found'], what)
  }
  t.equal((await call(`DELETE /v1/webhooks/${webhookId}`)).status, 204)
})

t.test(
  'webhooks: each event in its shape, signed as a customer verifies it [event.catalogue, webhook.signature]',
  async (t) => {
    const { webhookId, secret } = (await create({}, '/events')).json
    const metadata = { order: '17' }
    const messageId = await send(['Ann+delivered@simulator.test', 'bounce@simulator.test', 'deferred@simulator.test'], {
      tag: 'order',
      metadata,
    })
    await until(() => at('/events').length >= 5, WAIT_MS)
    const seen = at('/events')
    for (const one of seen) {
      const { json, headers } = one
      const event = json.event as EventName
      t.same(isBody[event](json).ok, true, event)
      t.match(json, { messageId, serverId: testServer.serverId, streamId: testServer.streamId, broadcastId: null })
      t.match(json, { tag: 'order', metadata, test: true, attempt: 1 })
      const { 'service-signature': ours = '', 'webhook-signature': _, 'webhook-timestamp': seconds, ...plain } = headers
      t.strictSame(plain, {
        host: new URL(receiver.url).host,
        connection: 'keep-alive',
        'content-length': String(Buffer.byteLength(one.body)),
        'service-event': event,
        'service-delivery-id': json.id,
        'user-agent': 'Service-Webhooks/1',
        'content-type': 'application/json',
        'webhook-id': json.id,
      })
      const hex = createHmac('sha256', secret).update(`${seconds}.${one.body}`).digest('hex')
      t.equal(ours, `t=${seconds},v1=${hex}`)
      t.ok(isSigned(one, secret))
      t.notOk(isSigned(one, `${secret}x`))
      const signed = `${json.id}.${headers['webhook-timestamp']}.${one.body}`
      const key = Buffer.from(secret.slice(6), 'base64')
      t.equal(headers['webhook-signature'], `v1,${createHmac('sha256', key).update(signed).digest('base64')}`)
    }
    const of = (recipient: string) =>
      seen.filter(({ json }) => json.recipient === recipient).map(({ json }) => [json.event, json.details])
    t.match(of('Ann+delivered@simulator.test'), [['delivered', { code: 250 }]])
    t.match(of('bounce@simulator.test'), [
      ['bounced', { code: 550, classification: 'InvalidRecipient', hard: true, expired: false }],
    ])
    t.same(
      of('deferred@simulator.test').map(([event]) => event),
      ['deferred', 'deferred', 'delivered'],
    )
    // The last post is seen before its outcome is committed.
    const list = await until(async () => {
      const page = await call(`GET /v1/webhooks/${webhookId}/deliveries`)
      return page.json.deliveries.every(({ status }: { status: string }) => status === 'delivered') ? page : null
    }, WAIT_MS)
    t.equal(list.json.deliveries.length, 5)
    for (const record of list.json.deliveries)
      t.match(record, { messageId, status: 'delivered', attempts: 1, lastStatusCode: 200, lastError: null })
    t.same(
      list.json.deliveries.map(({ deliveryId }: { deliveryId: string }) => deliveryId),
      seen.map(({ json }) => json.id).reverse(),
      'newest first, attempted in order',
    )
    const { deliveryId, ...record } = list.json.deliveries[0]
    const read = await call(`GET /v1/webhooks/${webhookId}/deliveries/${deliveryId}`)
    const { body, ...shown } = read.json
    t.same(shown, { deliveryId, ...record })
    t.same(body, { ...seen.at(-1)?.json, attempt: 2 })
    const bounced = await call(`GET /v1/webhooks/${webhookId}/deliveries?event=bounced&status=delivered`)
    t.equal(bounced.json.deliveries.length, 1)
    t.equal((await call(`DELETE /v1/webhooks/${webhookId}`)).status, 204)
  },
)

t.test('webhooks: two secrets while the receiver moves [webhook.secrets]', async (t) => {
  const { webhookId, secret } = (await create({}, '/rolling')).json
  const path = `/v1/webhooks/${webhookId}`
  const second = await call(`POST ${path}/secrets`)
  t.equal(second.status, 201)
  const third = await call(`POST ${path}/secrets`)
  t.match([third.status, third.json], [409, { error: 'secret_limit', max: 2 }])
  t.equal((await call(`POST ${path}/test`, { event: 'bounced' })).status, 202)
  await until(() => at('/rolling').length === 1, WAIT_MS)
  const [both] = at('/rolling') as [Received]
  t.ok(isSigned(both, secret) && isSigned(both, second.json.secret))
  const order = both.headers['service-signature']?.split(',v1=').slice(1)
  const { 'webhook-timestamp': seconds = '' } = both.headers
  const hex = (key: string) => createHmac('sha256', key).update(`${seconds}.${both.body}`).digest('hex')
  t.same(order, [hex(second.json.secret), hex(secret)], 'newest first')
  const [first] = (await call(`GET ${path}`)).json.secrets
  t.equal((await call(`DELETE ${path}/secrets/${first.secretId}`)).status, 204)
  t.equal((await call(`DELETE ${path}/secrets/${first.secretId}`)).status, 404)
  const last = await call(`DELETE ${path}/secrets/${second.json.secretId}`)
  t.match([last.status, last.json.error], [409, 'last_secret'])
  await call(`POST ${path}/test`, { event: 'delivered' })
  await until(() => at('/rolling').length === 2, WAIT_MS)
  const one = at('/rolling')[1] as Received
  t.ok(isSigned(one, second.json.secret) && !isSigned(one, secret))
  t.equal((await call(`DELETE ${path}`)).status, 204)
})

t.test('webhooks: an example of every event, with any filter [webhook.example]', async (t) => {
  const { webhookId } = (await create({ events: ['bounced'] }, '/examples')).json
  for (const event of EVENTS) {
    const queued = await call(`POST /v1/webhooks/${webhookId}/test`, { event })
    t.match([queued.status, queued.json.event, queued.json.status], [202, event, 'pending'])
  }
  await until(() => at('/examples').length === EVENTS.length, WAIT_MS)
  for (const { json } of at('/examples')) {
    t.same(isBody[json.event as EventName](json).ok, true, json.event)
    if ('recipient' in json) t.match(json, { test: true, recipient: 'recipient@simulator.test' })
    else t.notOk('test' in json)
  }
  t.same(
    at('/examples').map(({ json }) => json.event),
    [...EVENTS],
  )
  t.equal((await call(`DELETE /v1/webhooks/${webhookId}`)).status, 204)
})

const INBOUND_REFERENCE =
  'id attempt event inboundMessageId serverId streamId receivedAt envelopeRecipient mailboxHash '
    .concat('sizeBytes attachmentCount hasText hasHtml authentication parseIssue')
    .split(' ')
const INBOUND_MORE = 'envelope from replyTo to toCount cc ccCount subject date messageIdHeader inReplyTo references '
  .concat('headers text html attachments contentOmitted')
  .split(' ')

t.test(
  'webhooks: received mail is posted with the parts that the webhook selects [event.catalogue, webhook.example]',
  async (t) => {
    for (const [inboundContent, fields] of [
      ['full', [...INBOUND_REFERENCE, ...INBOUND_MORE]],
      ['reference', INBOUND_REFERENCE],
    ] as const) {
      const { webhookId } = (await create({ inboundContent }, `/${inboundContent}`)).json
      const queued = await call(`POST /v1/webhooks/${webhookId}/test`, { event: 'inbound' })
      const json = (await until(() => at(`/${inboundContent}`)[0], WAIT_MS)).json
      t.same(Object.keys(json), fields)
      t.ok(isBody.inbound(json).ok, inboundContent)
      t.same(Object.keys(json.authentication), 'spf spfHelo dkim dmarc dmarcPolicy arc checkedAt'.split(' '))
      const path = `/v1/webhooks/${webhookId}/deliveries/${queued.json.deliveryId}`
      t.same(Object.keys((await call(`GET ${path}`)).json.body), fields, 'and shown as it would be posted')
      for (const field of fields) {
        const { [field]: _gone, ...less } = json
        t.notOk(isBody.inbound(less).ok, `without ${field}`)
      }
      t.notOk(isBody.inbound({ ...json, more: 1 }).ok)
      t.notOk(isBody.inbound({ ...json, authentication: {} }).ok)
      t.notOk(isBody.inbound({ ...json, parseIssue: 'odd' }).ok)
      t.equal((await call(`DELETE /v1/webhooks/${webhookId}`)).status, 204)
    }
  },
)

t.test(
  'webhooks: a failure waits for its retry, a replay tries at once and continues the count [webhook.replay]',
  async (t) => {
    const { webhookId } = (await create({}, '/failing')).json
    const path = `/v1/webhooks/${webhookId}`
    receiver.react((one, response) => {
      response.statusCode = one.path === '/failing' ? 503 : 200
      response.end()
    })
    const askedAtMs = Date.now()
    const { deliveryId } = (await call(`POST ${path}/test`, { event: 'bounced' })).json
    const read = async () => (await call(`GET ${path}/deliveries/${deliveryId}`)).json
    await until(async () => (await read()).attempts === 1, WAIT_MS)
    const failed = await read()
    t.match(failed, { status: 'pending', lastStatusCode: 503, lastError: 'http_503', deliveredAt: null })
    const waitMs = Date.parse(failed.nextAttemptAt) - askedAtMs
    t.ok(waitMs >= 29_000 && waitMs < 32_000 + WAIT_MS, `${waitMs}`)
    receiver.react(null)
    const replayed = await call(`POST ${path}/deliveries/${deliveryId}/replay`)
    t.match([replayed.status, replayed.json], [202, { deliveryId, status: 'pending', attempts: 1 }])
    await until(async () => (await read()).status === 'delivered', WAIT_MS)
    t.match(await read(), { attempts: 2, lastStatusCode: 200, lastError: null, nextAttemptAt: null })
    t.same(
      at('/failing').map(({ json }) => [json.id, json.attempt]),
      [
        [deliveryId, 1],
        [deliveryId, 2],
      ],
    )
    await call(`POST ${path}/deliveries/${deliveryId}/replay`)
    await until(() => at('/failing').length === 3, WAIT_MS)
    t.equal(at('/failing')[2]?.json.attempt, 3, 'one that was delivered is sent again')
    t.equal((await call(`POST ${path}/deliveries/${webhookId}/replay`)).status, 404)
    t.equal((await call(`DELETE ${path}`)).status, 204)
  },
)

t.test(
  'webhooks: switched off, pending deliveries are dead and nothing is queued; then replayed [webhook.switch]',
  async (t) => {
    const { webhookId } = (await create({}, '/switched')).json
    const path = `/v1/webhooks/${webhookId}`
    receiver.react((one, response) => {
      response.statusCode = one.path === '/switched' ? 500 : 200
      response.end()
    })
    const createdFrom = new Date(Date.now() - 1000).toISOString()
    for (const event of ['bounced', 'delivered', 'deferred']) await call(`POST ${path}/test`, { event })
    await until(() => at('/switched').length === 3, WAIT_MS)
    const off = await call(`POST ${path}/disable`)
    t.match([off.status, off.json.enabled], [200, false])
    t.same((await call(`POST ${path}/disable`)).json, off.json)
    const dead = await call(`GET ${path}/deliveries?status=dead`)
    t.equal(dead.json.deliveries.length, 3, 'at once')
    for (const record of dead.json.deliveries)
      t.match(record, { status: 'dead', lastError: 'webhook_disabled', nextAttemptAt: null })
    t.match((await call(`POST ${path}/test`, { event: 'bounced' })).json, { error: 'webhook_disabled' })
    const replayOff = await call(`POST ${path}/deliveries/${dead.json.deliveries[0].deliveryId}/replay`)
    t.match([replayOff.status, replayOff.json.error], [409, 'webhook_disabled'])
    t.equal((await call(`POST ${path}/replay`, { createdFrom, status: 'dead' })).status, 409)
    await send(['delivered@simulator.test'])
    t.equal((await call(`POST ${path}/enable`)).json.enabled, true)
    t.equal((await call(`GET ${path}/deliveries`)).json.deliveries.length, 3, 'nothing was queued meanwhile')
    receiver.react(null)
    const before = { createdFrom: '2020-01-01T00:00:00Z', createdTo: createdFrom, status: 'dead' }
    const none = await call(`POST ${path}/replay`, before)
    t.match([none.status, none.json], [202, { queued: 0 }], 'all of it died later')
    const isSettled = async () =>
      (await call(`POST ${path}/replay`, { createdFrom, status: 'dead' })).json.queued > 0 ||
      (await call(`GET ${path}/deliveries?status=pending`)).json.deliveries.length > 0
    await until(isSettled, WAIT_MS)
    await until(async () => {
      await call(`POST ${path}/replay`, { createdFrom, status: 'dead' })
      return (await call(`GET ${path}/deliveries?status=delivered`)).json.deliveries.length === 3
    }, WAIT_MS)
    t.same(
      at('/switched').map(({ json }) => json.attempt),
      [1, 1, 1, 2, 2, 2],
    )
    t.equal((await call(`POST ${path}/replay`, { createdFrom, status: 'dead' })).json.queued, 0)
    t.equal((await call(`POST ${path}/replay`, { createdFrom: 'now', status: 'dead' })).status, 400)
    t.equal((await call(`DELETE ${path}`)).status, 204)
  },
)

t.test('webhooks: pages of deliveries continue at their end [webhook.deliveries]', async (t) => {
  const { webhookId } = (await create({}, '/pages')).json
  const path = `/v1/webhooks/${webhookId}/deliveries`
  for (let n = 0; n < 7; n += 1)
    await call(`POST /v1/webhooks/${webhookId}/test`, { event: n % 2 ? 'bounced' : 'deferred' })
  const all = (await call(`GET ${path}`)).json.deliveries.map((one: { deliveryId: string }) => one.deliveryId)
  t.equal(all.length, 7)
  const paged: string[] = []
  for (let after: string | null = null, pages = 0; pages < 9; pages += 1) {
    const page: { deliveries: { deliveryId: string }[]; next: string | null } = (
      await call(`GET ${path}?limit=2${after === null ? '' : `&after=${after}`}`)
    ).json
    paged.push(...page.deliveries.map((one) => one.deliveryId))
    after = page.next
    if (after === null) break
  }
  t.same(paged, all)
  t.equal((await call(`GET ${path}?event=bounced`)).json.deliveries.length, 3)
  t.equal((await call(`GET ${path}?limit=1001`)).status, 400)
  t.equal((await call(`GET ${path}?status=lost`)).status, 400)
  t.equal((await call(`GET ${path}/${NO_ID}`)).status, 404)
  t.equal((await call(`DELETE /v1/webhooks/${webhookId}`)).status, 204)
})

t.test('webhooks: the deliveries of a removed one are dropped [webhook.remove]', async (t) => {
  const { webhookId } = (await create({}, '/removed')).json
  receiver.react((_one, response) => {
    response.statusCode = 500
    response.end()
  })
  for (let n = 0; n < 3; n += 1) await call(`POST /v1/webhooks/${webhookId}/test`, { event: 'bounced' })
  await until(() => at('/removed').length === 3, WAIT_MS)
  t.equal((await call(`DELETE /v1/webhooks/${webhookId}`)).status, 204)
  receiver.react(null)
  const redis = new Redis({ path: service.redis.socketPath })
  t.teardown(() => redis.disconnect())
  const left = async () => (await redis.keys(`*${webhookId}*`)).filter((key) => !key.endsWith(`:webhook:${webhookId}`))
  await until(async () => (await left()).length === 0, WAIT_MS)
})
