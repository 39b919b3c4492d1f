/**
 * sendwright - the TypeScript client against a running service: each group of calls, every page, the feed, errors.
 */
import t from 'tap'
import {
  AuthenticationError,
  ConflictError,
  ConnectionError,
  type Event,
  NotFoundError,
  PermissionError,
  Sendwright,
  SendwrightError,
  ValidationError,
  WaitTimeoutError,
} from '../../src/client/sendwright.ts'
import { until } from '../support/machine/until.ts'
import { deliverMail } from '../support/peers/smtp-dialog.ts'
import { startZone } from '../support/peers/zone.ts'
import { startTestService } from '../support/service/service.ts'

const WAIT_MS = 20_000
const zone = await startZone()
const service = await startTestService({ CONTENT_STORE: 'file', DNS_SERVERS: zone.server })
const { account, liveServer, testServer } = service.firstRun
const url = `http://127.0.0.1:${service.config.httpPort}`
const client = new Sendwright({ key: testServer.token, url: `${url}/` })
t.teardown(async () => {
  await service.stop()
  await zone.close()
})

const EMAIL = { from: 'you@simulator.test', subject: 'Hello', text: 'It works.' } as const

async function listOf<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = []
  for await (const item of items) found.push(item)
  return found
}

t.test('client: a message is sent, read, found on every page, and its events walked [client.types]', async (t) => {
  const ids: string[] = []
  for (let n = 0; n < 5; n += 1) {
    const { messageId, status } = await client.send({ ...EMAIL, to: [`ada+${n}@simulator.test`], tag: 'walk' })
    t.equal(status, 'accepted')
    ids.unshift(messageId)
  }
  const found = await listOf(client.messages.iterate({ tag: 'walk', limit: 2 }))
  t.same(
    found.map(({ messageId }) => messageId),
    ids,
  )
  t.equal((await client.messages.search({ tag: 'walk', limit: 2 })).messages.length, 2)
  const message = await client.messages.read(ids[0] as string)
  t.match(message, { subject: 'Hello', text: 'It works.', tag: 'walk' })
  const events = await until(async () => {
    const some = await listOf(client.events.iterate({ tag: 'walk', limit: 2 }))
    return some.length === 5 ? some : null
  }, WAIT_MS)
  for (const event of events) t.equal(event.event === 'delivered' && event.details.code, 250)
})

t.test('client: a message is waited for [client.types]', async (t) => {
  const found = client.messages.wait({ tag: 'awaited' })
  const { messageId } = await client.send({ ...EMAIL, to: ['wait@simulator.test'], tag: 'awaited' })
  t.match(await found, { messageId, text: 'It works.' })
  t.equal((await client.messages.wait({ tag: 'awaited' }, { timeoutSeconds: 0 })).messageId, messageId)
  await t.rejects(client.messages.wait({ tag: 'never' }, { timeoutSeconds: 1 }), WaitTimeoutError)
})

t.test('client: a key sends once, and a batch answers for each message [client.retries]', async (t) => {
  const email = { ...EMAIL, to: [{ email: 'ada@simulator.test', name: 'Ada' }] }
  const first = await client.send(email, { idempotencyKey: 'order-1' })
  t.same(await client.send(email, { idempotencyKey: 'order-1' }), first)
  t.not((await client.send(email)).messageId, first.messageId, 'without a key each call has its own')
  const { messages } = await client.sendBatch({
    messages: [email, { ...email, from: 'a@other.example' }],
    partial: true,
  })
  t.match(messages, [{ status: 'accepted' }, { error: 'domain_not_verified', domain: 'other.example' }])
})

t.test('client: a scheduled message is moved and cancelled [client.types]', async (t) => {
  const at = new Date(Date.now() + 3_600_000)
  const { messageId } = await client.send({ ...EMAIL, to: ['a@simulator.test'], sendAt: at.toISOString() })
  const later = new Date(at.getTime() + 60_000)
  t.equal((await client.messages.reschedule(messageId, later)).sendAt, later.toISOString())
  t.match((await client.messages.cancel(messageId)).recipients, [{ status: 'cancelled' }])
  const sent = await client.send({ ...EMAIL, to: ['a@simulator.test'] })
  await t.rejects(client.messages.cancel(sent.messageId), ConflictError)
})

