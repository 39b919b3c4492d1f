/**
 * webhook-events - events that nobody asked for as an example: caps and complaints as they happen, each in its exact
 * shape, and what a webhook hears that is set to one stream: the real service, a receiver on TLS, mail over real SMTP.
 */
import t, { type Test } from 'tap'
import { EVENT_BODIES, type EventName } from '../../schemas/webhook.ts'
import { compileBody } from '../../src/http/shape/validate.ts'
import { until } from '../support/machine/until.ts'
import { startMx } from '../support/peers/mx.ts'
import { type Received, startReceiver } from '../support/peers/receiver.ts'
import { deliverMail } from '../support/peers/smtp-dialog.ts'
import { startZone } from '../support/peers/zone.ts'
import { startTestService } from '../support/service/service.ts'

const WAIT_MS = 20_000
const receiver = await startReceiver()
if (receiver === null) {
  t.pass('openssl is not installed: skipped')
  process.exit(0)
}
const zone = await startZone()
const mx = await startMx()
const settings = {
  DNS_SERVERS: zone.server,
  DELIVERY_PORT: String(mx.port),
  PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8',
  SERVICE_DOMAIN: 'service.example',
  CONTENT_STORE: 'file',
}
const service = await startTestService(settings, { smtp: { ca: receiver.ca } })
const { account, liveServer, testServer, operatorToken } = service.firstRun
t.teardown(async () => {
  await service.stop()
  await Promise.all([mx.close(), zone.close(), receiver.close()])
})

/** Caps are of a month, which must not end meanwhile. */
const MONTH_MS_MIN = 180_000
await until(() => monthLeftMs() > MONTH_MS_MIN, 2 * MONTH_MS_MIN)
const beganAtMs = Date.now()
const [year, month] = [new Date(beganAtMs).getUTCFullYear(), new Date(beganAtMs).getUTCMonth()]
const PERIOD = {
  periodStart: new Date(Date.UTC(year, month)).toISOString(),
  periodEnd: new Date(Date.UTC(year, month + 1)).toISOString(),
}
const at = (path: string): Received[] => receiver.received.filter((one) => one.path === path)
const eventsAt = (path: string) => at(path).map(({ json }) => json)
const capsAt = (path: string) => eventsAt(path).filter(({ event }) => event.startsWith('cap_'))
const operate = async (changes: object): Promise<void> => {
  const what = `PATCH /v1/operator/accounts/${account.accountId}`
  t.equal((await service.operate(what, { token: operatorToken, body: changes })).status, 200)
}
const hook = async (token: string, path: string, more: object = {}): Promise<void> => {
  const made = await service.call('POST /v1/webhooks', { token, body: { url: receiver.url + path, ...more } })
  t.equal(made.status, 201)
}
const streamOf = async (token: string): Promise<string> => {
  const body = { kind: 'transactional', name: 'Apart' }
  return (await service.call('POST /v1/streams', { token, body })).json.streamId
}

function monthLeftMs(): number {
  const now = new Date()
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1) - now.getTime()
}

/** An event as it must be: nothing more, nothing less, and allowed by its schema. */
function sameEvent(
  t: Test,
  json: Record<string, unknown>,
  expected: { event: EventName; [field: string]: unknown },
): void {
  const { id, attempt, occurredAt, ...rest } = json
  t.strictSame(rest, expected)
  t.match([typeof id, attempt], ['string', 1])
  const occurredAtMs = Date.parse(String(occurredAt))
  t.ok(occurredAtMs >= beganAtMs - 1_000 && occurredAtMs <= Date.now() + 1_000, String(occurredAt))
  t.equal(compileBody(EVENT_BODIES[expected.event])(json).ok, true, expected.event)
}

