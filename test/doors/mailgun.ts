/**
 * mailgun - the official client of Mailgun against a running service, whose URL and key are all that changes
 */

import { createRequire } from 'node:module'
import { Readable } from 'node:stream'
import t, { type Test } from 'tap'
import { makeKey } from '../../src/http/key.ts'
import { until } from '../support/machine/until.ts'
import { startTestService } from '../support/service/service.ts'

const service = await startTestService()
t.teardown(() => service.stop())
const { account, testServer, liveServer } = service.firstRun
const { token, streamId } = testServer
const url = `http://127.0.0.1:${service.config.httpPort}`
const DOMAIN = 'simulator.test'

interface Client {
  readonly messages: { create(domain: string, data: object): Promise<{ id: string; message: string; status: number }> }
  readonly suppressions: { destroy(domain: string, type: string, address: string): Promise<{ message: string }> }
}
interface Library {
  new (form: typeof FormData): { client(options: object): Client }
}
const library = createRequire(import.meta.url)('mailgun.js') as Library & { default?: Library }
const Mailgun = library.default ?? library
const clientOf = (key: string) => new Mailgun(FormData).client({ username: 'api', key, url })
const mailgun = clientOf(token)
const plain = { from: 'Acme, Inc <shop@simulator.test>', to: 'delivered@simulator.test', subject: 'Hi', text: 'Hi' }

/** A call fails with an error of the client that holds what is expected. */
async function rejects(t: Test, call: Promise<unknown>, expected: object): Promise<void> {
  const outcome = await call.then(
    () => null,
    (error: unknown) => error,
  )
  t.match(outcome, expected)
}

async function readMessage(id: string) {
  const [, messageId] = /^<([0-9a-f-]{36})@simulator\.test>$/.exec(id) ?? []
  return (await service.call(`GET /v1/messages/${messageId}`, { token })).json
}

t.test('mailgun: U+0000 is refused, also in a part in base64', async (t) => {
  const authorization = `Basic ${Buffer.from(`api:${token}`).toString('base64')}`
  const post = (type: string, body: string) =>
    fetch(`${url}/v3/${DOMAIN}/messages`, { method: 'POST', headers: { authorization, 'content-type': type }, body })
  const partOf = (name: string, value: string, more = '') =>
    `--x\r\nContent-Disposition: form-data; name="${name}"\r\n${more}\r\n${value}\r\n`
  const { text: _, ...rest } = plain
  const parts = Object.entries(rest).map(([name, value]) => partOf(name, value))
  for (const [base64, status] of [
    ['YQBi', 400],
    ['YWI=', 200],
  ] as const) {
    const text = partOf('text', base64, 'Content-Transfer-Encoding: base64\r\n')
    const answer = await post('multipart/form-data; boundary=x', `${parts.join('')}${text}--x--\r\n`)
    t.equal(answer.status, status, base64)
  }
  for (const [text, status] of [
    ['a%00b', 400],
    ['ab', 200],
  ] as const) {
    const answer = await post('application/x-www-form-urlencoded', `${new URLSearchParams(rest)}&text=${text}`)
    t.equal(answer.status, status, text)
  }
})

t.test('mailgun: files of a list are numbered by the clients of PHP', async (t) => {
  const form = new FormData()
  for (const [name, value] of Object.entries(plain)) form.append(name, value)
  form.append('attachment[0]', new File(['a'], 'a.txt'))
  form.append('attachment[1]', new File(['b'], 'b.txt'))
  form.append('inline[0]', new File(['c'], 'c.png'))
  const authorization = `Basic ${Buffer.from(`api:${token}`).toString('base64')}`
  const post = (body: FormData) =>
    fetch(`${url}/v3/${DOMAIN}/messages`, { method: 'POST', headers: { authorization }, body })
  const sent = await post(form)
  t.equal(sent.status, 200)
  const attachments = [{ name: 'a.txt' }, { name: 'b.txt' }, { name: 'c.png', contentId: 'c.png' }]
  t.match(await readMessage(((await sent.json()) as { id: string }).id), { attachments })
  for (const name of ['attachment[]x', 'attachment[a]', 'attachments[0]']) {
    const other = new FormData()
    for (const [field, value] of Object.entries(plain)) other.append(field, value)
    other.append(name, new File(['a'], 'a.txt'))
    t.equal((await post(other)).status, 400, name)
  }
})

t.test('mailgun: a message is sent', async (t) => {
  const bytes = Buffer.from('%PDF-1.4 ünïcode')
  const sent = await mailgun.messages.create(DOMAIN, {
    ...plain,
    to: ['"Doe, Jo" <delivered@simulator.test>', 'delivered+b@simulator.test, delivered+c@simulator.test'],
    cc: 'Łukasz <delivered+d@simulator.test>',
    html: '<img src="cid:logo.png">',
    'h:Reply-To': 'help@example.com',
    'h:X-Campaign': '7',
    'v:order': '42',
    'o:tag': ['news', 'autumn'],
    'o:tracking': 'yes',
    'o:tracking-opens': 'yes',
    'o:testmode': 'yes',
    attachment: [{ data: bytes, filename: 'rechnung-ü.pdf' }],
    inline: [{ data: bytes, filename: 'logo.png' }],
  })
  t.match(sent, { status: 200, message: 'Queued. Thank you.' })
  t.match(await readMessage(sent.id), {
    messageIdHeader: sent.id,
    from: { email: 'shop@simulator.test', name: 'Acme, Inc' },
    tag: 'news',
    metadata: { order: '42', 'mailgun-tags': 'news,autumn' },
    headers: { 'Reply-To': 'help@example.com', 'X-Campaign': '7' },
    recipients: [{ name: 'Doe, Jo' }, {}, {}, { name: 'Łukasz', kind: 'cc' }],
    attachments: [
      { name: 'rechnung-ü.pdf', size: bytes.length },
      { name: 'logo.png', contentId: 'logo.png' },
    ],
  })
})

