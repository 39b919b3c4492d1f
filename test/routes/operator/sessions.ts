/** sessions - the operator's view: a session in place of the key, links that open one, and the end of both. */
import { createHash } from 'node:crypto'
import { Redis } from 'ioredis'
import t from 'tap'
import { makeOpenapi } from '../../../schemas/document/openapi.ts'
import { DESK_LINK_MINUTES, OPERATOR_SESSION_HOURS } from '../../../schemas/limits.ts'
import { OPERATOR_ROUTES } from '../../../schemas/operator/routes.ts'
import type { Route } from '../../../schemas/routes.ts'
import { type DocumentSchema, makeGenerator, withRules } from '../../support/clients/generate.ts'
import { startTestService } from '../../support/service/service.ts'

const service = await startTestService()
const { operatorToken: key, testServer, account } = service.firstRun
const ASKED = Object.values<Route>(OPERATOR_ROUTES).filter(({ keys, method }) => keys.length > 0 && method === 'POST')
const DOCUMENT: DocumentSchema = makeOpenapi(ASKED, '', 'operator')
const generate = makeGenerator(3, (ref) => DOCUMENT.components.schemas[ref.slice(ref.lastIndexOf('/') + 1)])
const redis = new Redis({ path: service.redis.socketPath })
t.teardown(async () => {
  redis.disconnect()
  await service.stop()
})
const rowOf = (token: string) => `{s000}:key:${createHash('sha256').update(token).digest('hex')}`
const operate = (what: string, token?: string, body?: object) =>
  service.operate(what.replace(' ', ' /v1/operator'), {
    ...(token !== undefined && { token }),
    ...(body !== undefined && { body }),
  })
const open = async () => (await operate('POST /session', key, {})).json.token as string
const link = async () => (await operate('POST /link', key, {})).json.url.split('#link=')[1] as string
const use = (token: string) => operate('POST /session/link', undefined, { token })
const isLive = async (token: string) => (await operate('GET /accounts', token)).status === 200

t.test('sessions: a session has the rights of its key, for eight hours [operator.session]', async (t) => {
  const opened = await operate('POST /session', key, { note: 'a look' })
  t.equal(opened.status, 201, opened.text)
  t.match(opened.json.token, /^os_/)
  const hours = (Date.parse(opened.json.expiresAt) - Date.now()) / 3_600_000
  t.ok(hours > OPERATOR_SESSION_HOURS - 0.1 && hours <= OPERATOR_SESSION_HOURS + 0.1)
  const { token } = opened.json
  t.ok(await isLive(token))
  const ttl = await redis.pttl(rowOf(token))
  t.ok(ttl > 0 && ttl <= OPERATOR_SESSION_HOURS * 3_600_000 + 60_000, 'its row expires')
  const made = await operate('POST /accounts', token, { name: 'Made', administrators: [] })
  t.equal(made.status, 201, made.text)
  const [entry] = (await operate('GET /audit?limit=1', token)).json.entries
  const [opening] = (await operate('GET /audit?limit=50', token)).json.entries.filter(
    (one: { act: string }) => one.act === 'openOperatorSession',
  )
  t.match(opening, { note: 'a look', actor: entry.actor }, 'it acts as its key')
  t.match((await operate('DELETE /session', key, {})).json, { error: 'wrong_token_kind' })
  t.equal((await service.call('GET /v1/server', { token })).status, 401, 'no key of the interface')
  t.equal((await operate('GET /accounts', testServer.token)).status, 401)
})

t.test('sessions: no route creates anything with one that outlives it [operator.session]', async (t) => {
  const token = await open()
  const led = { name: 'Led', administrators: ['ada@a.example'] }
  const makers = ASKED.filter(({ success }) => /"(token|url|key)":/.test(JSON.stringify(success.body)))
  t.ok(makers.length >= 6)
  for (const { path, method, refusals } of makers) {
    const { post } = DOCUMENT.paths[path]
    const made = generate(post.requestBody.content['application/json'].schema) as Record<string, unknown>
    const there = path.replace('{accountId}', account.accountId).replace('{serverId}', testServer.serverId)
    const refused = await service.operate(`${method} ${there}`, { token, body: withRules(made) })
    t.match([refused.status, refused.json], [403, { error: 'wrong_token_kind' }], path)
    t.ok(refusals.includes('wrong_token_kind'), path)
  }
  t.match((await operate('POST /accounts', token, led)).json, { error: 'wrong_token_kind' })
  t.equal((await operate('POST /accounts', key, led)).status, 201)
})

t.test('sessions: it ends when it is left, and with its key [operator.session]', async (t) => {
  const [one, other] = [await open(), await open()]
  t.equal((await operate('DELETE /session', one, {})).status, 204)
  t.notOk(await isLive(one))
  t.ok(await isLive(other))
  await redis.hset(rowOf(key), 'revoked', String(Date.now()))
  t.notOk(await isLive(other))
  await redis.hset(rowOf(key), 'revoked', '')
  t.ok(await isLive(other))
})

t.test(
  'sessions: a link opens one, once; of several at once one works, and all end with the key [operator.link]',
  async (t) => {
    const made = await operate('POST /link', key, {})
    t.equal(made.status, 201, made.text)
    t.match(made.json.url, /^http:\/\/localhost:\d+\/#link=[0-9a-f]{34}\.[\w-]{43}$/)
    const minutes = (Date.parse(made.json.expiresAt) - Date.now()) / 60_000
    t.ok(minutes > DESK_LINK_MINUTES - 1 && minutes <= DESK_LINK_MINUTES + 1)
    const links = [made.json.url.split('#link=')[1], await link(), await link()]
    const used = await Promise.all(links.map(use))
    t.same(used.map(({ status }) => status).sort(), [201, 410, 410])
    const token = used.find(({ status }) => status === 201)?.json.token
    t.ok(await isLive(token))
    for (const one of links) t.match((await use(one)).json, { error: 'link_not_valid' })
    const later = await link()
    await redis.hset(rowOf(key), 'revoked', String(Date.now()))
    t.equal((await use(later)).status, 410)
    await redis.hset(rowOf(key), 'revoked', '')
    t.equal((await use(later)).status, 201)
    for (const wrong of [`${await link()}x`, 'x', `${'0'.repeat(34)}.${'a'.repeat(43)}`])
      t.equal((await use(wrong)).status, 410)
    t.equal((await operate('POST /session/link', undefined, {})).status, 400)
    const stored = await redis.hgetall('{s000}:desk-links')
    t.notMatch(JSON.stringify(stored), key, 'the store holds nothing that works')
    const leftMs = await redis.pttl('{s000}:desk-links')
    t.ok(leftMs > 0 && leftMs <= DESK_LINK_MINUTES * 60_000, 'and forgets all of it with the last link')
  },
)
