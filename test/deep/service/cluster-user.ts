/**
 * cluster-user - the Redis user of docs/operate/cluster.md is allowed all that two processes need of a Redis Cluster:
 * mail on every primary, bells of shards, a failover, and nothing outside of the service's keys
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { SHARD_SLOTS } from '../../../cluster/slots/slot-map.ts'
import { ROOT } from '../../support/machine/root.ts'
import { until } from '../../support/machine/until.ts'
import { startTestService } from '../../support/service/service.ts'
import { startCluster } from '../../support/store/redis-cluster.ts'

const WAIT_MS = 60_000
/** The rules of the user that a page shows. */
function rulesOf(page: string, end: RegExp): string[] {
  const text = readFileSync(join(ROOT, 'docs/operate', page), 'utf8')
  const [, block = ''] = end.exec(text) ?? []
  return block.replace(/[\\']/g, '').trim().split(/\s+/)
}
const single = rulesOf('redis.md', /SETUSER sendwright on '>…' ([^`]*)/)
const more = rulesOf('cluster.md', /SETUSER sendwright (\+cluster[^`]*)/)

const cluster = await startCluster({
  replicas: 2,
  settings: { 'min-replicas-to-write': '1', 'min-replicas-max-lag': '5' },
})
t.teardown(() => cluster.stop())
// An older Redis does not know WAITAOF, which is needed only without CONFIG.
const listed = await Promise.all(cluster.nodes.map(({ client }) => client.call('COMMAND', 'LIST')))
const known = (listed[0] as string[]).map((name) => name.toLowerCase())
const rules = [...single, ...more].filter((rule) => !/^\+[a-z]+$/.test(rule) || known.includes(rule.slice(1)))
for (const { client } of cluster.nodes) await client.call('ACL', 'SETUSER', 'sendwright', 'on', '>secret', ...rules)

const { TOPOLOGY } = process.env
process.env.TOPOLOGY = 'apart'
const service = await startTestService({
  REDIS_URL: cluster.seeds.map((seed) => seed.replace('://', '://sendwright:secret@')).join(','),
  CONTENT_STORE: 'redis',
  MX_PORT: '0',
  DURABILITY: 'replica',
})
if (TOPOLOGY === undefined) delete process.env.TOPOLOGY
else process.env.TOPOLOGY = TOPOLOGY
t.teardown(() => service.stop())
const { operatorToken, testServer } = service.firstRun

/** What each node has denied the user so far. */
async function denied(): Promise<unknown[]> {
  const logs = await Promise.all(cluster.nodes.map(({ client }) => client.call('ACL', 'LOG').catch(() => [])))
  return (logs as unknown[][]).flat()
}

async function deliver(token: string): Promise<void> {
  const body = { from: 'a@simulator.test', to: ['ada@simulator.test'], subject: 'S', text: 'T' }
  const messageId = await until(async () => {
    const sent = await service.call('POST /v1/email', { token, body }).catch(() => null)
    return sent?.status === 200 ? (sent.json.messageId as string) : null
  }, WAIT_MS)
  await until(async () => {
    const { json } = await service.call(`GET /v1/messages/${messageId}`, { token })
    return json.recipients?.[0]?.status === 'delivered'
  }, WAIT_MS)
}

t.test('cluster-user: the rules are those of a single Redis and a few of clusters', async (t) => {
  t.ok(single.length > 30)
  t.ok(more.length > 5 && more.every((rule) => /^\+\w+(\|\w+)?$/.test(rule)), more.join(' '))
  for (const rule of more) {
    const named = `'${rule.slice(1).replace('|', "', '")}'`
    const found = spawnSync('grep', ['-rqiF', named, '--include=*.ts', 'cluster'], { cwd: ROOT })
    t.equal(found.status, 0, `${named} is in the source`)
  }
})

t.test('cluster-user: accounts on several primaries send, search and are examined', async (t) => {
  await deliver(testServer.token)
  const operate = (what: string, body?: object) =>
    service.operate(what, { token: operatorToken, ...(body !== undefined && { body }) })
  for (let n = 0; n < 6; n += 1) {
    const body = { name: `Account ${n}`, administrators: ['ada@acme.example'] }
    const { accountId } = (await operate('POST /v1/operator/accounts', body)).json
    const server = { name: 'Tests', mode: 'test' }
    const { serverId } = (await operate(`POST /v1/operator/accounts/${accountId}/servers`, server)).json
    const key = await operate(`POST /v1/operator/servers/${serverId}/tokens`, { name: 'Key' })
    await deliver(key.json.token)
  }
  for (const path of ['messages', 'events', 'suppressions'])
    await service.call(`POST /v1/${path}/search`, { token: testServer.token, body: {} })
  for (const path of ['health', 'queue', 'accounts', 'shards', 'audit']) await operate(`GET /v1/operator/${path}`)
  await service.operate('GET /metrics')
  t.same(await denied(), [])
})

t.test('cluster-user: the service follows a failover', async (t) => {
  const slot = SHARD_SLOTS[0] ?? 0
  const before = await cluster.primaryOf(slot)
  await before.kill()
  await until(async () => {
    const now = await cluster.primaryOf(slot).catch(() => null)
    return now !== null && now.port !== before.port
  }, WAIT_MS)
  await deliver(testServer.token)
  t.same(await denied(), [])
})
