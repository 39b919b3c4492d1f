/** audit - every write of the operator is in the log, and the log is read page by page over all shards. */
import { createHash } from 'node:crypto'
import { Redis } from 'ioredis'
import t from 'tap'
import type { Op } from '../../../cluster/behaviour.ts'
import { makeIds } from '../../../cluster/id.ts'
import { ROUTES, type Route } from '../../../schemas/routes.ts'
import { type AuditRecord, entryOps } from '../../../src/state/audit.ts'
import { secretInFile } from '../../support/service/secret-folder.ts'
import { type CallOptions, startTestService } from '../../support/service/service.ts'

const service = await startTestService({ APPROVAL: 'manual', ...secretInFile() })
const { account, liveServer, testServer, operatorToken: token } = service.firstRun
t.teardown(() => service.stop())

const operate = (what: string, options: CallOptions = {}) =>
  service.operate(what.replace(' ', ' /v1/operator'), { token, ...options })

interface Act {
  /** Path below /v1/operator; `{name}` is an id that an answer before brought. */
  readonly path: string
  readonly body?: object
  readonly before: object | null
  readonly after: object | null
  /** Names of the ids in the entry. */
  readonly targets: readonly string[]
  /** The key of the order; absent: the operator's key. */
  readonly token?: string
}

/** One order for each write of the operator, on the service as the orders above leave it. */
const ACTS: Readonly<Record<string, Act>> = {
  patchAccount: {
    path: `/accounts/${account.accountId}`,
    body: { monthlyCap: 77 },
    before: { monthlyCap: 10_000 },
    after: { monthlyCap: 77 },
    targets: ['accountId'],
  },
  createAccount: {
    path: '/accounts',
    body: { name: 'Acme', administrators: ['ann@acme.example'] },
    before: null,
    after: { name: 'Acme', status: 'pending', administrators: 1 },
    targets: ['accountId'],
  },
  patchInstallationRetention: {
    path: '/retention',
    body: { logRetentionMonths: 12 },
    before: { logRetentionMonths: null },
    after: { logRetentionMonths: 12 },
    targets: [],
  },
  patchAccountRetentionAsOperator: {
    path: '/accounts/{accountId}/retention',
    body: { sentContentDays: 5 },
    before: { sentContentDays: null },
    after: { sentContentDays: 5 },
    targets: ['accountId'],
  },
  approveAccount: {
    path: '/accounts/{accountId}/approve',
    body: { monthlyCap: 50_000 },
    before: { status: 'pending', monthlyCap: 10_000 },
    after: { status: 'active', monthlyCap: 50_000 },
    targets: ['accountId'],
  },
  createAccountLink: {
    path: '/accounts/{accountId}/link',
    body: { address: 'ann@acme.example', role: 'member' },
    before: null,
    after: { role: 'member' },
    targets: ['accountId'],
  },
  createServerAsOperator: {
    path: '/accounts/{accountId}/servers',
    body: { name: 'Shop', mode: 'live' },
    before: null,
    after: { name: 'Shop', mode: 'live' },
    targets: ['accountId', 'serverId', 'tokenId'],
  },
  createServerTokenAsOperator: {
    path: '/servers/{serverId}/tokens',
    body: { name: 'Second' },
    before: null,
    after: { name: 'Second' },
    targets: ['accountId', 'serverId', 'tokenId'],
  },
  revokeServerTokenAsOperator: {
    path: '/servers/{serverId}/tokens/{tokenId}/revoke',
    before: { revokedAtMs: null },
    after: {},
    targets: ['accountId', 'serverId', 'tokenId'],
  },
  createAccountToken: {
    path: '/accounts/{accountId}/tokens',
    body: { name: 'Own' },
    before: null,
    after: { name: 'Own' },
    targets: ['accountId', 'tokenId'],
  },
  revokeAccountTokenAsOperator: {
    path: '/accounts/{accountId}/tokens/{tokenId}/revoke',
    before: { revokedAtMs: null },
    after: {},
    targets: ['accountId', 'tokenId'],
  },
  pauseStream: {
    path: `/streams/${liveServer.streamId}/pause`,
    before: { pausedAtMs: null },
    after: { pausedAtMs: Number },
    targets: ['streamId'],
  },
  resumeStream: {
    path: `/streams/${liveServer.streamId}/resume`,
    before: { pausedAtMs: Number },
    after: { pausedAtMs: null },
    targets: ['streamId'],
  },
  paceStream: {
    path: `/streams/${liveServer.streamId}`,
    body: { pacePerMinute: 60 },
    before: { pacePerMinute: null },
    after: { pacePerMinute: 60 },
    targets: ['streamId'],
  },
  retryQueue: { ...queueAct('retry'), before: { held: false }, after: { held: false } },
  holdQueue: { ...queueAct('hold'), before: { held: false }, after: { held: true } },
  releaseQueue: { ...queueAct('release'), before: { held: true }, after: { held: false } },
  dropQueue: { ...queueAct('drop'), before: { held: false }, after: { held: false } },
  pauseAccount: {
    path: '/accounts/{accountId}/pause',
    before: { status: 'active', held: false },
    after: { status: 'paused', held: true },
    targets: ['accountId'],
  },
  resumeAccount: {
    path: '/accounts/{accountId}/resume',
    before: { status: 'paused', held: true },
    after: { status: 'active', held: false },
    targets: ['accountId'],
  },
  closeAccount: {
    path: '/accounts/{accountId}/close',
    before: { status: 'active' },
    after: { status: 'closed' },
    targets: ['accountId'],
  },
  // About the first account, because its ids must not replace those above.
  operatorLiftSuppression: {
    path: `/suppressions/${await suppress()}`,
    before: { reason: 'manual' },
    after: null,
    targets: ['accountId', 'serverId', 'streamId', 'suppressionId'],
  },
  revealMessage: {
    path: `/messages/${await send()}/reveal`,
    before: null,
    after: null,
    targets: ['messageId', 'serverId', 'accountId'],
  },
  searchRecipients: {
    path: '/recipients/search',
    body: { recipient: 'ann@simulator.test' },
    before: null,
    after: null,
    targets: ['domain'],
  },
  openOperatorSession: { path: '/session', before: null, after: { endsAtMs: Number }, targets: ['tokenId'] },
  createDeskLink: { path: '/link', before: null, after: { endsAtMs: Number }, targets: ['tokenId'] },
  useDeskLink: {
    path: '/session/link',
    body: { token: await deskLink() },
    before: null,
    after: { endsAtMs: Number },
    targets: ['tokenId'],
  },
  endOperatorSession: {
    path: '/session',
    token: await deskSession(),
    before: null,
    after: null,
    targets: ['tokenId'],
  },
  applyEgress: {
    path: '/egress',
    body: {
      sources: [{ name: 'out-1', address: '127.0.0.1' }],
      pools: [{ name: 'own', sources: [{ source: 'out-1' }] }],
      rules: [],
    },
    before: { version: 0, sources: [] },
    after: { version: 1, sources: ['out-1'], pools: ['own'], rules: 0 },
    targets: [],
  },
  rotateSecret: {
    path: '/secret/rotate',
    before: null,
    after: { phase: 'preparing' },
    targets: ['rotationId'],
  },
  createOperatorKey: {
    path: '/tokens',
    body: { name: 'Sam', role: 'support' },
    before: null,
    after: { name: 'Sam', role: 'support' },
    targets: ['tokenId'],
  },
  revokeOperatorKey: {
    path: '/tokens/{tokenId}/revoke',
    before: { revokedAtMs: null },
    after: {},
    targets: ['tokenId'],
  },
}

