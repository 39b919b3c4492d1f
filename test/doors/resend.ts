/**
 * resend - the official client of Resend against a running service, whose base URL and key are all that changes
 */

import { Resend } from 'resend'
import t from 'tap'
import { until } from '../support/machine/until.ts'
import { multipart } from '../support/peers/mime-mail.ts'
import { deliverMail } from '../support/peers/smtp-dialog.ts'
import { startTestService } from '../support/service/service.ts'

const service = await startTestService({ CONTENT_STORE: 'file' })
t.teardown(() => service.stop())
const { account, liveServer, testServer } = service.firstRun
const baseUrl = `http://127.0.0.1:${service.config.httpPort}`
process.env.RESEND_BASE_URL = baseUrl
const resend = new Resend(testServer.token)

/** The data of an answer of the client; a refusal fails the test. */
function dataOf<Data>({ data, error }: { data: Data | null; error: unknown }): Data {
  if (data === null) throw new Error(JSON.stringify(error))
  return data
}

function untilEvent(id: string, event: string) {
  return until(async () => {
    const email = dataOf(await resend.emails.get(id))
    return email.last_event === event ? email : null
  }, 10_000)
}

t.test('resend: a message is sent and read back', async (t) => {
  const { id } = dataOf(
    await resend.emails.send({
      from: 'Acme, Inc <hello@simulator.test>',
      to: ['Łukasz, the 1st <delivered@simulator.test>', 'delivered+b@simulator.test'],
      cc: 'delivered+c@simulator.test',
      bcc: ['delivered+d@simulator.test'],
      replyTo: ['"Help, now" <help@example.com>', 'other@example.com'],
      subject: 'Grüße',
      html: '<p>Hello</p>',
      text: 'Hello',
      headers: { 'X-Entity-Ref-ID': '7' },
      tags: [{ name: 'category', value: 'welcome' }],
    }),
  )
  const email = await untilEvent(id, 'delivered')
  t.match(email, {
    object: 'email',
    id,
    message_id: `<${id}@simulator.test>`,
    from: '"Acme, Inc" <hello@simulator.test>',
    to: ['"Łukasz, the 1st" <delivered@simulator.test>', 'delivered+b@simulator.test'],
    cc: ['delivered+c@simulator.test'],
    bcc: ['delivered+d@simulator.test'],
    reply_to: ['"Help, now" <help@example.com>', 'other@example.com'],
    subject: 'Grüße',
    html: '<p>Hello</p>',
    text: 'Hello',
    tags: [{ name: 'category', value: 'welcome' }],
    scheduled_at: null,
  })
})

const FROM = 'Acme <hello@simulator.test>'
const plain = { from: FROM, to: 'delivered@simulator.test', subject: 'Hello', text: 'Hello' }
const UNKNOWN_ID = '01a1f8d8-8300-7000-8000-0e7faee555a7'

/** Calls that are refused: what is sent, the error's name and status, and words of its message. */
const REFUSED: readonly [object, string, number, RegExp][] = [
  [{ ...plain, from: 'nobody' }, 'invalid_from_address', 422, /`from`/],
  [{ ...plain, from: 'a@elsewhere.example' }, 'validation_error', 403, /elsewhere\.example domain is not verified/],
  [{ ...plain, to: 'no address' }, 'validation_error', 422, /`to\.0`/],
  [{ ...plain, subject: undefined }, 'missing_required_field', 422, /`subject`/],
  [{ ...plain, text: '' }, 'validation_error', 422, /`text`/],
  [{ ...plain, topicId: UNKNOWN_ID }, 'validation_error', 422, /Topics are not offered/],
  [{ ...plain, template: { id: 'welcome' } }, 'validation_error', 422, /Templates are not offered/],
  [{ ...plain, attachments: [{ path: 'https://x.example/a', filename: 'a' }] }, 'invalid_attachment', 422, /fetched/],
  [{ ...plain, attachments: [{ filename: 'a', content: '***' }] }, 'invalid_attachment', 422, /attachments\.0/],
  [
    {
      ...plain,
      tags: [
        { name: 'a', value: '1' },
        { name: 'a', value: '2' },
      ],
    },
    'validation_error',
    422,
    /tags\.1/,
  ],
  [{ ...plain, scheduledAt: 'tomorrow' }, 'validation_error', 422, /`scheduled_at`/],
  [{ ...plain, replyTo: 'nobody' }, 'validation_error', 422, /`reply_to`/],
  [{ ...plain, headers: { Bcc: 'a@b.example' } }, 'validation_error', 422, /headers\.Bcc/],
]