t.test('client: suppressions are added, walked and lifted [client.types]', async (t) => {
  const streamId = testServer.streamId
  const recipients = ['one@x.example', 'two@x.example', 'three@x.example']
  t.same(await client.suppressions.add({ streamId, recipients }), { added: 3, existing: 0 })
  const all = await listOf(client.suppressions.iterate({ streamId, reason: 'manual', limit: 2 }))
  t.equal(all.length, 3)
  const id = all[0]?.suppressionId as string
  t.match(await client.suppressions.read(id), { reason: 'manual', liftable: true })
  t.equal(await client.suppressions.lift(id), undefined)
  await t.rejects(client.suppressions.read(id), NotFoundError)
})

t.test('client: a broadcast is previewed, sent and listed [client.types]', async (t) => {
  const { json } = await service.call('POST /v1/streams', {
    token: testServer.token,
    body: { kind: 'broadcast', name: 'News' },
  })
  const body = {
    streamId: json.streamId as string,
    from: EMAIL.from,
    subject: 'News',
    text: 'Hello {{name}}',
    messages: [{ to: 'ada@simulator.test', substitutions: { name: 'Ada' } }],
  }
  t.match((await client.broadcasts.preview({ ...body, index: 0 })).text, /Hello Ada/)
  const { broadcastId, total } = await client.broadcasts.create(body)
  t.equal(total, 1)
  t.equal((await client.broadcasts.read(broadcastId)).broadcastId, broadcastId)
  t.equal((await listOf(client.broadcasts.iterate({ limit: 1 }))).length, 1)
})

t.test('client: domains and erasures take an account key [client.types]', async (t) => {
  const ours = new Sendwright({ key: account.token, url })
  const { domainId } = await ours.domains.add({ domain: 'client.example' })
  const { check } = await ours.domains.verify(domainId)
  t.equal(check.dkim, 'missing')
  t.ok((await listOf(ours.domains.iterate({ limit: 1 }))).some(({ domain }) => domain === 'client.example'))
  t.equal((await ours.domains.useInTests(domainId)).testOnly, true)
  await ours.domains.delete(domainId)
  const { erasureId } = await ours.erasures.create('ada+1@simulator.test')
  const done = await until(async () => {
    const erasure = await ours.erasures.read(erasureId)
    return erasure.status === 'done' ? erasure : null
  }, WAIT_MS)
  t.ok((done.messages ?? 0) >= 1)
  await t.rejects(client.domains.list(), PermissionError)
})

t.test('client: lists are exported as CSV, and a refusal is an error [client.exports] [export.csv]', async (t) => {
  const ours = new Sendwright({ key: account.token, url })
  const textOf = async (pieces: AsyncIterable<Uint8Array>) => {
    const all: Uint8Array[] = []
    for await (const piece of pieces) all.push(piece)
    return Buffer.concat(all).toString()
  }
  await client.send({ ...EMAIL, to: ['ada@simulator.test'], tag: 'csv' })
  t.match(await textOf(client.exports.messages({ tag: 'csv' })), /^messageId,.*\r\n.*ada@simulator\.test.*\r\n$/)
  t.match(await textOf(client.exports.bounces({ tag: 'csv' })), /^messageId,.*\r\n$/)
  t.match(await textOf(client.exports.suppressions()), /^suppressionId,/)
  t.match(await textOf(ours.exports.activity()), /exportMessages/)
  const { domainId } = await ours.domains.add({ domain: 'csv.example' })
  t.match(await textOf(ours.exports.reports(domainId, { result: 'fail' })), /^day,source,own,messages,.*\r\n$/)
  t.match(await textOf(ours.exports.tlsReports(domainId)), /^day,reporter,policyType,.*\r\n$/)
  await t.rejects(textOf(client.exports.activity()), PermissionError)
  await t.rejects(textOf(ours.exports.reports(domainId, { source: 'x' })), ValidationError)
  await ours.domains.delete(domainId)
  await t.rejects(textOf(ours.exports.reports(domainId)), NotFoundError)
  const cut = new AbortController()
  cut.abort()
  await t.rejects(textOf(client.exports.messages({}, { signal: cut.signal })), { name: 'AbortError' })
})

