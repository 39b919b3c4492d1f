/** request-log - bounds of the written rows, and that an unreachable store costs only the rows. */
import { inflateRawSync } from 'node:zlib'
import { Redis } from 'ioredis'
import t from 'tap'
import { homeShard, makeIds } from '../../../cluster/id.ts'
import { REQUESTS_KEPT_MAX } from '../../../schemas/limits.ts'
import { newRequestId } from '../../../src/http/request-id.ts'
import { type RequestRow, requestsKey, unpackRequests } from '../../../src/state/request-row.ts'
import { oneNode } from '../../../src/store/nodes.ts'
import { openRequestLog } from '../../../src/store/requests/request-log.ts'
import { startRedis } from '../../support/store/redis.ts'

const SHARD = 7
const ids = makeIds({ shard: SHARD, last: '', random: Math.random })
const server = await startRedis({ durability: 'memory' })
const redis = new Redis({ path: server.socketPath })
t.teardown(async () => {
  redis.disconnect()
  await server.stop()
})

function rowOf(status: number): RequestRow {
  const path = '/v1/email'
  const messageIds = status < 300 ? [ids.next(Date.now())] : []
  const none = { serverId: null, error: null, issue: null, client: null, userAgent: null, messageIds }
  return { requestId: newRequestId(), method: 'POST', path, status, prefix: 'sk_00000000', ms: 3, ...none }
}

/** Notes so many and writes them. */
async function write(accountId: string, count: number, status: number): Promise<string[]> {
  const log = openRequestLog(
    oneNode(() => redis),
    (fault) => t.fail(String(fault)),
  )
  const rows = Array.from({ length: count }, () => rowOf(status))
  for (const row of rows) log.note(accountId, row)
  await log.close()
  return rows.map(({ requestId }) => requestId)
}

async function storedOf(accountId: string, result: 'refused' | 'answered'): Promise<string[]> {
  const entries = await redis.xrange(requestsKey(homeShard(accountId), accountId, result), '-', '+')
  return entries.flatMap(([, fields]) => {
    const [, , name, text = ''] = fields
    const json = name === 'z' ? inflateRawSync(Buffer.from(text, 'base64')).toString() : text
    return unpackRequests(json).map(({ requestId }) => requestId)
  })
}

t.test('request-log: the last 10,000 of each kind stay, and leave by their age [retention.requests]', async (t) => {
  const accountId = ids.next(Date.now())
  const refused = await write(accountId, 300, 400)
  const all: string[] = []
  for (let n = 0; n < 4; n += 1) all.push(...(await write(accountId, 4_100, 200)))
  const stored = await storedOf(accountId, 'answered')
  t.ok(stored.length >= REQUESTS_KEPT_MAX && stored.length < REQUESTS_KEPT_MAX + 500, `${stored.length}`)
  t.same(stored, all.slice(-stored.length), 'the last ones, in order')
  t.same(await storedOf(accountId, 'refused'), refused, 'the others are apart')
  const bytes = (await redis.memory('USAGE', requestsKey(SHARD, accountId, 'answered'), 'SAMPLES', 0)) as number
  t.ok(bytes / stored.length < 60, `${Math.round(bytes / stored.length)} bytes each`)
  const lifeOf = (result: 'refused' | 'answered') => redis.pttl(requestsKey(SHARD, accountId, result))
  t.ok((await lifeOf('answered')) <= 86_400_000 && (await lifeOf('refused')) > 6 * 86_400_000)
})

t.test('request-log: accounts of one shard and of others get their own rows, long ones deflated', async (t) => {
  const log = openRequestLog(
    oneNode(() => redis),
    (fault) => t.fail(String(fault)),
  )
  const wanted = new Map<string, string[]>()
  for (let n = 0; n < 100; n += 1) {
    const accountId = makeIds({ shard: SHARD + (n % 3), last: '', random: Math.random }).next(Date.now() + n)
    const rows = Array.from({ length: 1 + (n % 60) }, (_, place) => ({
      ...rowOf(200),
      // A client whose user agent changes each time.
      userAgent: n === 59 ? `client ${place} ${'x'.repeat(90)}` : 'client',
    }))
    for (const row of rows) log.note(accountId, row)
    wanted.set(
      accountId,
      rows.map(({ requestId }) => requestId),
    )
  }
  await log.close()
  const fields = new Set<string>()
  for (const [accountId, requestIds] of wanted) {
    const key = requestsKey(homeShard(accountId), accountId, 'answered')
    for (const [, [, , name = '']] of await redis.xrange(key, '-', '+')) fields.add(name)
    t.same(await storedOf(accountId, 'answered'), requestIds)
  }
  t.same([...fields].sort(), ['p', 'z'])
})

t.test('request-log: more than it holds is left out, and a store that is away loses it', async (t) => {
  const accountId = ids.next(Date.now())
  const written = await write(accountId, 60_000, 500)
  const stored = await storedOf(accountId, 'refused')
  t.equal(stored.length, REQUESTS_KEPT_MAX)
  t.same(stored, written.slice(40_000, 50_000), 'the last of those that it holds')
  const away = new Redis({ path: `${server.socketPath}.none`, lazyConnect: true, retryStrategy: () => null })
  away.on('error', () => undefined)
  const faults: unknown[] = []
  const log = openRequestLog(
    oneNode(() => away),
    (fault) => faults.push(fault),
  )
  log.note(accountId, rowOf(500))
  await log.close()
  t.equal(faults.length, 1)
  away.disconnect()
})