t.test('resend: what is not offered is refused with the error of the client', async (t) => {
  for (const [payload, name, statusCode, words] of REFUSED) {
    const { error } = await resend.emails.send(payload as typeof plain)
    t.match(error, { name, statusCode, message: words })
  }
  t.match((await new Resend('re_123').emails.send(plain)).error, { name: 'invalid_api_key', statusCode: 401 })
  t.match((await resend.emails.get(UNKNOWN_ID)).error, { name: 'not_found', statusCode: 404 })
  t.match((await resend.contacts.list()).error, { name: 'not_found', message: /Contacts are not offered/ })
  t.match((await resend.domains.list()).error, { name: 'restricted_api_key', statusCode: 401 })
})

t.test('resend: Buffers and base64 are attachments, and an address of an inline image is found', async (t) => {
  const bytes = Buffer.from('%PDF-1.4 ünïcode')
  const { id } = dataOf(
    await resend.emails.send({
      ...plain,
      html: '<img src="cid:logo">',
      attachments: [
        { filename: 'rechnung-ü.pdf', content: bytes },
        { filename: 'logo.png', content: bytes.toString('base64'), contentType: 'Image/PNG', contentId: 'logo' },
      ],
    }),
  )
  const { json } = await service.call(`GET /v1/messages/${id}`, { token: testServer.token })
  t.match(json.attachments, [
    { name: 'rechnung-ü.pdf', size: bytes.length },
    { name: 'logo.png', contentType: 'image/png', contentId: 'logo', size: bytes.length },
  ])
})

t.test('resend: one Idempotency-Key is one message, 64 times at once', async (t) => {
  // A time in words names another moment at each repeat: the key is bound to what the client wrote.
  const payload = { ...plain, subject: 'Once', scheduledAt: 'in 1 hour' }
  const idempotencyKey = 'k'.repeat(256)
  const sent = await Promise.all(Array.from({ length: 64 }, () => resend.emails.send(payload, { idempotencyKey })))
  const ids = sent.map((one) => dataOf(one).id)
  t.equal(new Set(ids).size, 1)
  const other = await resend.emails.send({ ...payload, subject: 'Twice' }, { idempotencyKey })
  t.match(other.error, { name: 'invalid_idempotent_request', statusCode: 409 })
  const long = await resend.emails.send(plain, { idempotencyKey: 'k'.repeat(257) })
  t.match(long.error, { name: 'invalid_idempotency_key', statusCode: 400 })
  const { json } = await service.call('POST /v1/messages/search', { token: testServer.token, body: { limit: 100 } })
  t.equal(json.messages.filter(({ subject }: { subject: string }) => subject === 'Once').length, 1)
})

t.test('resend: scheduled, moved, cancelled', async (t) => {
  const { id } = dataOf(await resend.emails.send({ ...plain, scheduledAt: 'in 1 min' }))
  t.equal(dataOf(await resend.emails.get(id)).last_event, 'scheduled')
  const later = new Date(Date.now() + 7_200_000).toISOString()
  t.same(dataOf(await resend.emails.update({ id, scheduledAt: later })), { object: 'email', id })
  t.equal(dataOf(await resend.emails.get(id)).scheduled_at, later)
  t.same(dataOf(await resend.emails.cancel(id)), { object: 'email', id })
  t.equal(dataOf(await resend.emails.get(id)).last_event, 'canceled')
  const { id: sent } = dataOf(await resend.emails.send(plain))
  t.match((await resend.emails.cancel(sent)).error, { name: 'validation_error', statusCode: 422 })
  const far = await resend.emails.send({ ...plain, scheduledAt: 'in 9 weeks' })
  t.match(far.error, { name: 'validation_error', statusCode: 422, message: /`scheduled_at`.*6 on a test server/ })
})

