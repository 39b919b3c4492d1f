/**
 * api-proxy - every route of the dashboard with every role, and with the ids of another account; the shown parts of
 * mail.
 *
 * The cases are generated from the tables of routes, so a new route is included.
 */
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import t from 'tap'
import { MIRRORED_ROUTES } from '../../schemas/dashboard/mirror.ts'
import { DASHBOARD_ROUTES } from '../../schemas/dashboard/routes.ts'
import { makeExample } from '../../schemas/document/example.ts'
import type { Level, Route } from '../../schemas/route.ts'
import { Browser } from '../support/clients/browser.ts'
import { until } from '../support/machine/until.ts'
import { startMx } from '../support/peers/mx.ts'
import { startTestService } from '../support/service/service.ts'

const PASSWORD = 'correct horse battery'
const MAIL_MS_MAX = 30_000
const LEVELS: readonly Level[] = ['r', 'w', 'a']
const mx = await startMx()
const service = await startTestService({ RELAY_URL: `smtp://127.0.0.1:${mx.port}` })
t.teardown(async () => {
  await service.stop()
  await mx.close()
})
const origin = `http://127.0.0.1:${service.config.httpPort}`
const { liveServer, testServer, operatorToken } = service.firstRun

async function come(token: string, body: object): Promise<Browser> {
  const browser = new Browser(origin, `2001:db8:${++clients}::1`)
  const came = await browser.call('POST /links/consume', { token, password: PASSWORD, ...body })
  if (came.status !== 200) throw new Error(came.text)
  return browser
}
let clients = 0