function queueAct(order: string) {
  return { path: `/queue/${order}`, body: { domain: 'there.example' }, targets: ['domain'] }
}

/** A link into the operator's view. */
async function deskLink(): Promise<string> {
  const { json } = await service.operate('POST /v1/operator/link', { token, body: {} })
  return json.url.split('#link=')[1]
}

/** A session of the operator. */
async function deskSession(): Promise<string> {
  return (await service.operate('POST /v1/operator/session', { token, body: {} })).json.token
}

/** Puts an address on the list of the live server's stream, and answers the entry's id. */
async function suppress(): Promise<string> {
  const { token, streamId } = liveServer
  const body = { streamId, recipients: ['bob@example.net'] }
  await service.call('POST /v1/suppressions', { token, body })
  const found = await service.call('POST /v1/suppressions/search', { token, body: { streamId } })
  return found.json.suppressions[0].suppressionId
}

/** Sends a message of the test server, and answers its id. */
async function send(): Promise<string> {
  const body = { from: 'you@simulator.test', to: ['one@simulator.test'], subject: 'Hello', text: 'It works.' }
  return (await service.call('POST /v1/email', { token: testServer.token, body })).json.messageId
}

const WRITES = Object.values<Route>(ROUTES).filter(
  ({ name, listener, method, path }) =>
    listener === 'operator' && method !== 'GET' && !(path.endsWith('/search') && name !== 'searchRecipients'),
)

t.test('audit: each write of the operator takes a note [operator.note]', async (t) => {
  for (const { name, body } of WRITES) t.ok((body as { properties?: { note?: object } })?.properties?.note, name)
})

