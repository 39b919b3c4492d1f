/** export - lists as CSV over HTTP, read by another parser: rows, filters, refusals, the log entry, erasure. */
import { parse } from 'csv-parse/sync'
import t, { type Test } from 'tap'
import type { MessageSummary } from '../../../schemas/message.ts'
import { until } from '../../support/machine/until.ts'
import { startTestService } from '../../support/service/service.ts'

const service = await startTestService()
t.teardown(() => service.stop())
const { testServer, liveServer, account } = service.firstRun
const token = testServer.token
const BOUNCES = 12
const DELIVERED = 30
/** Suppressions of a large export, and those that are added at once. */
const MANY = 40_000
const PER_CALL = 1_000

type Rows = Record<string, string>[]

async function exported(path: string, body: object = {}, key = token) {
  const answer = await service.call(`POST /v1/${path}/export`, { token: key, body })
  const rows = answer.status === 200 ? (parse(answer.text, { columns: true, record_delimiter: '\r\n' }) as Rows) : []
  return { ...answer, rows }
}

async function send(to: string[], more: object = {}): Promise<string> {
  const body = { from: { email: 'shop@simulator.test', name: 'Shop' }, to, subject: 'Hello', text: 'Mail', ...more }
  const sent = await service.call('POST /v1/email', { token, body })
  if (sent.status !== 200) throw new Error(sent.text)
  return sent.json.messageId
}

/** All messages of the server as its search lists them. */
async function listed(filter: object = {}): Promise<MessageSummary[]> {
  const found: MessageSummary[] = []
  for (let after: string | null = null; ; ) {
    const body: object = { ...filter, limit: 7, ...(after !== null && { after }) }
    const { json } = await service.call('POST /v1/messages/search', { token, body })
    found.push(...json.messages)
    after = json.next
    if (after === null) return found
  }
}

async function settled(): Promise<void> {
  await until(async () => ((await listed({ status: 'accepted' })).length === 0 ? true : null), 60_000)
}

interface Entry {
  act: string
  userName: string
  targets: Record<string, string>
}

/** Entries of the log, read by its export, which begins before its own entry is written. */
async function entries(): Promise<Entry[]> {
  const { rows } = await exported('activity', {}, account.token)
  return rows.map(({ act = '', userName = '', targets }) => ({ act, userName, targets: JSON.parse(targets || '{}') }))
}

/** The newest entry of an act that has its rows. */
const entryOf = (act: string) =>
  until(async () => (await entries()).find((one) => one.act === act && one.targets.rows !== undefined), 20_000)

t.test('export: nothing yet is a file with its first line, and wrong requests are refused [export.csv]', async (t) => {
  const empty = await exported('messages')
  t.equal(empty.text.split('\r\n').length, 2)
  t.match(empty.text, /^messageId,submittedAt,/)
  t.equal(empty.headers.get('content-type'), 'text/csv; charset=utf-8; header=present')
  t.match(empty.headers.get('content-disposition'), /^attachment; filename="messages-\d{4}-\d\d-\d\d\.csv"$/)
  t.equal(empty.headers.get('cache-control'), 'no-store')
  const unknown = { streamId: '01a1f8d8-8300-7000-8000-0e7faee555a7' }
  for (const path of ['messages', 'bounces', 'suppressions']) {
    t.equal((await exported(path, {}, account.token)).json.error, 'wrong_token_kind', path)
    t.equal((await exported(path, unknown)).json.error, 'stream_not_found', path)
    t.equal((await exported(path, { limit: 5 })).json.error, 'invalid_request', `${path} has no pages`)
    t.equal((await service.call(`GET /v1/${path}/export`, { token })).status, path === 'bounces' ? 405 : 404, path)
  }
  t.equal((await exported('activity')).json.error, 'wrong_token_kind')
  t.equal((await exported('bounces', { status: 'bounced' })).json.error, 'invalid_request')
})

t.test('export: a row for each recipient, the same as the search lists [export.csv]', async (t) => {
  for (let n = 0; n < DELIVERED; n += 1)
    await send([`delivered+${n}@simulator.test`, `more${n}@simulator.test`], { tag: n % 2 === 0 ? 'even' : 'odd' })
  for (let n = 0; n < BOUNCES; n += 1) await send([`hardbounce+${n}@simulator.test`], { subject: `=${n}+1` })
  await settled()
  const { rows } = await exported('messages')
  t.equal(rows.length, DELIVERED * 2 + BOUNCES)
  const shown = (await listed()).flatMap(({ recipients, ...message }) =>
    recipients.map(({ recipient, status, code, response, statusAt }) => ({
      messageId: message.messageId,
      from: message.from.email,
      fromName: message.from.name ?? '',
      subject: message.subject?.startsWith('=') ? `'${message.subject}` : message.subject,
      tag: message.tag ?? '',
      ...{ recipient, status, code: String(code ?? ''), response: response ?? '', statusAt },
    })),
  )
  t.match(rows, shown, 'in the same order')
  t.equal(rows.filter(({ subject }) => subject?.startsWith("'=")).length, BOUNCES, 'no subject is a formula')
  const even = await exported('messages', { tag: 'even' })
  t.equal(even.rows.length, DELIVERED)
  t.ok(even.rows.every(({ tag }) => tag === 'even'))
  t.equal((await exported('messages', { recipient: 'delivered+3@simulator.test' })).rows.length, 2)
  t.equal((await exported('messages', { submittedFrom: '2099-01-01T00:00:00Z' })).rows.length, 0)
})

