/**
 * The content store in a running service: large content is stored outside of Redis, is delivered and shown unchanged,
 * and is removed with the last recipient. A refused message leaves nothing.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { contentFolder } from '../../src/content/files.ts'
import { until } from '../support/machine/until.ts'
import { startDelivery } from '../support/service/delivery.ts'

const WAIT_MS = 20_000

let room = 256
const delivery = await startDelivery({ CONTENT_STORE: 'file' }, { room: () => room })
t.teardown(() => delivery.stop())
const { service } = delivery
await delivery.destination('ok.test')
const later = await delivery.destination('later.test', { dot: '451 4.3.0 later' })
const redis = new Redis({ path: service.redis.socketPath })
t.teardown(() => redis.disconnect())
const root = contentFolder(service.dataDir)
const token = service.firstRun.liveServer.token
const testToken = service.firstRun.testServer.token

/** Files of the store, by their names. */
function objects(): string[] {
  if (!existsSync(root)) return []
  return (readdirSync(root, { recursive: true, encoding: 'utf8' }) as string[])
    .filter((name) => statSync(join(root, name)).isFile() && !name.endsWith('.id'))
    .sort()
}

const attachment = (bytes: Buffer, name = 'a.bin') => ({
  name,
  contentType: 'application/octet-stream',
  content: bytes.toString('base64'),
})

function email(changes: object, to: string[] = ['person@ok.test']): object {
  return { from: 'shop@acme.example', to, subject: 'Large', text: 'It is attached.', ...changes }
}

const contentKeys = async (): Promise<string[]> =>
  (await redis.keys('*content*')).filter((key) => /:content:/.test(key))

t.test('content: attachments of a scheduled message stay for its new time, and go when it is cancelled', async (t) => {
  room = 0
  const dayMs = 86_400_000
  const body = email({
    attachments: [attachment(Buffer.from('confidential '.repeat(20_000)))],
    sendAt: new Date(Date.now() + 3_600_000).toISOString(),
  })
  const { json } = await service.call('POST /v1/email', { token, body })
  room = 256
  const [only = ''] = objects()
  const lastRead = new Date(Date.now() + 8 * dayMs).toISOString().slice(0, 10).replaceAll('-', '')
  t.ok((only.split('/')[2] ?? '') > lastRead, only)
  const sendAt = new Date(Date.now() + 1_000).toISOString()
  t.equal((await service.call(`PATCH /v1/messages/${json.messageId}`, { token, body: { sendAt } })).status, 200)
  const read = () => service.call(`GET /v1/messages/${json.messageId}`, { token })
  await until(async () => (await read()).json.status === 'delivered', WAIT_MS)
  await until(() => objects().length === 0, WAIT_MS)
  const other = await service.call('POST /v1/email', { token, body })
  t.equal(objects().length, 1)
  t.equal((await service.call(`POST /v1/messages/${other.json.messageId}/cancel`, { token })).status, 200)
  await until(() => objects().length === 0, WAIT_MS)
})

t.test('content: attachments are in a file, encrypted, until the last recipient has ended', async (t) => {
  room = 0
  const bytes = Buffer.from('confidential '.repeat(20_000))
  const sent = await service.call('POST /v1/email', {
    token,
    body: email({ attachments: [attachment(bytes), attachment(randomBytes(100), 'b.bin')] }, [
      'person@ok.test',
      'person@later.test',
    ]),
  })
  t.equal(sent.status, 200)
  const [only = '', ...others] = objects()
  t.same(others, [])
  t.match(only, /^\d{3}\/out\/\d{8}\/[0-9a-z]{18}-0\.files$/)
  const file = join(root, only)
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.notOk(readFileSync(file).includes('confidential'))
  t.same(await contentKeys(), [], 'and nothing of it in Redis')
  const shown = await service.call(`GET /v1/messages/${sent.json.messageId}`, { token })
  t.equal(shown.json.text, 'It is attached.', 'a small body is where small bodies are')
  room = 256
  await until(
    async () =>
      statusesOf(await service.call(`GET /v1/messages/${sent.json.messageId}`, { token })).every(
        (s) => s === 'delivered' || s === 'deferred',
      ),
    WAIT_MS,
  )
  t.ok(existsSync(file), 'a recipient waits: they stay')
  const { messageId } = sent.json
  t.same(await fileOf(messageId, 0), bytes, 'and can be read')
  later.script({})
  later.sever()
  await until(async () => {
    await delivery.operate('POST /queue/retry', { domain: 'later.test' })
    return statusesOf(await service.call(`GET /v1/messages/${messageId}`, { token })).every((s) => s === 'delivered')
  }, WAIT_MS)
  t.equal(await fileOf(messageId, 0), 'content_expired', 'at once')
  await until(() => !existsSync(file), WAIT_MS)
  t.same(objects(), [])
})

