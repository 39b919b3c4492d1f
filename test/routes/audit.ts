/** audit - every write of the operator is in the log, and the log is read page by page over all shards. */
import { Redis } from 'ioredis'
import t from 'tap'
import type { Op } from '../../cluster/behaviour.ts'
import { makeIds } from '../../cluster/id.ts'
import { ROUTES, type Route } from '../../schemas/routes.ts'
import { type AuditEntry, entryOps } from '../../src/actors/audit.ts'
import { type CallOptions, startTestService } from '../support/service.ts'

const service = await startTestService()
const { account, liveServer, operatorToken: token } = service.firstRun
t.teardown(() => service.stop())

const operate = (what: string, options: CallOptions = {}) =>
  service.operate(what.replace(' ', ' /v1/operator'), { token, ...options })

interface Act {
  /** Path below /v1/operator, ids filled in. */
  readonly path: string
  readonly body?: object
  readonly before: object | null
  readonly after: object | null
  /** Names of the ids that the entry tells. */
  readonly targets: readonly string[]
}

/** One order for each write of the operator, as the service stands after those before it. */
const ACTS: Readonly<Record<string, Act>> = {
  patchAccount: {
    path: `/accounts/${account.accountId}`,
    body: { monthlyCap: 77 },
    before: { monthlyCap: 10_000 },
    after: { monthlyCap: 77 },
    targets: ['accountId'],
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
}

function queueAct(order: string) {
  return { path: `/queue/${order}`, body: { domain: 'there.example' }, targets: ['domain'] }
}

const WRITES = Object.values<Route>(ROUTES).filter(
  ({ listener, method }) => listener === 'operator' && method !== 'GET',
)

t.test(
  'audit: each write of the operator is an entry with who, what, why, before and after [operator.audit]',
  async (t) => {
    t.same(WRITES.map(({ name }) => name).sort(), Object.keys(ACTS).sort(), 'every write route has its order here')
    const { rows } = await tokensOf()
    for (const { name, method } of WRITES) {
      const { path, body = {}, before, after, targets } = ACTS[name] as Act
      const note = `why ${name}`
      const called = await operate(`${method} ${path}`, { body: { ...body, note } })
      t.ok(called.status < 300, `${name}: ${called.text}`)
      const [entry] = (await operate('GET /audit?limit=1')).json.entries
      t.match(entry, { act: name, note, before, after }, name)
      t.same(Object.keys(entry.targets), targets, name)
      t.ok(rows.includes(entry.actor), 'the actor is an operator key')
      t.notMatch(JSON.stringify(entry), /[^ ]@/, 'no address')
    }
  },
)

t.test('audit: what is refused, and what is only read, is not logged [operator.audit]', async (t) => {
  const newest = async () => (await operate('GET /audit?limit=1')).json.entries[0]?.auditId
  const before = await newest()
  await operate(`PATCH /accounts/${account.accountId}`, { body: { monthlyCap: 0 } })
  await operate(`PATCH /accounts/${account.accountId}`, { body: { monthlyCap: 100_001 } })
  await operate(`PATCH /accounts/${account.accountId}`, { body: { monthlyCap: 5 }, token: account.token })
  t.equal(await newest(), before)
})

t.test('audit: pages go on over shards, months and entries of one millisecond [list.page]', async (t) => {
  const redis = new Redis({ path: service.redis.socketPath })
  const nowMs = Date.now()
  // Forty days back lies in an earlier month; three entries of a millisecond on each of three shards.
  for (const shard of [0, 7, 255]) {
    const ids = makeIds({ shard, last: '', random: Math.random })
    for (const atMs of [nowMs - 40 * 86_400_000, nowMs - 5000, nowMs - 5000, nowMs - 5000]) {
      const entry: AuditEntry = {
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
  for (const other of [account.token, service.firstRun.liveServer.token, undefined])
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
  const [packed = '[]'] = Object.values(tokens)
  return { redis, rows: Object.keys(tokens), row: `{s000}:key:${JSON.parse(packed)[2]}` }
}