t.test('export: bounces and suppressions, with their filters [export.csv]', async (t) => {
  const { rows } = await exported('bounces')
  t.equal(rows.length, BOUNCES)
  t.match(rows[0], { classification: 'InvalidRecipient', hard: 'true', expired: 'false', code: '550' })
  t.ok(rows.every(({ recipient }) => /^hardbounce\+\d+@simulator\.test$/.test(recipient ?? '')))
  t.equal((await exported('bounces', { recipient: 'hardbounce+1@simulator.test' })).rows.length, 1)
  t.equal((await exported('bounces', { tag: 'even' })).rows.length, 0)
  const { json } = await service.call('POST /v1/suppressions/search', { token, body: { limit: 1_000 } })
  const suppressed = await exported('suppressions')
  t.equal(suppressed.rows.length, BOUNCES)
  const ids = json.suppressions.map(({ suppressionId }: { suppressionId: string }) => suppressionId)
  t.same(
    suppressed.rows.map(({ suppressionId }) => suppressionId),
    ids,
  )
  t.equal((await exported('suppressions', { reason: 'manual' })).rows.length, 0)
  t.equal((await exported('suppressions', {}, liveServer.token)).rows.length, 0, 'of no other server')
})

t.test('export: the log names the key, the filters and the rows, and no address [export.note]', async (t) => {
  const filters = { status: 'bounced', recipient: 'hardbounce+2@simulator.test', tag: 'even', subject: 'secret' }
  await exported('messages', filters)
  await exported('suppressions')
  const noted = await entryOf('exportSuppressions')
  t.match(noted, {
    userName: '',
    targets: { serverId: testServer.serverId, rows: String(BOUNCES), result: 'complete' },
  })
  t.notOk('filters' in noted.targets)
  const named = await entryOf('exportMessages')
  t.same(named.targets.filters?.split(' ').sort(), ['recipient', 'status=bounced', 'subject', 'tag'])
  t.match(named.targets.tokenId, /^[0-9a-f-]{36}$/)
  const [newest] = await entries()
  t.match(newest, { act: 'exportActivity' }, 'the one before this, which is not there yet')
  const all = await exported('activity', {}, account.token)
  t.notMatch(all.text, /@|secret|even/)
  const recent = { from: new Date(Date.now() - 60_000).toISOString() }
  t.ok((await exported('activity', recent, account.token)).rows.length > 1)
  t.equal((await exported('activity', { to: '2020-01-01T00:00:00Z' }, account.token)).rows.length, 0)
})

/** Starts an export and reads its first line alone. */
async function half(t: Test, path: string, key: string) {
  const { httpPort } = service.config
  const cut = new AbortController()
  t.teardown(() => cut.abort())
  const response = await fetch(`http://127.0.0.1:${httpPort}/v1/${path}/export`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: '{}',
    signal: cut.signal,
  })
  return { response, cut }
}

t.test('export: an erased person is a pseudonym [export.csv]', async (t) => {
  const address = 'hardbounce+5@simulator.test'
  const ordered = await service.call('POST /v1/erasures', { token: account.token, body: { address } })
  await until(async () => {
    const { json } = await service.call(`GET /v1/erasures/${ordered.json.erasureId}`, { token: account.token })
    return json.status === 'done' ? true : null
  }, 60_000)
  for (const path of ['messages', 'bounces', 'suppressions']) {
    const { rows, text } = await exported(path)
    t.notMatch(text, address, path)
    t.equal(rows.filter(({ recipient }) => recipient?.endsWith('@erased.invalid')).length, 1, path)
  }
})

t.test('export: the third one of an account waits for its turn [export.bounds]', async (t) => {
  const stream = await service.call('GET /v1/streams', { token })
  const { streamId } = stream.json.streams.find(({ kind }: { kind: string }) => kind === 'transactional')
  // As many rows as the buffers of the system do not take.
  for (let n = 0; n < MANY; n += PER_CALL) {
    const recipients = Array.from(
      { length: PER_CALL },
      (_, place) => `${'x'.repeat(50)}${n + place}@${'d'.repeat(60)}.example`,
    )
    const added = await service.call('POST /v1/suppressions', { token, body: { streamId, recipients } })
    if (added.status !== 200) throw new Error(added.text)
  }
  const one = await half(t, 'suppressions', token)
  const two = await half(t, 'suppressions', token)
  t.same([one.response.status, two.response.status], [200, 200])
  t.match(await exported('messages'), { status: 409, json: { error: 'export_limit', max: 2 } })
  t.match(await exported('activity', {}, account.token), { status: 409, json: { error: 'export_limit' } })
  t.equal((await service.call('POST /v1/messages/search', { token, body: {} })).status, 200, 'searches are free')
  one.cut.abort()
  await until(async () => ((await exported('messages')).status === 200 ? true : null), 20_000)
  const broken = await until(
    async () =>
      (await entries()).find(({ act, targets }) => act === 'exportSuppressions' && targets.result === 'broken'),
    20_000,
  )
  t.ok(Number(broken.targets.rows) < MANY)
  const rest = parse(await two.response.text(), { columns: true, record_delimiter: '\r\n' }) as Rows
  t.equal(rest.length, MANY + BOUNCES)
})

t.test('export: a revoked key ends it [export.csv]', async (t) => {
  const made = await service.call('POST /v1/tokens', { token, body: { name: 'Export' } })
  const { response } = await half(t, 'suppressions', made.json.token)
  t.equal(response.status, 200)
  t.equal((await service.call(`POST /v1/tokens/${made.json.tokenId}/revoke`, { token })).status, 200)
  await t.rejects(response.text(), 'no end of the file')
})