t.test('mailgun: a form of a URL, at a time, once for one key', async (t) => {
  const authorization = `Basic ${Buffer.from(`api:${token}`).toString('base64')}`
  const time = new Date(Date.now() + 3_600_000).toUTCString()
  const ask = async (fields: Record<string, string>, key?: string) => {
    const headers = { authorization, connection: 'close', ...(key !== undefined && { 'idempotency-key': key }) }
    const body = new URLSearchParams(fields)
    const response = await fetch(`${url}/v3/${DOMAIN}/messages`, { method: 'POST', headers, body })
    return { status: response.status, json: (await response.json()) as { id?: string; message: string } }
  }
  const first = await ask({ ...plain, 'o:deliverytime': time }, 'once')
  t.equal(first.status, 200)
  t.same(await ask({ ...plain, 'o:deliverytime': time }, 'once'), first)
  t.match(await ask({ ...plain, subject: 'Other' }, 'once'), { status: 400 })
  t.match(await readMessage(first.json.id ?? ''), { sendAt: new Date(time).toISOString() })
  t.match(await ask({ ...plain, 'o:deliverytime': 'soon' }), { status: 400, json: { message: /^o:deliverytime/ } })
})

t.test('mailgun: one Idempotency-Key is one message, 64 times at once, each with its own boundary', async (t) => {
  const authorization = `Basic ${Buffer.from(`api:${token}`).toString('base64')}`
  const ids = await Promise.all(
    Array.from({ length: 64 }, async () => {
      const body = new FormData()
      for (const [name, value] of Object.entries({ ...plain, subject: 'Once' })) body.append(name, value)
      const headers = { authorization, connection: 'close', 'idempotency-key': 'many' }
      // While the first one is decided, others may be asked to come again.
      const answer = await until(async () => {
        const response = await fetch(`${url}/v3/${DOMAIN}/messages`, { method: 'POST', headers, body })
        const json = (await response.json()) as { id: string }
        return response.status === 200 ? json : null
      }, 20_000)
      return answer.id
    }),
  )
  t.equal(new Set(ids).size, 1)
  const { json } = await service.call('POST /v1/messages/search', { token, body: { subject: 'Once' } })
  t.equal(json.messages.length, 1)
})

t.test('mailgun: a stream is an attachment', async (t) => {
  const pieces = ['first ', 'second ünïcode']
  const data = Readable.from(pieces.map((piece) => Buffer.from(piece)))
  const size = Buffer.byteLength(pieces.join(''))
  const attachment = { data, filename: 'notes.txt', contentType: 'text/plain', knownLength: size }
  const sent = await mailgun.messages.create(DOMAIN, { ...plain, attachment: [attachment] })
  t.match((await readMessage(sent.id)).attachments, [{ name: 'notes.txt', size }])
})

t.test('mailgun: what is not offered is refused with the error of the client', async (t) => {
  const refused = async (data: object, expected: object, { client = mailgun, domain = DOMAIN } = {}) =>
    rejects(t, client.messages.create(domain, { ...plain, ...data }), expected)
  await refused({ 'recipient-variables': '{}' }, { status: 400, details: /need a broadcast stream/ })
  await refused({ template: 'welcome' }, { status: 400, details: /^template: Templates are not offered/ })
  await refused({ 'o:require-tls': 'yes' }, { status: 400, details: /^o:require-tls: Unknown field/ })
  await refused({ from: 'nobody' }, { status: 400, details: /^from/ })
  await refused({ to: 'nobody' }, { status: 400, details: /^to/ })
  await refused({ from: 'a@elsewhere.example' }, { status: 400, details: /elsewhere\.example is not verified/ })
  await refused({ 'v:long': 'x'.repeat(501) }, { status: 400, details: /^v:long/ })
  const many = Object.fromEntries(Array.from({ length: 21 }, (_, place) => [`v:a${place}`, '1']))
  await refused(many, { status: 400, details: /^v:/ })
  await refused({}, { status: 404 }, { domain: 'elsewhere.example' })
  await refused({}, { status: 401 }, { client: clientOf(makeKey('sk', 0).token) })
  await refused({}, { status: 403 }, { client: clientOf(account.token) })
  await refused({}, { status: 404 }, { client: clientOf(liveServer.token) })
})

t.test('mailgun: bounces are removed, complaints stay', async (t) => {
  const listed = async (recipient: string) =>
    (await service.call('POST /v1/suppressions/search', { token, body: { recipient } })).json.suppressions.length
  for (const recipient of ['bounce+mg@simulator.test', 'complaint+mg@simulator.test']) {
    await mailgun.messages.create(DOMAIN, { ...plain, to: recipient })
    await until(async () => (await listed(recipient)) === 1, 10_000)
  }
  t.match(await mailgun.suppressions.destroy(DOMAIN, 'bounces', 'bounce+mg@simulator.test'), { message: /removed/ })
  t.equal(await listed('bounce+mg@simulator.test'), 0)
  await rejects(t, mailgun.suppressions.destroy(DOMAIN, 'bounces', 'bounce+mg@simulator.test'), { status: 404 })
  for (const type of ['complaints', 'unsubscribes'])
    t.match(await mailgun.suppressions.destroy(DOMAIN, type, 'complaint+mg@simulator.test'), { message: /removed/ })
  t.equal(await listed('complaint+mg@simulator.test'), 1)
  const body = { streamId, recipients: ['kept@example.com'] }
  await service.call('POST /v1/suppressions', { token, body })
  await rejects(t, mailgun.suppressions.destroy(DOMAIN, 'bounces', 'kept@example.com'), { status: 404 })
})