t.test('webhook events: caps of live servers are told once each [event.cap, event.catalogue]', async (t) => {
  const { token } = liveServer
  const added = await service.call('POST /v1/domains', { token: account.token, body: { domain: 'live.example' } })
  zone.set(added.json.returnPath.host, { type: 'CNAME', domain: added.json.returnPath.value })
  zone.set(added.json.dkim.host, { type: 'TXT', data: added.json.dkim.value.match(/.{1,255}/g) })
  await service.call(`POST /v1/domains/${added.json.domainId}/verify`, { token: account.token })
  zone.set('there.example', { type: 'MX', exchange: 'mx.there.example', priority: 10 })
  zone.set('mx.there.example', { type: 'A', address: '127.0.0.1' })
  const streamId = await streamOf(token)
  await hook(token, '/live')
  await hook(token, '/apart', { streamId })
  await hook(testServer.token, '/others')
  const send = (more: object = {}) => {
    const body = { from: 'shop@live.example', to: ['ann@there.example'], subject: 'Hello', text: 'Mail', ...more }
    return service.call('POST /v1/email', { token, body })
  }
  const sendAll = async (statuses: readonly number[]): Promise<void> => {
    for (const status of statuses) t.equal((await send()).status, status)
  }
  const capServer = (monthlyCap: number | null) =>
    service.call(`PATCH /v1/servers/${liveServer.serverId}`, { token: account.token, body: { monthlyCap } })
  await operate({ monthlyCap: 10 })
  t.equal((await capServer(5)).status, 200)
  await sendAll([200, 200, 200, 200, 200, 429, 429])
  t.equal((await capServer(null)).status, 200)
  await sendAll([200, 200, 200, 200])
  const sent = await send({ streamId, tag: 'order', metadata: { order: '17' } })
  await sendAll([429, 429])
  for (const path of ['/live', '/apart']) {
    await until(() => capsAt(path).length >= 4, WAIT_MS)
    const [warned, reached, accountWarned, accountReached] = capsAt(path)
    const server = { scope: 'server', serverId: liveServer.serverId, cap: 5, ...PERIOD }
    sameEvent(t, warned, { event: 'cap_warning', used: 4, ...server })
    sameEvent(t, reached, { event: 'cap_reached', used: 5, ...server })
    const whole = { scope: 'account', serverId: null, cap: 10, ...PERIOD }
    sameEvent(t, accountWarned, { event: 'cap_warning', used: 8, ...whole })
    sameEvent(t, accountReached, { event: 'cap_reached', used: 10, ...whole })
  }
  const { messageId } = sent.json
  await until(() => eventsAt('/live').filter(({ event }) => event === 'delivered').length === 10, WAIT_MS)
  const returnPath = mx.sessions
    .flatMap(({ commands }) => commands)
    .map((line) => /^MAIL FROM:<([^>]*)>/.exec(line)?.[1])
    .findLast(Boolean)
  const told = eventsAt('/live').find((one) => one.messageId === messageId)
  t.match(told, { event: 'delivered', streamId })
  t.match(await deliverMail(service.config.mxPort, 'fbl@rp.service.example', complaint(returnPath ?? '')), /^250 /)
  const complained = await until(() => eventsAt('/live').find(({ event }) => event === 'spam_complaint'), WAIT_MS)
  const about = eventsAt('/live').find((one) => one.event === 'delivered' && one.messageId === complained.messageId)
  t.ok(about !== undefined)
  sameEvent(t, complained, {
    event: 'spam_complaint',
    messageId: about.messageId,
    recipient: 'ann@there.example',
    serverId: liveServer.serverId,
    streamId: about.streamId,
    broadcastId: null,
    tag: about.tag,
    metadata: about.metadata,
    test: false,
    details: { feedbackType: 'abuse' },
  })
  await until(() => eventsAt('/apart').length >= 5, WAIT_MS)
  const ofApart = eventsAt('/apart').filter(({ event }) => !event.startsWith('cap_'))
  for (const one of ofApart) t.equal(one.streamId, streamId, 'of its stream alone')
  t.ok(ofApart.some((one) => one.event === 'delivered' && one.messageId === messageId))
  t.equal(capsAt('/live').length, 4, 'each once')
  t.equal(capsAt('/apart').length, 4)
  t.same(eventsAt('/others'), [], 'caps of live servers are none of the test servers')
})

t.test('webhook events: the cap of test servers, and a complaint there [event.cap, event.catalogue]', async (t) => {
  const { token } = testServer
  const streamId = await streamOf(token)
  await hook(token, '/test')
  await hook(token, '/test-apart', { streamId })
  await operate({ testMonthlyCap: 5 })
  const more = { tag: 'order', metadata: { order: '17' } }
  const body = {
    from: 'shop@simulator.test',
    to: ['complaint@simulator.test'],
    subject: 'Hello',
    text: 'Mail',
    ...more,
  }
  const sent = await service.call('POST /v1/email', { token, body })
  const to = ['a', 'b', 'c'].map((tag) => `delivered+${tag}@simulator.test`)
  const rest = (recipients: string[]) => service.call('POST /v1/email', { token, body: { ...body, to: recipients } })
  t.equal((await rest(to)).status, 200)
  for (let n = 0; n < 3; n += 1) t.equal((await rest([...to].slice(0, 2))).status, 429)
  for (const path of ['/test', '/test-apart']) {
    await until(() => capsAt(path).length >= 2, WAIT_MS)
    const whole = { scope: 'test', serverId: null, cap: 5, used: 4, ...PERIOD }
    const [warned, reached] = capsAt(path)
    sameEvent(t, warned, { event: 'cap_warning', ...whole })
    sameEvent(t, reached, { event: 'cap_reached', ...whole })
  }
  const complained = await until(() => eventsAt('/test').find(({ event }) => event === 'spam_complaint'), WAIT_MS)
  sameEvent(t, complained, {
    event: 'spam_complaint',
    messageId: sent.json.messageId,
    recipient: 'complaint@simulator.test',
    serverId: testServer.serverId,
    streamId: testServer.streamId,
    broadcastId: null,
    ...more,
    test: true,
    details: { feedbackType: 'abuse' },
  })
  await until(() => eventsAt('/test').filter(({ event }) => event === 'delivered').length === 4, WAIT_MS)
  t.equal(eventsAt('/test-apart').length, 2, 'cap events alone: nothing went over its stream')
  t.equal(capsAt('/test').length, 2)
  t.equal(capsAt('/live').length, 4, 'the cap of test servers is none of the live ones')
})

function complaint(returnPath: string): string {
  return `From: staff@provider.example
Subject: FW: Hello
MIME-Version: 1.0
Content-Type: multipart/report; report-type=feedback-report; boundary="b"

--b
Content-Type: message/feedback-report

Feedback-Type: abuse
User-Agent: Loop/1.0
Version: 1

--b
Content-Type: message/rfc822

Return-Path: <${returnPath}>
Subject: Hello

Mail
--b--
`
}
