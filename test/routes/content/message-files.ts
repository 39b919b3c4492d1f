/**
 * message-files - GET /v1/messages/{id}/raw and /attachments/{position}: the bytes that were sent, ranges, the time
 * for which they can be read, and their memory.
 */
import { Resolver } from 'node:dns/promises'
import { connect } from 'node:net'
import { Redis } from 'ioredis'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import t from 'tap'
import { Sendwright } from '../../../src/client/sendwright.ts'
import { until } from '../../support/machine/until.ts'
import { openSubmission, submitMail } from '../../support/peers/submission.ts'
import { startDelivery } from '../../support/service/delivery.ts'

const WAIT_MS = 20_000
const MB = 1024 * 1024
const delivery = await startDelivery()
t.teardown(() => delivery.stop())
const { service, zone } = delivery
const { liveServer, testServer } = service.firstRun
const base = `http://127.0.0.1:${service.config.httpPort}`
const redis = new Redis({ path: service.redis.socketPath })
t.teardown(() => redis.disconnect())

const FILES = [
  { name: 'Rechnung März.pdf', content: Buffer.from('%PDF-1.7 of March').toString('base64') },
  {
    name: 'logo.png',
    contentType: 'image/png',
    contentId: 'logo',
    content: Buffer.from([0, 1, 2, 255]).toString('base64'),
  },
]
const BODY = {
  from: { email: 'shop@acme.example', name: 'Shop' },
  subject: 'Your invoice',
  text: 'It is attached.',
  html: '<p>It is <b>attached</b>.',
}