t.test('audit: each write is an entry with actor, action, reason, before and after [operator.audit]', async (t) => {
  t.same(Object.keys(ACTS).sort(), WRITES.map(({ name }) => name).sort(), 'every write route has its order here')
  const { rows } = await tokensOf()
  const ids: Record<string, string> = {}
  for (const [name, { path, body = {}, before, after, targets, token: own = token }] of Object.entries(ACTS)) {
    const route = WRITES.find((one) => one.name === name) as Route
    const note = `why ${name}`
    const called = await operate(`${route.method} ${path.replace(/\{(\w+)\}/g, (_, id) => ids[id] ?? '')}`, {
      body: { ...body, note },
      token: own,
    })
    t.ok(called.status < 300, `${name}: ${called.text}`)
    const [entry] = (await operate('GET /audit?limit=1')).json.entries
    t.match(entry, { act: name, note, before, after }, name)
    t.same(Object.keys(entry.targets), targets, name)
    t.ok(rows.includes(entry.actor), 'the actor is an operator key')
    t.notMatch(JSON.stringify(entry), 'acme.example', 'no address')
    if (name !== 'patchAccount') Object.assign(ids, entry.targets)
  }
})

t.test('audit: refusals and reads are not logged [operator.audit]', async (t) => {
  const newest = async () => (await operate('GET /audit?limit=1')).json.entries[0]?.auditId
  const before = await newest()
  await operate(`PATCH /accounts/${account.accountId}`, { body: { monthlyCap: 0 } })
  await operate(`PATCH /accounts/${account.accountId}`, { body: { monthlyCap: 100_001 } })
  await operate(`PATCH /accounts/${account.accountId}`, { body: { monthlyCap: 5 }, token: account.token })
  t.equal(await newest(), before)
})

t.test('audit: pages continue over shards, months and entries of one millisecond [list.page]', async (t) => {
  const redis = new Redis({ path: service.redis.socketPath })
  const nowMs = Date.now()
  // Forty days back is in an earlier month; three entries of a millisecond on each of three shards.
  for (const shard of [0, 7, 255]) {
    const ids = makeIds({ shard, last: '', random: Math.random })
    for (const atMs of [nowMs - 40 * 86_400_000, nowMs - 5000, nowMs - 5000, nowMs - 5000]) {
      const entry: AuditRecord = {
        auditId: ids.next(atMs),
        actor: null,
        act: 'makeOperatorKey',
        note: null,
        targets: {},
        before: null,
        after: null,
      }
      const { key, args } = entryOps(shard, entry)[0] as Op
      await redis.zadd(key, ...(args as [string, string]))
    }
  }
  redis.disconnect()
  const whole = (await operate('GET /audit?limit=100')).json
  t.equal(whole.next, null)
  const ids = whole.entries.map(({ auditId }: { auditId: string }) => auditId)
  t.same(ids, [...ids].sort().reverse(), 'newest first')
  t.ok(ids.length >= 13)
  for (const limit of [1, 2, 5, ids.length]) {
    const paged: string[] = []
    for (let after: string | null = ''; after !== null; ) {
      const { json } = await operate(`GET /audit?limit=${limit}${after && `&after=${after.toUpperCase()}`}`)
      paged.push(...json.entries.map(({ auditId }: { auditId: string }) => auditId))
      after = json.next
    }
    t.same(paged, ids, `pages of ${limit}`)
  }
  for (const query of ['limit=0', 'limit=101', 'after=x', 'act=patchAccount'])
    t.equal((await operate(`GET /audit?${query}`)).status, 400, query)
})

t.test('audit: needs an operator key that is live [key.revoke]', async (t) => {
  for (const other of [account.token, liveServer.token, undefined])
    t.equal((await service.operate('GET /v1/operator/audit', other === undefined ? {} : { token: other })).status, 401)
  const { redis, row } = await tokensOf()
  await redis.hset(row, 'revoked', String(Date.now()))
  t.equal((await operate('GET /audit')).status, 401)
  t.equal((await operate(`PATCH /accounts/${account.accountId}`, { body: {} })).status, 401)
  await redis.hset(row, 'revoked', '')
  redis.disconnect()
  t.equal((await operate('GET /audit')).status, 200)
})

/** The operator's tokens, and the row of the one in use. */
async function tokensOf() {
  const redis = new Redis({ path: service.redis.socketPath })
  t.teardown(() => redis.disconnect())
  const tokens = await redis.hgetall('{s000}:tokens:operator')
  const hash = createHash('sha256').update(token).digest('hex')
  return { redis, rows: Object.keys(tokens), row: `{s000}:key:${hash}` }
}
