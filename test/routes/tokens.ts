/** tokens - keys of a server over real HTTP: made once shown, two live, revoked at once everywhere. */
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import t from 'tap'
import { parseKey } from '../../src/http/key.ts'
import { type Called, startTestService } from '../support/service/service.ts'

const service = await startTestService()
const { account, liveServer, testServer } = service.firstRun
t.teardown(() => service.stop())

const make = (token: string, name: unknown = 'Another') => service.call('POST /v1/tokens', { token, body: { name } })
const list = (token: string, query = '') => service.call(`GET /v1/tokens${query}`, { token })
const revoke = (token: string, id: string) => service.call(`POST /v1/tokens/${id}/revoke`, { token })
const MESSAGE = { from: 'you@simulator.test', to: ['delivered@simulator.test'], subject: 'Hello', text: 'It works.' }
const send = (token: string, body: object = MESSAGE) => service.call('POST /v1/email', { token, body })

/** Ids of the live keys, newest first. */
async function liveIds(token: string): Promise<string[]> {
  const { tokens } = (await list(token)).json
  return tokens.filter((one: Called['json']) => one.revokedAt === null).map((one: Called['json']) => one.tokenId)
}

t.test(
  'token: created with its value, which works at once and is stored nowhere else [key.create] [key.format]',
  async (t) => {
    for (const [server, kind] of [
      [liveServer, 'sk'],
      [testServer, 'sk_test'],
    ] as const) {
      const made = await make(server.token, `Of ${kind}`)
      t.equal(made.status, 201)
      const { token, tokenId, prefix } = made.json
      t.match(made.json, { name: `Of ${kind}`, revokedAt: null })
      const parsed = parseKey(token)
      t.match(parsed, { kind, prefix })
      t.equal(parsed?.shard, parseKey(server.token)?.shard)
      t.equal((await service.call('GET /v1/server', { token })).json.serverId, server.serverId)
      t.match((await make(token)).json, { error: 'token_limit', max: 2 })
      const { json } = await list(token)
      t.equal(json.next, null)
      t.match(json.tokens, [{ tokenId, prefix }, { name: 'First key' }])
      t.equal(json.tokens.length, 2)
      t.notOk(JSON.stringify(json).includes(token))
      const redis = new Redis({ path: service.redis.socketPath })
      for (const key of await redis.keys('*:tokens:*'))
        t.notMatch(JSON.stringify(await redis.hgetall(key)), token.slice(-38))
      redis.disconnect()
    }
  },
)

t.test('token: once revoked, it is refused on every route [key.revoke]', async (t) => {
  const [newer = '', first = ''] = await liveIds(testServer.token)
  const second = (await list(testServer.token)).json.tokens.find((one: Called['json']) => one.tokenId === newer)
  t.equal((await revoke(testServer.token, newer)).json.revokedAt !== null, true)
  t.match((await revoke(testServer.token, newer.toUpperCase())).json, { prefix: second.prefix, tokenId: newer })
  const other = (await make(testServer.token)).json.token
  t.equal((await send(testServer.token)).status, 200)
  const revoked = await revoke(testServer.token, first)
  t.equal(revoked.status, 200, 'a key revokes itself')
  for (const called of [
    await send(testServer.token),
    await send(testServer.token, {}),
    await list(testServer.token),
    await make(testServer.token),
    await revoke(testServer.token, first),
    await service.call('GET /v1/server', { token: testServer.token }),
    await service.call('GET /v1/domains', { token: testServer.token }),
    await service.call('GET /v1/nothing', { token: testServer.token }),
    await service.call('POST /v1/email', {
      token: testServer.token,
      body: 'x',
      headers: { 'content-type': 'text/plain' },
    }),
  ])
    t.match([called.status, called.json.error], [401, 'unauthorized'])
  t.strictSame((await revoke(other, first)).json, revoked.json, 'unchanged')
  t.equal((await list(other)).json.tokens.length, 3, 'live and revoked')
  t.equal((await send(other)).status, 200)
})

t.test('token: keys of others are not there', async (t) => {
  const [foreign = ''] = await liveIds(liveServer.token)
  const { token } = liveServer
  for (const id of ['x', randomUUID(), account.accountId, testServer.serverId])
    t.match((await revoke(token, id)).json, { error: 'not_found' }, id)
  const mine = (await list(token)).json.tokens
  t.ok(mine.some((one: Called['json']) => one.tokenId === foreign))
  t.match((await list(account.token)).json, { error: 'wrong_token_kind' })
})

t.test('token: bounds of its name, and pages of the list [key.list] [name.max]', async (t) => {
  const { token } = liveServer
  const names: [unknown, number][] = [
    ['x', 201],
    ['n'.repeat(100), 201],
    ['é'.repeat(100), 201],
    ['', 400],
    [null, 400],
    ['n'.repeat(101), 400],
    ['n\u0000', 400],
  ]
  for (const [name, status] of names) {
    const [newest = '', ...others] = await liveIds(token)
    if (others.length > 0) t.equal((await revoke(token, newest)).status, 200)
    t.equal((await make(token, name)).status, status, String(name))
  }
  const all = (await list(token)).json.tokens.map((one: Called['json']) => one.tokenId)
  t.ok(all.length > 4)
  const seen: string[] = []
  let after = ''
  for (let page = 0; page < 20; page++) {
    const { json } = await list(token, `?limit=2${after}`)
    seen.push(...json.tokens.map((one: Called['json']) => one.tokenId))
    if (json.next === null) break
    after = `&after=${json.next}`
  }
  t.strictSame(seen, all)
  for (const query of ['?limit=0', '?limit=101', '?after=1', '?x=1'])
    t.equal((await list(token, query)).status, 400, query)
})

t.test('token: 16 at once make one more live key, never two [key.live.max]', async (t) => {
  const { token } = liveServer
  t.equal((await liveIds(token)).length, 1)
  const answers = await Promise.all(Array.from({ length: 16 }, () => make(token)))
  t.equal(answers.filter(({ status }) => status === 201).length, 1)
  t.equal(answers.filter(({ json }) => json.error === 'token_limit').length, 15)
})
