/** shared-stream - rows of quiet accounts wait in the stream of their shard, and are moved once. */
import { Redis } from 'ioredis'
import t from 'tap'
import { homeShard, makeIds, shortId } from '../../../cluster/id.ts'
import { newRequestId } from '../../../src/http/request-id.ts'
import { newRequestsKey, type RequestRow, requestsKey, unpackRequests } from '../../../src/state/request-row.ts'
import { oneNode } from '../../../src/store/nodes.ts'
import { openRequestLog, type RequestLog } from '../../../src/store/requests/request-log.ts'
import { until } from '../../support/machine/until.ts'
import { startRedis } from '../../support/store/redis.ts'

const SHARD = 7
const WAIT_MS = 30_000
const DAY_MS = 86_400_000
const ids = makeIds({ shard: SHARD, last: '', random: Math.random })
const server = await startRedis({ durability: 'memory' })
const redis = new Redis({ path: server.socketPath })
t.teardown(async () => {
  redis.disconnect()
  await server.stop()
})
t.beforeEach(async () => redis.flushall())

const open = (faults: unknown[] = []): RequestLog =>
  openRequestLog(
    oneNode(() => redis),
    (fault) => faults.push(fault),
  )

function rowOf(place: number, agent: string | null = null): RequestRow {
  const none = { serverId: null, error: null, issue: null, client: null, messageIds: [ids.next(Date.now())] }
  return {
    ...none,
    requestId: newRequestId(),
    method: 'POST',
    path: '/v1/email',
    status: 200,
    prefix: 'sk_00000000',
    ms: place,
    userAgent: agent,
  }
}

/** Rows of an account in the stream of its shard. */
async function newOf(accountId: string): Promise<RequestRow[]> {
  const entries = await redis.xrange(newRequestsKey(SHARD), '-', '+')
  return entries.flatMap(([, fields]) => {
    const at = fields.indexOf(shortId(accountId))
    return at < 0 ? [] : unpackRequests(fields[at + 1] ?? '')
  })
}

async function ownOf(accountId: string): Promise<RequestRow[]> {
  const entries = await redis.xrange(requestsKey(homeShard(accountId), accountId, 'answered'), '-', '+')
  return entries.flatMap(([, fields]) => unpackRequests(fields[3] ?? ''))
}

t.test('request-log: rows of quiet accounts are written together, and moved when the log closes', async (t) => {
  const log = open()
  const accounts = [ids.next(Date.now()), ids.next(Date.now() + 1)] as const
  const rows = [rowOf(0), rowOf(1, 'a "client"'), rowOf(2), rowOf(3)] as const
  log.note(accounts[0], rows[0])
  log.note(accounts[1], rows[1])
  await until(async () => (await newOf(accounts[1])).length === 1, WAIT_MS)
  t.equal(await redis.xlen(newRequestsKey(SHARD)), 1, 'one entry for both')
  t.same(await newOf(accounts[0]), [rows[0]])
  t.same(await newOf(accounts[1]), [rows[1]])
  t.ok((await redis.pttl(newRequestsKey(SHARD))) > DAY_MS)
  log.note(accounts[0], rows[2])
  log.note(accounts[0], rows[3])
  await until(async () => (await newOf(accounts[0])).length === 3, WAIT_MS)
  t.same(await newOf(accounts[0]), [rows[0], rows[2], rows[3]], 'each once')
  t.same(await ownOf(accounts[0]), [])
  await log.close()
  t.same(await ownOf(accounts[0]), [rows[0], rows[2], rows[3]])
  t.same(await ownOf(accounts[1]), [rows[1]])
  t.equal(await redis.xlen(newRequestsKey(SHARD)), 0)
})

t.test('request-log: an account with many rows or kinds of rows is written to its own stream at once', async (t) => {
  const log = open()
  const [many, kinds] = [ids.next(Date.now()), ids.next(Date.now() + 1)]
  for (let n = 0; n < 40; n += 1) log.note(many, rowOf(n))
  for (let n = 0; n < 6; n += 1) log.note(kinds, rowOf(n, `client ${n}`))
  await until(async () => (await ownOf(many)).length === 40 && (await ownOf(kinds)).length === 6, WAIT_MS)
  t.equal(await redis.exists(newRequestsKey(SHARD)), 0)
  await log.close()
  t.equal((await ownOf(many)).length, 40)
})

t.test('request-log: what one process has not moved, another leaves as it is', async (t) => {
  const [one, other] = [open(), open()]
  const accountId = ids.next(Date.now())
  const rows = [rowOf(0), rowOf(1)] as const
  one.note(accountId, rows[0])
  await until(async () => (await newOf(accountId)).length === 1, WAIT_MS)
  other.note(accountId, rows[1])
  await until(async () => (await newOf(accountId)).length === 2, WAIT_MS)
  await other.close()
  t.same(await ownOf(accountId), [rows[1]])
  t.same(await newOf(accountId), [rows[0]])
  await one.close()
  t.same(await ownOf(accountId), [rows[1], rows[0]])
})

t.test('request-log: a stream that cannot be written fails alone, and loses no row of the shard', async (t) => {
  const faults: unknown[] = []
  const log = open(faults)
  const [broken, whole] = [ids.next(Date.now()), ids.next(Date.now() + 1)]
  await redis.set(requestsKey(SHARD, broken, 'answered'), 'not a stream')
  log.note(broken, rowOf(0))
  log.note(whole, rowOf(1))
  await until(async () => (await newOf(broken)).length === 1, WAIT_MS)
  await log.close()
  t.equal((await ownOf(whole)).length, 1)
  t.equal(faults.length, 1)
  t.equal((await newOf(broken)).length, 1, 'its row stays with those of the shard')
})
