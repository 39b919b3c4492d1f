/**
 * doors - what holds for every door: credentials, the switch, the order of refusals, limits, and that no log, metric or
 * file holds an address of a URL
 */

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { CompatibleApi } from '../../schemas/config.ts'
import { DOORS, openDoors } from '../../src/doors/doors.ts'
import { makeKey } from '../../src/http/key.ts'
import type { FirstRun } from '../../src/service/first-start.ts'
import { freePort } from '../support/machine/port.ts'
import { until } from '../support/machine/until.ts'
import { ENGINES } from '../support/service/engines.ts'
import { startHost } from '../support/service/host.ts'
import { callAt, startTestService } from '../support/service/service.ts'

const ADDRESS = 'someone.in.a.url@example.com'
const PART = 'someone.in.a.url'
const service = await startTestService()
t.teardown(() => service.stop())
const { account, testServer, operatorToken } = service.firstRun
const base = `http://127.0.0.1:${service.config.httpPort}`

interface Asked {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

async function ask(what: string, { headers = {}, body }: Asked = {}) {
  const [method = '', path = ''] = what.split(' ')
  const init = { method, headers: { connection: 'close', ...headers }, ...(body !== undefined && { body }) }
  const response = await fetch(base + path, init)
  return { status: response.status, headers: response.headers, text: await response.text() }
}

const json = { 'content-type': 'application/json' }
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const basic = (token: string) => ({ authorization: `Basic ${Buffer.from(`api:${token}`).toString('base64')}` })
const server = (token: string) => ({ 'x-postmark-server-token': token })

t.test('doors: a credential of a door opens nothing of our own', async (t) => {
  for (const path of ['/v1/server', '/dashboard/api/me', '/v1/openapi-of-nothing']) {
    for (const headers of [basic(testServer.token), server(testServer.token)]) {
      t.equal((await ask(`GET ${path}`, { headers })).status, 401, path)
    }
  }
  const operate = (headers: Asked['headers']) =>
    fetch(`http://127.0.0.1:${service.config.operatorPort}/v1/operator/accounts`, { headers: headers ?? {} })
  t.equal((await operate(basic(operatorToken))).status, 401)
  t.equal((await operate(server(operatorToken))).status, 401)
  const both = { ...bearer(testServer.token), ...server(testServer.token) }
  t.equal((await ask('GET /v1/server', { headers: both })).status, 200, 'it is not read there')
})

t.test('doors: two credentials are none', async (t) => {
  const both = { ...bearer(testServer.token), ...server(testServer.token) }
  for (const path of ['/emails', '/server', '/v3/simulator.test/nothing'])
    t.equal((await ask(`GET ${path}`, { headers: both })).status, 401, path)
  const basics = { ...basic(testServer.token), ...server(testServer.token) }
  t.equal((await ask('GET /server', { headers: basics })).status, 401)
})

t.test('doors: a path of two doors answers in the form of the credential', async (t) => {
  const resend = await ask('GET /webhooks', { headers: bearer(testServer.token) })
  t.match([resend.status, JSON.parse(resend.text)], [404, { name: 'not_found', message: /\/v1\/webhooks/ }])
  const postmark = await ask('GET /webhooks', { headers: server(testServer.token) })
  t.match([postmark.status, JSON.parse(postmark.text)], [404, { ErrorCode: 701, Message: /\/v1\/webhooks/ }])
  const template = await ask('POST /templates/validate', { headers: server(testServer.token) })
  t.match([template.status, JSON.parse(template.text)], [422, { ErrorCode: 1101 }])
  const none = await ask('GET /templates')
  t.match([none.status, JSON.parse(none.text)], [401, { name: 'missing_api_key' }])
})

t.test('doors: no page of another site reads an answer', async (t) => {
  const headers = { ...bearer(testServer.token), origin: 'https://example.com' }
  const asked = await ask('GET /emails', { headers })
  t.equal(asked.status, 200)
  t.notOk([...asked.headers.keys()].some((name) => name.startsWith('access-control')))
  t.equal((await ask('OPTIONS /emails', { headers })).status, 405)
})

t.test('doors: the edge refuses a body that is too large in the form of the door', async (t) => {
  const headers = { ...bearer(testServer.token), ...json }
  const { status, text } = await ask('POST /emails', { headers, body: ' '.repeat(10 * 1024 * 1024 + 1) })
  t.equal(status, 413)
  t.match(JSON.parse(text), { statusCode: 413, name: 'validation_error' })
})

t.test('doors: bodies that cost more than they say are refused', async (t) => {
  const headers = { ...bearer(testServer.token), ...json }
  const refused = async (what: string, body: unknown, more: Asked['headers'] = headers) => {
    const asked = await ask(what, { headers: more ?? {}, body: typeof body === 'string' ? body : JSON.stringify(body) })
    return { status: asked.status, message: JSON.parse(asked.text).message as string }
  }
  const mail = { from: 'a@simulator.test', to: ['b@simulator.test'], subject: 'Hello', text: 'Hello' }
  const blanks = `<${' '.repeat(100_000)}x`
  t.equal((await refused('POST /emails', { ...mail, from: blanks, to: blanks, reply_to: blanks })).status, 422)
  const many = Array.from({ length: 300_000 }, () => 0)
  for (const field of ['to', 'tags', 'attachments', 'reply_to'])
    t.equal((await refused('POST /emails', { ...mail, [field]: many })).status, 422, field)
  for (const what of ['POST /suppressions', 'POST /suppressions/batch/add', 'POST /suppressions/batch/remove'])
    t.match(await refused(what, JSON.stringify('a'.repeat(2_000_000))), { message: /Must be an object/ }, what)
  for (const name of ['constructor', '__proto__', 'toString']) {
    const owned = { ...bearer(account.token), ...json }
    const domain = await refused('POST /domains', `{"name":"x.example","${name}":1}`, owned)
    t.match(domain, { status: 422, message: /Unknown field/ }, name)
    t.match(await refused('POST /emails', `{"from":"a@b.example","${name}":1}`), {
      status: 422,
      message: /Unknown field/,
    })
  }
  const form = { ...basic(testServer.token), 'content-type': 'application/x-www-form-urlencoded' }
  for (const body of ['to=a&'.repeat(400_000), 'a&'.repeat(2_000_000), `to=${','.repeat(2_000_000)}`])
    t.match(await ask('POST /v3/simulator.test/messages', { headers: form, body }), { status: 400 }, body.slice(0, 8))
})

t.test('doors: a page of events that no answer has named is refused', async (t) => {
  const page = { events: ['delivered'], tags: [], severity: null, recipient: null, messageId: null, toMs: null }
  for (const more of [{ fromMs: 2 ** 53 - 1 }, { fromMs: 0, after: '-'.repeat(36) }, { fromMs: 'x' }, { limit: 301 }]) {
    const asked = { ...page, fromMs: null, isAscending: true, limit: 10, after: null, ...more }
    const token = Buffer.from(JSON.stringify(asked)).toString('base64url')
    const path = `GET /v3/simulator.test/events/${token}`
    t.match(await ask(path, { headers: basic(testServer.token) }), { status: 400 }, JSON.stringify(more))
  }
})

t.test('doors: the order of refusals is that of our own routes', async (t) => {
  const broken = { 'content-type': 'text/plain', 'idempotency-key': '' }
  const other = { ...broken, 'content-type': 'application/json' }
  const valid = { ...json, ...bearer(testServer.token) }
  const steps: readonly [Asked, number, string][] = [
    [{ headers: broken, body: '{' }, 401, 'missing_api_key'],
    [{ headers: { ...broken, ...bearer(makeKey('sk', 0).token) }, body: '{' }, 401, 'invalid_api_key'],
    [{ headers: { ...broken, ...bearer(account.token) }, body: '{' }, 401, 'restricted_api_key'],
    [{ headers: { ...broken, ...bearer(testServer.token) }, body: '{' }, 415, 'validation_error'],
    [{ headers: { ...other, ...bearer(testServer.token) }, body: '{' }, 400, 'invalid_idempotency_key'],
    [{ headers: valid, body: '{' }, 400, 'validation_error'],
    [{ headers: valid, body: '{}' }, 422, 'missing_required_field'],
  ]
  for (const [asked, statusCode, name] of steps) {
    const { status, text } = await ask('POST /emails', asked)
    t.match(JSON.parse(text), { statusCode, name })
    t.equal(status, statusCode)
  }
  const unknown = await ask('GET /emails/x/y/z', { headers: bearer(testServer.token) })
  t.match([unknown.status, JSON.parse(unknown.text)], [404, { name: 'not_found' }])
  const method = await ask('PUT /emails', { headers: bearer(testServer.token) })
  t.match([method.status, JSON.parse(method.text)], [405, { name: 'method_not_allowed' }])
})

t.test('doors: with none of them every path is unknown before a key is read', async (t) => {
  const shut = await startTestService({ COMPATIBLE_APIS: 'none' })
  t.teardown(() => shut.stop())
  const paths = DOORS.flatMap(({ rows }) => rows.map(({ route }) => `${route.method} ${route.path}`))
  t.ok(paths.length > 20)
  for (const what of paths) {
    const path = what.replace(/\{\w+\}/g, 'x')
    for (const token of [undefined, shut.firstRun.testServer.token]) {
      const called = await shut.call(path, token === undefined ? {} : { token })
      t.match([called.status, called.json?.error], [404, 'not_found'], what)
    }
  }
  t.equal((await shut.call('GET /nothing')).status, 401, 'any other path asks for a key first')
})

t.test('doors: each one can be switched off alone', async (t) => {
  const deps = { handlers: {} as never, baseUrl: '', nowMs: () => 0 }
  for (const { name } of DOORS) {
    const others = DOORS.map((door) => door.name).filter((one): one is CompatibleApi => one !== name)
    const { routes, closed } = openDoors(others, deps)
    const open = new Set(routes.map(({ route }) => route.path))
    t.notOk(
      closed.some((path) => open.has(path)),
      `${name}: no path is both`,
    )
    t.ok(closed.length > 0)
  }
})

for (const engine of ENGINES) {
  t.test(`doors: an address of a URL is kept nowhere, ${engine.name}`, async (t) => {
    const dataDir = mkdtempSync(join(tmpdir(), 'sendwright-doors-'))
    const [httpPort, operatorPort] = [await freePort(), await freePort()]
    const ports = { HTTP_PORT: String(httpPort), OPERATOR_PORT: String(operatorPort), MX_PORT: '0' }
    const off = { SUBMISSION_PORT: '0', SUBMISSION_TLS_PORT: '0', EDGE_RATE: '0' }
    const settings = { DATA_DIR: dataDir, LOG_LEVEL: 'trace', HTTP_ENGINE: engine.name, ...ports, ...off }
    const host = await startHost(settings, { keptChars: 10_000_000 })
    t.teardown(async () => {
      await host.kill('SIGTERM')
      rmSync(dataDir, { recursive: true, force: true })
    })
    const firstRun = await until(() => readFirstRun(dataDir), 10_000)
    const { token } = firstRun.testServer
    const name = encodeURIComponent(ADDRESS)
    const paths: readonly [string, Record<string, string>][] = [
      [`/suppressions/${name}`, bearer(token)],
      [`/emails?after=${name}`, bearer(token)],
      [`/emails/${name}`, bearer(token)],
      [`/emails/x/y/${name}`, bearer(token)],
      [`/bounces?emailFilter=${name}`, server(token)],
      [`/messages/outbound?recipient=${name}`, server(token)],
      [`/message-streams/${name}/suppressions/dump?emailaddress=${name}`, server(token)],
      [`/v3/simulator.test/bounces/${name}`, basic(token)],
    ]
    for (const [path, key] of paths) {
      for (const method of ['GET', 'DELETE'])
        await fetch(`http://127.0.0.1:${httpPort}${path}`, { method, headers: { connection: 'close', ...key } })
    }
    await until(async () => {
      // Without the searches of this wait, which would fill the page.
      const asked = { token, body: { status: 404 } }
      const { json } = await callAt(`http://127.0.0.1:${httpPort}`, 'POST /v1/requests/search', asked)
      return json.requests.some(({ path }: { path: string }) => path === '/suppressions/{id}')
    }, 10_000)
    const metrics = await fetch(`http://127.0.0.1:${operatorPort}/metrics`)
    const text = await metrics.text()
    t.match(text, 'route="/suppressions/{id}"')
    const { said } = host
    const places = { metrics: text, log: said() }
    for (const [place, held] of Object.entries(places)) t.notMatch(held, PART, place)
    t.ok(said().length > 1_000, 'it logs')
    const files = filesIn(dataDir)
    t.ok(
      files.some((file) => readFileSync(file).includes('/suppressions/{id}')),
      'requests are kept',
    )
    t.same(
      files.filter((file) => readFileSync(file).includes(PART)),
      [],
    )
  })
}

function readFirstRun(dataDir: string): FirstRun | null {
  try {
    return JSON.parse(readFileSync(join(dataDir, 'first-run.json'), 'utf8')) as FirstRun
  } catch {
    return null
  }
}

function filesIn(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name)
    const kind = statSync(path)
    if (kind.isDirectory()) return filesIn(path)
    return kind.isFile() ? [path] : []
  })
}