async function get(path: string, { token = testServer.token, headers = {}, method = 'GET' } = {}) {
  const response = await fetch(`${base}/v1/messages/${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...headers },
  })
  const bytes = Buffer.from(await response.arrayBuffer())
  return { status: response.status, headers: response.headers, bytes, text: bytes.toString('latin1') }
}

const errorOf = async (path: string, token?: string) => JSON.parse((await get(path, token ? { token } : {})).text).error

async function send(body: object, token = testServer.token): Promise<string> {
  const { json, status, text } = await service.call('POST /v1/email', { token, body: { ...BODY, ...body } })
  if (status !== 200) throw new Error(text)
  await until(async () => {
    const read = await service.call(`GET /v1/messages/${json.messageId}`, { token })
    return ['delivered', 'bounced', 'deferred', 'suppressed'].includes(read.json.status)
  }, WAIT_MS)
  return json.messageId
}

t.test('raw: the bytes that a receiving server gets, while nothing has changed [message.raw]', async (t) => {
  const mx = await delivery.destination('whole.test', { dot: '451 4.3.0 later' })
  const to = [{ email: 'Ada@whole.test', name: 'Ada' }]
  const id = await send({ to, attachments: FILES, headers: { 'X-Order': '7' } }, liveServer.token)
  const raw = await get(`${id}/raw`, { token: liveServer.token })
  t.equal(raw.status, 200, raw.text)
  t.equal(raw.headers.get('content-type'), 'message/rfc822')
  t.equal(raw.headers.get('content-disposition'), `attachment; filename="${id}.eml"`)
  t.same(raw.text, mx.sessions[0]?.messages[0])
  t.same(await signersOf(raw.bytes), ['acme.example: pass'])
  const file = await get(`${id}/attachments/1`, { token: liveServer.token })
  t.same([file.bytes, file.headers.get('content-type')], [Buffer.from([0, 1, 2, 255]), 'image/png'])
  mx.script({})
  mx.sever()
  await until(async () => {
    await delivery.operate('POST /queue/retry', { domain: 'whole.test' })
    return (await delivery.message(id)).status === 'delivered'
  }, WAIT_MS)
  for (const path of ['raw', 'attachments/0'])
    t.equal(await errorOf(`${id}/${path}`, liveServer.token), 'content_expired', path)
  const plain = await send({ to }, liveServer.token)
  t.match(
    (await get(`${plain}/raw`, { token: liveServer.token })).text,
    /\r\nSubject: Your invoice\r\n/,
    'the text stays',
  )
})

t.test('raw: signed with the present key, and unsigned if the domain has none [message.raw]', async (t) => {
  const id = await send({ to: ['a@simulator.test'], from: 'you@simulator.test' })
  t.notMatch((await get(`${id}/raw`)).text, /DKIM-Signature/)
  const signed = await send({ to: ['a@simulator.test'] })
  const selectorOf = async () => /\bs=([a-z0-9]+);/.exec((await get(`${signed}/raw`)).text)?.[1]
  const before = await selectorOf()
  t.ok(before)
  const token = service.firstRun.account.token
  const { json } = await service.call('GET /v1/domains', { token })
  const [{ domainId }] = json.domains
  await service.call(`POST /v1/domains/${domainId}/rotate-dkim`, { token })
  const other = await service.call(`GET /v1/domains/${domainId}`, { token })
  const { host, value } = other.json.pendingDkim
  zone.set(host, { type: 'TXT', data: value.match(/.{1,255}/g) })
  await service.call(`POST /v1/domains/${domainId}/verify`, { token })
  t.not(await selectorOf(), before)
})

t.test('attachment: ranges, names, and positions that do not exist [message.attachment]', async (t) => {
  const id = await send({ to: ['a@simulator.test'], attachments: FILES })
  const file = await get(`${id}/attachments/0`)
  t.equal(file.text, '%PDF-1.7 of March')
  t.equal(file.headers.get('content-type'), 'application/pdf', 'as its name says')
  const disposition = `attachment; filename="Rechnung M_rz.pdf"; filename*=UTF-8''Rechnung%20M%C3%A4rz.pdf`
  t.equal(file.headers.get('content-disposition'), disposition)
  t.equal(file.headers.get('x-content-type-options'), 'nosniff')
  const part = await get(`${id}/attachments/0`, { headers: { range: 'bytes=1-3' } })
  t.same([part.status, part.text, part.headers.get('content-range')], [206, 'PDF', 'bytes 1-3/17'])
  const past = await get(`${id}/attachments/0`, { headers: { range: 'bytes=17-' } })
  t.same([past.status, past.headers.get('content-range')], [416, 'bytes */17'])
  const whole = (await get(`${id}/raw`)).bytes
  t.same((await get(`${id}/raw`, { headers: { range: 'bytes=-9' } })).bytes, whole.subarray(-9))
  const head = await get(`${id}/raw`, { method: 'HEAD' })
  t.same([head.status, Number(head.headers.get('content-length')), head.bytes.length], [200, whole.length, 0])
  for (const position of ['2', '-1', '1e0', '00000', 'x'])
    t.equal((await get(`${id}/attachments/${position}`)).status, 404)
  for (const path of ['raw', 'attachments/0']) {
    t.equal(await errorOf(`${id}/${path}`, liveServer.token), 'not_found')
    t.equal(await errorOf(`${id}/${path}`, service.firstRun.account.token), 'wrong_token_kind')
  }
  const client = new Sendwright({ key: testServer.token, url: base })
  t.same(Buffer.from(await client.messages.raw(id)), whole)
  t.equal(Buffer.from(await client.messages.attachment(id, 0)).toString(), '%PDF-1.7 of March')
})

t.test('attachment: of a message that was submitted over SMTP, small and large [message.attachment]', async (t) => {
  const dialog = await openSubmission(service.config.submissionPort, { password: testServer.token })
  for (const bytes of [300, 200_000]) {
    const content = Buffer.alloc(bytes, 'ab\n')
    const body = `--b\nContent-Type: text/plain\n\nHi\n--b\nContent-Type: text/csv; name=a.csv\nContent-Disposition: attachment; filename=a.csv\nContent-Transfer-Encoding: base64\n\n${content.toString('base64').replace(/.{76}/g, '$&\n')}\n--b--\n`
    const mail = `From: shop@acme.example\nSubject: Whole\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n${body}`
    const reply = await submitMail(dialog, ['a@simulator.test'], mail)
    const id = /[0-9a-f]{8}-[0-9a-f-]{27}/.exec(reply)?.[0] ?? reply
    t.same((await get(`${id}/attachments/0`)).bytes, content)
    const raw = await get(`${id}/raw`)
    t.ok(raw.text.endsWith(mail.replace(/\n/g, '\r\n')))
    t.match(raw.text, /^Received: by /)
  }
  dialog.end()
})

t.test('raw: on a broadcast stream it is the copy of the first recipient [message.raw]', async (t) => {
  const token = testServer.token
  const { json } = await service.call('POST /v1/streams', { token, body: { kind: 'broadcast', name: 'News' } })
  const messages = [1, 2].map((n) => ({ to: `n${n}@simulator.test`, substitutions: { n: String(n) } }))
  const { html: _, ...content } = BODY
  const body = { ...content, streamId: json.streamId, messages, text: 'Number {{n}}.', attachments: FILES }
  const made = await service.call('POST /v1/broadcasts', { token, body })
  t.equal(made.status, 202, made.text)
  const found = await until(async () => {
    const { json } = await service.call('POST /v1/messages/search', {
      token,
      body: { broadcastId: made.json.broadcastId },
    })
    const done = json.messages.every(({ status }: { status: string }) => status === 'delivered')
    return json.messages.length === 2 && done ? json.messages : null
  }, WAIT_MS)
  for (const { messageId, recipients } of found) {
    const raw = await get(`${messageId}/raw`)
    const n = recipients[0].recipient.slice(1, 2)
    t.match(raw.text, new RegExp(`Number ${n}\\.`))
    t.match(raw.text, /\r\nList-Unsubscribe: <http/)
    t.equal((await get(`${messageId}/attachments/0`)).text, '%PDF-1.7 of March')
  }
})

t.test('raw and attachments of a suppressed and of an erased message [retention.attachments]', async (t) => {
  await send({ to: ['bounce+files@simulator.test'] })
  const id = await send({ to: ['bounce+files@simulator.test'], attachments: FILES })
  t.equal((await get(`${id}/attachments/0`)).text, '%PDF-1.7 of March', 'nobody got it, and it stays on a test server')
  const token = service.firstRun.account.token
  const { json } = await service.call('POST /v1/erasures', { token, body: { address: 'bounce+files@simulator.test' } })
  await until(
    async () => (await service.call(`GET /v1/erasures/${json.erasureId}`, { token })).json.status === 'done',
    WAIT_MS,
  )
  t.equal(await errorOf(`${id}/raw`), 'content_expired')
  t.equal(await errorOf(`${id}/attachments/0`), 'not_found', 'its head has none left')
})

t.test('raw: the content ends with its days, and by itself [retention.attachments]', async (t) => {
  const id = await send({ to: ['a@simulator.test'], attachments: FILES })
  const keys = (await redis.keys('*:content:*')).filter((key) => key.includes(':a'))
  t.ok(keys.length > 0)
  for (const key of keys) t.ok((await redis.pttl(key)) <= 7 * 86_400_000, 'expires within 7 days')
  await redis.unlink(keys)
  t.equal(await errorOf(`${id}/raw`), 'content_expired')
  t.equal(await errorOf(`${id}/attachments/0`), 'content_expired')
})

t.test('raw: an account whose clients do not read holds a bounded number of bytes [message.raw]', async (t) => {
  const big = [{ name: 'big.bin', content: Buffer.alloc(7 * MB).toString('base64') }]
  const id = await send({ to: ['a@simulator.test'], attachments: big })
  const sockets = [1, 2].map(() => {
    const socket = connect(service.config.httpPort, '127.0.0.1')
    socket.write(`GET /v1/messages/${id}/raw HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${testServer.token}\r\n\r\n`)
    socket.once('data', () => socket.pause())
    return socket
  })
  await until(async () => (await get(`${id}/raw`, { method: 'HEAD' })).status === 429, WAIT_MS)
  const refused = await get(`${id}/attachments/0`)
  t.same([refused.status, refused.headers.get('retry-after')], [429, '1'])
  for (const socket of sockets) socket.destroy()
  await until(async () => (await get(`${id}/raw`, { method: 'HEAD' })).status === 200, WAIT_MS)
  t.equal((await get(`${id}/attachments/0`)).bytes.length, 7 * MB, 'and what was held is free again')
})

/** Verdicts on the signatures of a message, by a verifier that is not ours, which asks the zone. */
async function signersOf(raw: Buffer): Promise<string[]> {
  const dns = new Resolver()
  dns.setServers([zone.server])
  const resolver = (name: string, type: string) => dns.resolve(name, type) as Promise<string[] | string[][]>
  const { results } = await dkimVerify(raw, { resolver })
  return results.map((one: { signingDomain?: string; status: { result: string } }) => {
    return `${one.signingDomain}: ${one.status.result}`
  })
}
