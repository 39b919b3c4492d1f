/**
 * webhooks - bodies in the formats of Resend and Postmark, verified and read as their clients do, and the filters by
 * tag and metadata
 */

import { randomUUID } from 'node:crypto'
import { type Models, ServerClient } from 'postmark'
import { Resend } from 'resend'
import t from 'tap'
import { until } from '../support/machine/until.ts'
import { type Received, startReceiver } from '../support/peers/receiver.ts'
import { startTestService } from '../support/service/service.ts'

const WAIT_MS = 20_000
const receiver = await startReceiver()
if (receiver === null) {
  t.pass('openssl is not installed', { skip: true })
  process.exit(0)
}
const service = await startTestService({ PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8' }, { smtp: { ca: receiver.ca } })
t.teardown(async () => {
  await service.stop()
  await receiver.close()
})
const { token } = service.firstRun.testServer
const call = (what: string, body?: object) => service.call(what, { token, ...(body !== undefined && { body }) })
const at = (path: string): Received[] => receiver.received.filter((one) => one.path === path)

async function hook(more: object = {}, base = receiver?.url ?? '') {
  const path = `/${randomUUID()}`
  const made = await call('POST /v1/webhooks', { url: base + path, ...more })
  if (made.status !== 201) throw new Error(made.text)
  return { path, ...(made.json as { webhookId: string; url: string; secret: string }) }
}

async function send(to: string, more: object = {}): Promise<string> {
  const from = { email: 'shop@simulator.test', name: 'Acme' }
  const sent = await call('POST /v1/email', { from, to: [to], subject: 'Grüße', text: 'Hello', ...more })
  if (sent.status !== 200) throw new Error(sent.text)
  return sent.json.messageId
}

const untilCount = (path: string, count: number) => until(() => at(path).length >= count, WAIT_MS)

t.test('webhooks: Resend verifies and reads them [webhook.format]', async (t) => {
  const { path, secret, webhookId } = await hook({ format: 'resend' })
  const shown = (await call(`GET /v1/webhooks/${webhookId}`)).json
  t.match(shown, { format: 'resend', events: ['delivered', 'bounced', 'deferred', 'spam_complaint', 'inbound'] })
  const metadata = { category: 'welcome' }
  const ids = {
    delivered: await send('delivered@simulator.test', { metadata }),
    bounced: await send('bounce+r@simulator.test'),
    complained: await send('complaint+r@simulator.test'),
    deferred: await send('deferred@simulator.test'),
  }
  const untilType = (type: string) => until(() => at(path).some(({ json }) => json.type === type), WAIT_MS)
  for (const type of ['delivered', 'bounced', 'complained', 'delivery_delayed']) await untilType(`email.${type}`)
  await send('bounce+r@simulator.test')
  await untilType('email.suppressed')
  const resend = new Resend('re_123')
  const events = at(path).map(({ body, headers }) => {
    const of = (name: string) => headers[name] ?? ''
    const named = { id: of('svix-id'), timestamp: of('svix-timestamp'), signature: of('svix-signature') }
    return resend.webhooks.verify({ payload: body, headers: named, webhookSecret: secret })
  })
  const of = (type: string) =>
    events.find((event) => event.type === type) as unknown as { data: Record<string, unknown> }
  t.match(of('email.delivered'), {
    data: {
      email_id: ids.delivered,
      from: 'Acme <shop@simulator.test>',
      to: ['delivered@simulator.test'],
      subject: 'Grüße',
      tags: metadata,
    },
  })
  t.match(of('email.bounced').data, { email_id: ids.bounced, bounce: { type: 'Permanent', subType: 'NoEmail' } })
  t.match(of('email.complained').data, { email_id: ids.complained })
  t.match(of('email.delivery_delayed').data, { email_id: ids.deferred })
  t.match(of('email.suppressed').data, { to: ['bounce+r@simulator.test'], suppressed: { type: String } })
  const broken = { id: 'x', timestamp: String(Math.floor(Date.now() / 1000)), signature: 'v1,AAAA' }
  t.throws(() => resend.webhooks.verify({ payload: '{}', headers: broken, webhookSecret: secret }))
  const list = await call(`GET /v1/webhooks/${webhookId}/deliveries?limit=1&event=bounced`)
  const read = await call(`GET /v1/webhooks/${webhookId}/deliveries/${list.json.deliveries[0].deliveryId}`)
  t.match(read.json.body, { type: 'email.suppressed' }, 'a delivery is shown as it was posted')
  await call(`POST /v1/webhooks/${webhookId}/test`, { event: 'bounced' })
  await until(() => at(path).some(({ json }) => json.data.subject === 'Example'), WAIT_MS)
})

t.test("webhooks: Postmark's payloads, with the user of the URL [webhook.format]", async (t) => {
  const base = receiver.url.replace('://', '://ann:s%3Acret@')
  const { path, url, webhookId } = await hook({ format: 'postmark' }, base)
  t.equal(url, receiver.url + path, 'the user is shown nowhere')
  t.notMatch((await call(`GET /v1/webhooks/${webhookId}`)).text, /ann:|s%3Acret|ealed/)
  const id = await send('delivered@simulator.test', { tag: 'welcome', metadata: { order: '7' } })
  const bounced = await send('bounce+p@simulator.test')
  await send('complaint+p@simulator.test')
  await call(`POST /v1/webhooks/${webhookId}/test`, { event: 'unsubscribed' })
  const inbound = await hook({ format: 'postmark', inboundContent: 'raw' })
  await call(`POST /v1/webhooks/${inbound.webhookId}/test`, { event: 'inbound' })
  const example = await until(() => at(inbound.path).find(({ json }) => json.RawEmail !== undefined), WAIT_MS)
  t.match(example?.json, { RawEmail: /^From: .*\r\nTo: .*\r\nSubject: Hello\r\n\r\nHello\n$/s, TextBody: 'Hello\n' })
  await until(() => at(path).some(({ json }) => json.RecordType === 'SubscriptionChange'), WAIT_MS)
  await until(() => at(path).some(({ json }) => json.RecordType === 'SpamComplaint'), WAIT_MS)
  const authorization = `Basic ${Buffer.from('ann:s:cret').toString('base64')}`
  t.ok(at(path).every(({ headers }) => headers.authorization === authorization && headers['webhook-signature']))
  const payloads = at(path).map(({ json }) => json as { RecordType: string; MessageID: string })
  const of = (type: string) => payloads.find(({ RecordType }) => RecordType === type)
  const delivery = payloads.find(({ MessageID }) => MessageID === id) as unknown as Models.DeliveryWebhook
  t.match(delivery, {
    RecordType: 'Delivery',
    Recipient: 'delivered@simulator.test',
    Tag: 'welcome',
    Metadata: { order: '7' },
    MessageStream: 'outbound',
    DeliveredAt: /Z$/,
  })
  const bounce = of('Bounce') as unknown as Models.BounceWebhook
  t.match(bounce, {
    MessageID: bounced,
    Type: 'HardBounce',
    TypeCode: 1,
    From: 'shop@simulator.test',
    Subject: 'Grüße',
  })
  const client = new ServerClient(token, { requestHost: `127.0.0.1:${service.config.httpPort}`, useHttps: false })
  const { RecordType, ID, Email, BouncedAt, MessageStream } = await client.getBounce(bounce.ID)
  t.match(bounce, { RecordType, ID, Email, BouncedAt, MessageStream }, 'the API has it by its ID')
  t.match(of('SpamComplaint'), { Type: 'SpamComplaint', TypeCode: 100_001 })
  t.match(of('SubscriptionChange'), {
    SuppressSending: true,
    SuppressionReason: 'ManualSuppression',
    MessageStream: 'outbound',
  })
})

t.test('webhooks: what a format does not have is refused [webhook.format, webhook.url]', async (t) => {
  const url = 'https://example.com/hook'
  const refused = async (body: object) => (await call('POST /v1/webhooks', { url, ...body })).json.issues
  t.match(await refused({ format: 'resend', events: ['delivered', 'unsubscribed'] }), [{ path: 'events.1' }])
  t.match(await refused({ format: 'postmark', events: ['cap_reached'] }), [{ path: 'events.0' }])
  t.match(await refused({ format: 'mailgun' }), [{ path: 'format' }])
  const user = { url: 'https://a:b@example.com/' }
  for (const format of ['sendwright', 'resend']) t.match(await refused({ ...user, format }), [{ path: 'url' }], format)
  t.match(await refused({ metadata: { a: '1', b: '2' } }), [{ path: 'metadata' }])
  const { webhookId } = await hook({ format: 'resend' })
  const tried = await call(`POST /v1/webhooks/${webhookId}/test`, { event: 'cap_reached' })
  t.match(tried.json, { error: 'invalid_request', issues: [{ path: 'event' }] })
})

t.test('webhooks: filters by tag and metadata [webhook.filter]', async (t) => {
  const tagged = await hook({ tag: 'wanted' })
  const ordered = await hook({ metadata: { order: '42' } })
  const both = await hook({ tag: 'wanted', metadata: { order: '42' } })
  const all = await hook()
  t.match((await call(`GET /v1/webhooks/${both.webhookId}`)).json, { tag: 'wanted', metadata: { order: '42' } })
  const sent = [
    await send('delivered@simulator.test', { tag: 'wanted' }),
    await send('delivered@simulator.test', { tag: 'other', metadata: { order: '42' } }),
    await send('delivered@simulator.test', { tag: 'wanted', metadata: { order: '42', more: 'x' } }),
    await send('delivered@simulator.test', { metadata: { order: '43' } }),
    // A recipient that was suppressed has its event in the commit that writes the message.
    await send('bounce+r@simulator.test', { tag: 'wanted', metadata: { order: '42' } }),
  ]
  for (const one of [tagged, ordered]) {
    await call(`POST /v1/webhooks/${one.webhookId}/disable`)
    await call(`POST /v1/webhooks/${one.webhookId}/enable`)
  }
  sent.push(await send('delivered+last@simulator.test', { tag: 'wanted', metadata: { order: '42' } }))
  const idsAt = ({ path }: { path: string }) => [...new Set(at(path).map(({ json }) => json.messageId))].sort()
  const of = (...places: number[]) => places.map((place) => sent[place]).sort()
  // Posts of one webhook run side by side, so the last message is not the last to arrive.
  for (const [one, places] of [
    [both, of(2, 4, 5)],
    [all, sent],
    [tagged, of(5)],
    [ordered, of(5)],
  ] as const)
    await until(() => places.every((id) => idsAt(one).includes(id)), WAIT_MS)
  t.same(idsAt(both), of(2, 4, 5))
  // Retries of messages of the tests above end in the meantime.
  t.same(
    idsAt(all).filter((id) => sent.includes(id)),
    [...sent].sort(),
  )
  t.ok(idsAt(tagged).every((id) => of(0, 2, 4, 5).includes(id)))
  t.ok(idsAt(ordered).every((id) => of(1, 2, 4, 5).includes(id)))
  t.ok(idsAt(tagged).includes(sent[5]) && idsAt(ordered).includes(sent[5]), 'a switch keeps the filters')
})

t.test('webhooks: a filter by metadata holds through retries of a message [webhook.filter]', async (t) => {
  const both = await hook({ tag: 'late', metadata: { order: '43' }, events: ['deferred', 'delivered'] })
  const other = await hook({ tag: 'late', metadata: { order: '44' } })
  const id = await send('deferred+f@simulator.test', { tag: 'late', metadata: { order: '43' } })
  await untilCount(both.path, 3)
  t.same(
    at(both.path).map(({ json }) => [json.messageId, json.event]),
    [
      [id, 'deferred'],
      [id, 'deferred'],
      [id, 'delivered'],
    ],
  )
  t.same(at(other.path), [])
})

t.test("webhooks: a broadcast's metadata is that of its messages [webhook.filter]", async (t) => {
  const campaign = await hook({ metadata: { campaign: 'autumn' } })
  const own = await hook({ metadata: { person: '2' } })
  const { json: stream } = await call('POST /v1/streams', { kind: 'broadcast', name: 'News' })
  const made = await call('POST /v1/broadcasts', {
    from: 'shop@simulator.test',
    streamId: stream.streamId,
    subject: 'News',
    text: 'Hello',
    metadata: { campaign: 'autumn', person: '0' },
    messages: [1, 2].map((n) => ({ to: `delivered+b${n}@simulator.test`, metadata: { person: String(n) } })),
  })
  t.equal(made.status, 202, made.text)
  await untilCount(campaign.path, 2)
  await untilCount(own.path, 1)
  t.match(at(own.path), [{ json: { recipient: 'delivered+b2@simulator.test' } }])
  t.equal(at(campaign.path).length, 2)
})