t.test('resend: a batch is accepted whole, or each message on its own', async (t) => {
  const good = plain
  const bad = [
    { ...good, to: 'nobody' },
    { ...good, topicId: 'x' },
    { ...good, from: 'a@elsewhere.example' },
  ]
  const whole = dataOf(await resend.batch.send([good, good]))
  t.equal(whole.data.length, 2)
  const strict = await resend.batch.send([good, bad[0] as typeof good])
  t.match(strict.error, { name: 'validation_error', statusCode: 422, message: /`1\.to\.0`/ })
  const many = Array.from({ length: 50 }, (_, place) => (place % 3 === 2 ? bad[((place - 2) / 3) % 3] : good))
  const idempotencyKey = 'a batch'
  const options = { batchValidation: 'permissive', idempotencyKey } as const
  const sent = dataOf(await resend.batch.send(many as (typeof good)[], options))
  t.equal(sent.data.length, 34)
  t.same(
    sent.errors.map(({ index }) => index),
    Array.from({ length: 16 }, (_, place) => 3 * place + 2),
  )
  t.match(sent.errors[0], { message: /`to\.0`/ })
  t.match(sent.errors[1], { message: /Topics/ })
  t.match(sent.errors[2], { message: /not verified/ })
  t.same(dataOf(await resend.batch.send(many as (typeof good)[], options)), sent, 'replayed')
  const one = { batchValidation: 'permissive', idempotencyKey: 'in part' } as const
  dataOf(await resend.batch.send([good, { ...good, from: 'a@unknown.example' }], one))
  const again = await resend.batch.send([good, { ...good, from: 'a@unknown.example' }], { idempotencyKey: 'in part' })
  t.match(
    again.error,
    { name: 'invalid_idempotent_request', statusCode: 409 },
    'what was sent in part is no whole answer',
  )
  t.match((await resend.batch.send([])).error, { name: 'validation_error' })
})

t.test('resend: messages are listed in both directions', async (t) => {
  const all = dataOf(await resend.emails.list({ limit: 10 }))
  t.match(all, { object: 'list', has_more: true })
  const [first, second, third, fourth] = all.data.map(({ id }) => id) as [string, string, string, string]
  const after = dataOf(await resend.emails.list({ limit: 2, after: first }))
  t.same([after.data.map(({ id }) => id), after.has_more], [[second, third], true])
  const before = dataOf(await resend.emails.list({ limit: 2, before: fourth }))
  t.same([before.data.map(({ id }) => id), before.has_more], [[second, third], true])
  const top = dataOf(await resend.emails.list({ limit: 2, before: third }))
  t.same([top.data.map(({ id }) => id), top.has_more], [[first, second], false])
  t.match((await resend.emails.list({ before: UNKNOWN_ID })).error, { name: 'validation_error', message: /after/ })
})