t.test('client: received mail is found and read, raw and by attachment [client.types]', async (t) => {
  const { inbound } = new Sendwright({ key: liveServer.token, url })
  const { json } = await service.call('POST /v1/streams', {
    token: liveServer.token,
    body: { kind: 'inbound', name: 'In' },
  })
  const lines = [
    'From: Ada <ada@example.org>',
    'Subject: Hi',
    'MIME-Version: 1.0',
    'Content-Type: multipart/mixed; boundary=b',
    '',
    '--b',
    'Content-Type: text/plain',
    '',
    'Good day',
    '--b',
    'Content-Type: text/csv; name=a.csv',
    'Content-Disposition: attachment; filename=a.csv',
    '',
    '1,2',
    '--b--',
    '',
  ]
  t.match(await deliverMail(service.config.mxPort, json.inboundAddress, lines.join('\n')), /^250/)
  const [one] = await until(async () => {
    const found = await listOf(inbound.iterate({ limit: 1 }))
    return found[0]?.subject === 'Hi' ? found : null
  }, WAIT_MS)
  const id = one?.inboundMessageId as string
  t.match(await inbound.read(id), { text: /Good day/, attachments: [{ name: 'a.csv' }] })
  t.match(Buffer.from(await inbound.raw(id)).toString(), /Subject: Hi/)
  t.equal(
    Buffer.from(await inbound.attachment(id, 0))
      .toString()
      .trim(),
    '1,2',
  )
})

t.test('client: the feed goes on when the service comes back, and ends when it is told to [client.feed]', async (t) => {
  const ending = new AbortController()
  const got: Event[] = []
  const lost: string[] = []
  const following = (async () => {
    const options = { signal: ending.signal, onDisconnect: (reason: string) => void lost.push(reason) }
    for await (const event of client.events.follow(options)) got.push(event)
  })()
  const sendUntilHeard = async (to: string) => {
    const before = got.length
    await until(async () => {
      await client.send({ ...EMAIL, to: [to] })
      return got.length > before
    }, WAIT_MS)
  }
  await sendUntilHeard('feed@simulator.test')
  await service.restart()
  await sendUntilHeard('feed@simulator.test')
  t.ok(lost.length > 0, 'the connection was lost')
  const ids = got.map(({ id }) => id)
  t.equal(new Set(ids).size, ids.length, 'no event came twice')
  ending.abort()
  await following
  const sending = setInterval(() => void client.send({ ...EMAIL, to: ['feed@simulator.test'] }), 200)
  for await (const event of client.events.follow()) {
    t.ok(event.id, 'a loop that is left ends the feed')
    break
  }
  clearInterval(sending)
})

t.test('client: errors have a class, a code, the issues and the request [client.errors]', async (t) => {
  const wrong = client.send({ ...EMAIL, to: ['nobody'], subject: '' })
  const error = await wrong.then(
    () => null,
    (one: unknown) => one,
  )
  t.ok(error instanceof ValidationError && error instanceof SendwrightError)
  t.match(error, { status: 400, code: 'invalid_request', name: 'ValidationError', requestId: /^[0-9a-f-]{36}$/ })
  t.same(
    (error as ValidationError).issues.map(({ path }) => path),
    ['subject', 'to.0'],
  )
  t.match((error as Error).message, /to\.0/)
  await t.rejects(new Sendwright({ key: 'sk_test_wrong', url }).readServer(), AuthenticationError)
  await t.rejects(client.messages.read('01a1f8d8-8300-7000-8000-0e7faee555a7'), NotFoundError)
  const away = new Sendwright({ key: testServer.token, url: 'http://127.0.0.1:9', retries: 0 })
  await t.rejects(away.send({ ...EMAIL, to: ['a@simulator.test'] }), ConnectionError)
})

t.test('client: wrong options are refused, and a key in a browser too [client.browser]', async (t) => {
  const key = testServer.token
  for (const options of [
    { key: '' },
    { key: 'sk x' },
    { key, url: 'mail.example' },
    { key, retries: 5 },
    { key, timeoutMs: 0 },
  ])
    t.throws(() => new Sendwright(options), SendwrightError)
  const here = globalThis as { window?: unknown }
  here.window = { document: {} }
  try {
    t.throws(() => new Sendwright({ key }), /browser/)
    t.ok(new Sendwright({ key, allowBrowser: true }))
  } finally {
    delete here.window
  }
})