async function member(role: string, readOnly: boolean): Promise<Browser> {
  const address = `${role}.${readOnly ? 'reads' : 'writes'}@a.example`
  await ada.call('POST /invitations', { address, role, readOnly })
  const mail = await until(
    () => mx.sessions.flatMap(({ messages }) => messages).find((one) => one.includes(`To: ${address}`)),
    MAIL_MS_MAX,
  )
  return come(/link#([\w.-]+)/.exec(mail.replaceAll('=\r\n', ''))?.[1] ?? '', { name: role })
}

const ada = await come(Browser.tokenOf(service.firstRun.dashboardUrl), { address: 'ada@a.example', name: 'Ada' })
const roles: Readonly<Record<Level, Browser>> = {
  a: ada,
  w: await member('member', false),
  r: await member('member', true),
}

/** A call of a route, with ids that name nothing but the server. */
function callOf(
  { method, path, body, query }: Route,
  serverId: string,
): { readonly what: string; readonly body?: unknown } {
  const below = path.startsWith('/dashboard/api/')
    ? path.slice('/dashboard/api'.length)
    : `/..${path.slice('/dashboard'.length)}`
  const own = below.replace('{serverId}', serverId)
  const text = own.replaceAll(/\{(\w+)\}/g, (_, name) => (name === 'position' ? '0' : randomUUID()))
  const needed = ((query ?? {}) as { required?: readonly string[] }).required ?? []
  const asked =
    needed.length === 0 ? '' : `?${new URLSearchParams(makeExample(query as object) as Record<string, string>)}`
  return { what: `${method} ${text}${asked}`, ...(body !== null && { body: makeExample(body, { isBody: true }) }) }
}

/** Requests that would end the session or the basis of the other tests. */
const HEAVY = [
  'signOut',
  'switchAccount',
  'changePassword',
  'confirmSession',
  'createAccountKey',
  'patchSettings',
  'patchMe',
]
/** Writes by their method alone. */
const CHANGES_NOTHING = ['find', 'beginTotp', 'beginPasskeyOfMe', 'beginConfirmation']
const own = Object.values<Route>(DASHBOARD_ROUTES).filter(({ session }) => session?.level !== null)
const all = [...own, ...MIRRORED_ROUTES.map(({ route }) => route)]

t.test('api-proxy: every route with every role, and with none [member.mirror] [member.role]', async (t) => {
  t.ok(all.length > 60)
  const stranger = new Browser(origin)
  const came = new Set<string>()
  for (const route of all) {
    const { what, body } = callOf(route, randomUUID())
    const least = LEVELS.indexOf(route.session?.level ?? 'a')
    t.match((await stranger.call(what, body)).json, { error: 'unauthorized' }, what)
    for (const [at, level] of LEVELS.entries()) {
      if (at >= least && (HEAVY.includes(route.name) || route.success.media === 'text/event-stream')) continue
      const { status, json, text } = await roles[level].call(what, body)
      if (at < least) t.match([status, json.error], [403, 'role_not_allowed'], `${what} as ${level}`)
      else t.notMatch(text, /role_not_allowed|unauthorized|internal_error|confirmation_required/, `${what} as ${level}`)
      const isWrite = route.method !== 'GET' && !CHANGES_NOTHING.includes(route.name)
      if (isWrite && (least > 0 || own.includes(route)) && status < 300) came.add(route.name)
    }
  }
  t.ok(came.has('createErasure') && came.size >= 3, [...came].join())
  const second = new Browser(origin, '2001:db8:ffff::1')
  const { json } = await second.call('POST /session', { address: 'ada@a.example', password: PASSWORD })
  for (const [name, what, body] of [
    ['patchMe', 'PATCH /me', { name: 'Ada' }],
    ['deleteSession', `DELETE /me/sessions/${json.sessionId}`, undefined],
    ['changePassword', 'POST /me/password', { current: PASSWORD, password: PASSWORD }],
  ] as const) {
    t.ok((await ada.call(what, body)).status < 300, what)
    came.add(name)
  }
  const acts = new Set((await ada.call('GET /audit?limit=100')).json.acts.map(({ act }: { act: string }) => act))
  t.same(
    [...came].filter((name) => !acts.has(name)),
    [],
    'what came true of writes is in the log [member.audit]',
  )
})

t.test('api-proxy: another account’s ids are not there, on any route [member.mirror]', async (t) => {
  const other = { headers: {}, token: operatorToken }
  const made = await service.operate('POST /v1/operator/accounts', {
    ...other,
    body: { name: 'Other', administrators: [] },
  })
  const { accountId } = made.json
  const path = `POST /v1/operator/accounts/${accountId}/servers`
  const theirs = await service.operate(path, { ...other, body: { name: 'Theirs', mode: 'live' } })
  const { serverId } = theirs.json
  t.ok(serverId)
  for (const route of all.filter(
    (one) => one.path.includes('{serverId}') && one.success.media !== 'text/event-stream',
  )) {
    const { what, body } = callOf(route, serverId)
    const { status, json } = await ada.call(what, body)
    t.match([status, json?.error], [404, 'not_found'], what)
  }
})

t.test('api-proxy: reads of live servers show no contents of mail [member.content]', async (t) => {
  const of = (server: { serverId: string }, rest: string) => `GET /servers/${server.serverId}${rest}`
  const send = async (token: string) => {
    const body = { from: 'you@simulator.test', to: ['delivered@simulator.test'], subject: 'Hello', text: 'Secret' }
    return (await service.call('POST /v1/email', { token, body })).json
  }
  const { messageId } = await send(testServer.token)
  const read = () => ada.call(of(testServer, `/messages/${messageId}`))
  await until(async () => (await read()).json.status === 'delivered', MAIL_MS_MAX)
  const seen = await read()
  t.match(seen.json, { subject: 'Hello', text: 'Secret' })
  const asked = await service.call(`GET /v1/messages/${messageId}`, { token: testServer.token })
  t.same(seen.json, asked.json, 'the same as the interface answers')
  await ada.call('PATCH /account', { hideContent: true })
  t.match((await ada.call(of(testServer, `/messages/${messageId}`))).json, { subject: 'Hello', text: null, html: null })
  await ada.call('PATCH /account', { hideContent: false })
  t.equal((await ada.call(of(liveServer, `/messages/${messageId}`))).status, 404)
})

t.test('mirror: who may only read exports no list of a live server [export.role] [export.note]', async (t) => {
  for (const list of ['messages', 'bounces', 'suppressions']) {
    const of = (server: { serverId: string }) => `POST /servers/${server.serverId}/${list}/export`
    t.match(await roles.r.call(of(liveServer), {}), { status: 403, json: { error: 'role_not_allowed' } }, list)
    t.equal((await roles.r.call(of(testServer), {})).status, 200, `${list} of a test server`)
    const exported = await roles.w.call(of(liveServer), {})
    t.equal(exported.status, 200, list)
    t.match(exported.headers.get('content-type'), /^text\/csv;/)
    t.equal(exported.headers.get('x-content-type-options'), 'nosniff')
  }
  const { json: added } = await ada.call('POST /domains', { domain: 'reported.example' })
  for (const list of ['reports', 'tls-reports'])
    t.equal(
      (await roles.r.call(`POST /domains/${added.domainId}/${list}/export`, {})).status,
      200,
      `${list} name no recipient`,
    )
  t.match(await roles.w.call('POST /activity/export', {}), { status: 403, json: { error: 'role_not_allowed' } })
  const activity = await ada.call('POST /activity/export', {})
  t.match(activity.text, /exportSuppressions/)
  const audit = await ada.call('GET /audit?limit=100')
  t.equal(audit.headers.get('content-encoding'), 'gzip', 'a large answer is compressed')
  const { acts } = audit.json as {
    acts: { act: string; userName: string | null; targets: Record<string, string> }[]
  }
  const live = acts.find(({ act, targets }) => act === 'exportMessages' && targets.serverId === liveServer.serverId)
  t.match(live, { userName: 'member', targets: { rows: '0', result: 'complete' } })
  t.notOk('tokenId' in (live?.targets ?? {}), 'the member is named, not the session')
})

t.test('session: an action that outlives it needs a confirmation [session.confirm]', async (t) => {
  const redis = new Redis({ path: service.redis.socketPath })
  t.teardown(() => redis.disconnect())
  const { sessionId } = (await ada.call('GET /session')).json
  t.equal((await ada.call('POST /session/confirm', { password: 'not the right one' })).status, 401)
  const confirmed = await ada.call('POST /session/confirm', { password: PASSWORD })
  t.equal(confirmed.json.sessionId, sessionId)
  t.match(confirmed.json.confirmedUntil, /Z$/)
  for (const key of await redis.keys('*:key:*'))
    if ((await redis.hget(key, 'kind')) === 'session') await redis.hset(key, 'confirmed', '0')
  t.equal((await ada.call('GET /session')).json.confirmedUntil, null)
  for (const route of all.filter(({ session }) => session?.confirms)) {
    const { what, body } = callOf(route, testServer.serverId)
    t.match((await ada.call(what, body)).json, { error: 'confirmation_required' }, what)
  }
})