t.test('resend: suppressions of the default stream', async (t) => {
  const { id } = dataOf(await resend.suppressions.add({ email: 'gone+1@example.com' }))
  t.same(dataOf(await resend.suppressions.add({ email: 'gone+1@example.com' })).id, id, 'once')
  const entry = dataOf(await resend.suppressions.get('gone+1@example.com'))
  t.match(entry, { object: 'suppression', id, email: 'gone+1@example.com', origin: 'manual', source_id: null })
  t.same(dataOf(await resend.suppressions.get(id)), entry)
  const { id: sent } = dataOf(await resend.emails.send({ ...plain, to: 'bounce@simulator.test' }))
  await untilEvent(sent, 'bounced')
  const bounced = dataOf(await resend.suppressions.list({ origin: 'bounce' }))
  t.match(bounced, { has_more: false, data: [{ email: 'bounce@simulator.test', source_id: sent }] })
  t.equal(dataOf(await resend.suppressions.list({ origin: 'manual' })).data.length, 1)
  const added = dataOf(await resend.suppressions.batch.add({ emails: ['gone+2@example.com', 'gone+3@example.com'] }))
  t.equal(added.data.length, 2)
  const emails = ['gone+2@example.com', 'never@example.com']
  const removed = dataOf(await resend.suppressions.batch.remove({ emails }))
  t.same(
    removed.data.map(({ deleted }) => deleted),
    [true, false],
  )
  t.same(dataOf(await resend.suppressions.remove('gone+1@example.com')), { object: 'suppression', id, deleted: true })
  t.match((await resend.suppressions.get('gone+1@example.com')).error, { name: 'not_found' })
  t.match((await resend.suppressions.remove(id)).error, { name: 'not_found', statusCode: 404 })
  t.match((await resend.suppressions.add({ email: 'nobody' })).error, { message: /`email`/ })
})

t.test('resend: domains, with an account key', async (t) => {
  const administrator = new Resend(account.token)
  const made = dataOf(await administrator.domains.create({ name: 'mail.acme.example' }))
  t.match(made, { name: 'mail.acme.example', status: 'not_started' })
  t.same(
    made.records.map(({ record, type }) => [record, type]),
    [
      ['SPF', 'CNAME'],
      ['DKIM', 'TXT'],
    ],
  )
  t.match(dataOf(await administrator.domains.get(made.id)), { object: 'domain', id: made.id })
  t.match(dataOf(await administrator.domains.list()), { object: 'list', data: [{ id: made.id }] })
  t.same(dataOf(await administrator.domains.verify(made.id)), { object: 'domain', id: made.id })
  const region = await administrator.domains.create({ name: 'b.example', region: 'eu-west-1' })
  t.match(region.error, { message: /`region`.*Not offered/ })
  t.match(dataOf(await administrator.domains.remove(made.id)), { deleted: true })
  t.match((await administrator.domains.get(made.id)).error, { name: 'not_found' })
  t.match((await administrator.emails.send(plain)).error, { name: 'restricted_api_key', statusCode: 401 })
})

t.test('resend: received mail with its attachments', async (t) => {
  const live = new Resend(liveServer.token)
  const body = { kind: 'inbound', name: 'Mail' }
  const { json: stream } = await service.call('POST /v1/streams', { token: liveServer.token, body })
  const parts = ['Content-Type: text/plain\n\nHello', 'Content-Type: text/csv; name=a.csv\n\na,b']
  const mail = `From: Ada, Countess <ada@example.net>\nTo: desk@example.org\nSubject: Hi\n${multipart('x', parts)}`
  t.match(await deliverMail(service.config.mxPort, stream.inboundAddress, mail), /^250/)
  const received = await until(async () => {
    const [first] = dataOf(await live.emails.receiving.list()).data
    const one = first === undefined ? null : dataOf(await live.emails.receiving.get(first.id))
    return one?.text?.startsWith('Hello') ? one : null
  }, 10_000)
  t.match(received, { object: 'email', subject: 'Hi', to: ['desk@example.org'], headers: { subject: 'Hi' } })
  const listed = dataOf(await live.emails.receiving.attachments.list({ emailId: received.id }))
  t.match(listed.data, [{ id: '0', filename: 'a.csv', content_type: 'text/csv' }])
  const one = dataOf(await live.emails.receiving.attachments.get({ emailId: received.id, id: '0' }))
  const authorization = `Bearer ${liveServer.token}`
  const file = await fetch(one.download_url, { headers: { authorization, connection: 'close' } })
  t.equal((await file.text()).trim(), 'a,b')
  const none = await live.emails.receiving.attachments.get({ emailId: received.id, id: '9' })
  t.match(none.error, { name: 'not_found' })
})