t.test('content: on a test server attachments stay as long as the text [retention.attachments]', async (t) => {
  const bytes = randomBytes(100_000)
  const body = { ...email({ attachments: [attachment(bytes)] }), from: 'you@simulator.test' }
  const scheduled = { ...body, sendAt: new Date(Date.now() + 3_600_000).toISOString() }
  const sent = await service.call('POST /v1/email', { token: testToken, body })
  const cancelled = await service.call('POST /v1/email', { token: testToken, body: scheduled })
  await service.call(`POST /v1/messages/${cancelled.json.messageId}/cancel`, { token: testToken })
  const { messageId } = sent.json
  const read = () => service.call(`GET /v1/messages/${messageId}`, { token: testToken })
  await until(async () => (await read()).json.status === 'delivered', WAIT_MS)
  for (const id of [messageId, cancelled.json.messageId]) t.same(await fileOf(id, 0, testToken), bytes)
  const stay = new Date(Date.now() + 7 * 86_400_000).toISOString().slice(0, 10).replaceAll('-', '')
  t.equal(objects().length, 2)
  for (const name of objects()) {
    t.ok((name.split('/')[2] ?? '') >= stay, name)
    rmSync(join(root, name))
  }
  t.equal(await fileOf(messageId, 0, testToken), 'content_expired')
  await service.call('POST /v1/email', { token: testToken, body: { ...body, to: ['erased@simulator.test'] } })
  t.equal(objects().length, 1)
  const { token: accountKey } = service.firstRun.account
  await service.call('POST /v1/erasures', { token: accountKey, body: { address: 'erased@simulator.test' } })
  await until(() => objects().length === 0, WAIT_MS)
})

/** An attachment, or the reason why there is none. */
async function fileOf(messageId: string, position: number, key = token): Promise<Buffer | string> {
  const url = `http://127.0.0.1:${service.config.httpPort}/v1/messages/${messageId}/attachments/${position}`
  const response = await fetch(url, { headers: { authorization: `Bearer ${key}` } })
  if (response.ok) return Buffer.from(await response.arrayBuffer())
  return ((await response.json()) as { error: string }).error
}

function statusesOf({ json }: { json: { recipients: { status: string }[] } }): string[] {
  return json.recipients.map(({ status }) => status)
}

t.test('content: a large body is in a file too, and is shown unchanged', async (t) => {
  const text = randomBytes(200_000).toString('base64')
  const sent = await service.call('POST /v1/email', {
    token,
    body: email({ text, attachments: [attachment(randomBytes(70_000))] }),
  })
  t.equal(sent.status, 200)
  const shown = await service.call(`GET /v1/messages/${sent.json.messageId}`, { token })
  t.equal(shown.json.text, text)
  await until(() => objects().every((name) => name.endsWith('.body')), WAIT_MS)
  t.equal(objects().length, 1, 'the body stays for its days')
  t.same(await contentKeys(), [])
  const head = await redis.keys('*:head:*')
  t.ok(head.length > 0)
  const [file = ''] = objects()
  const changed = readFileSync(join(root, file))
  changed[1000] = (changed[1000] ?? 0) ^ 1
  writeFileSync(join(root, file), changed)
  const broken = await service.call(`GET /v1/messages/${sent.json.messageId}`, { token })
  t.match(broken, { status: 503, json: { error: 'data_damaged' } }, 'what is not what was written is not shown')
  rmSync(join(root, file))
})

t.test('content: a refused message leaves nothing, and a replay keeps one copy', async (t) => {
  const bytes = randomBytes(100_000)
  const refused = await service.call('POST /v1/email', {
    token,
    body: email({ streamId: '01900000-0000-7000-8000-000000000000', attachments: [attachment(bytes)] }),
  })
  t.equal(refused.status, 422)
  await until(() => objects().length === 0, WAIT_MS)
  room = 0
  const body = email({ attachments: [attachment(bytes)] })
  const headers = { 'Idempotency-Key': 'once' }
  const first = await service.call('POST /v1/email', { token, body, headers })
  const again = await service.call('POST /v1/email', { token, body, headers })
  t.equal(again.headers.get('idempotent-replayed'), 'true')
  t.equal(again.json.messageId, first.json.messageId)
  t.equal(objects().length, 1)
  room = 256
  await until(() => objects().length === 0, WAIT_MS)
})

t.test('content: a restart removes the unfinished work of a dead process', async (t) => {
  const left = join(root, 'tmp', '000000000000000000-7')
  writeFileSync(left, 'half')
  await service.restart()
  await until(() => !existsSync(left), WAIT_MS)
  t.pass('it is gone')
})

t.test('content: doctor looks at it, and metrics count it', async (t) => {
  const health = await service.operate('GET /v1/operator/health', { token: service.firstRun.operatorToken })
  const found = health.json.findings?.find(({ name }: { name: string }) => name === 'content')
  t.match(found, { status: /ok|warning/, message: /is in files/ })
  const metrics = await service.operate('GET /metrics')
  t.match(metrics.text, /sendwright_content_acts_total\{home="file",act="put",result="ok"\} \d/)
  t.match(metrics.text, /sendwright_content_seconds_total\{home="file",act="put"\} \d/)
})
