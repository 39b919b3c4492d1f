/**
 * cluster-tls - a Redis Cluster with TLS only, its own certificate authority and a user with a password: the service
 * starts, mail passes through a mailbox, bells arrive, and the commands of the operator reach every node.
 */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { shardOf } from '../../../cluster/id.ts'
import { journalKey } from '../../../cluster/keyspace.ts'
import { SHARD_SLOTS } from '../../../cluster/slots/slot-map.ts'
import type { FirstRun } from '../../../src/service/first-start.ts'
import { postEmail } from '../../support/clients/ledger.ts'
import { spawnNode } from '../../support/machine/node.ts'
import { freePort } from '../../support/machine/port.ts'
import { until } from '../../support/machine/until.ts'
import { makeSelfSigned } from '../../support/peers/self-signed.ts'
import { FLEET_SECRET } from '../../support/service/fleet.ts'
import { readinessAt } from '../../support/service/host.ts'
import { startCluster } from '../../support/store/redis-cluster.ts'

const MAIN = fileURLToPath(new URL('../../../src/cli/main.js', import.meta.url))
const WAIT_MS = 60_000
const [USER, PASSWORD] = ['sendwright', 'p@ss word/1']

const secure = makeSelfSigned()
const asked = spawnSync('redis-server', ['--port', '0', '--tls-port', '1'], { encoding: 'utf8' })
if (secure === null || /Bad directive/.test(asked.stdout + asked.stderr)) {
  t.pass('openssl is not installed, or redis-server was built without TLS: skipped')
  process.exit(0)
}
const cluster = await startCluster({
  secure,
  replicas: 2,
  settings: { 'min-replicas-to-write': '1', 'min-replicas-max-lag': '5' },
})
const primaries = cluster.nodes.slice(0, 3)
for (const { client } of cluster.nodes) {
  await client.config('SET', 'masteruser', USER)
  await client.config('SET', 'masterauth', PASSWORD)
  await client.call('ACL', 'SETUSER', USER, 'on', `>${PASSWORD}`, '~*', '&*', '+@all')
  await client.call('AUTH', USER, PASSWORD)
  await client.call('ACL', 'SETUSER', 'default', 'off')
}
const dataDir = mkdtempSync(join(tmpdir(), 'sendwright-tls-'))
const authority = join(dataDir, 'authority.pem')
writeFileSync(authority, secure.cert)
const REDIS_URL = cluster.seeds
  .map((seed) => seed.replace('://', `://${USER}:${encodeURIComponent(PASSWORD)}@`))
  .join(',')
const ENV = { PATH: process.env.PATH, DATA_DIR: dataDir, REDIS_URL, SECRET_KEY: FLEET_SECRET, DURABILITY: 'replica' }
const TRUSTING = { ...ENV, NODE_EXTRA_CA_CERTS: authority }

const [httpPort, ...operatorPorts] = [await freePort(), await freePort(), await freePort()]
const services = ['actors', 'http'].map((ROLES, place) =>
  spawnNode([MAIN, 'start'], {
    env: {
      ...TRUSTING,
      ROLES,
      HTTP_PORT: String(httpPort),
      OPERATOR_PORT: String(operatorPorts[place]),
      MX_PORT: '0',
      SUBMISSION_PORT: '0',
      SUBMISSION_TLS_PORT: '0',
      CONTENT_STORE: 'redis',
      EDGE_RATE: '0',
    },
  }),
)
const said = services.map(({ stdout, stderr }) => Promise.all([text(stdout), text(stderr)]))
t.teardown(async () => {
  for (const service of services) {
    if (service.exitCode !== null) continue
    const gone = once(service, 'exit')
    service.kill('SIGTERM')
    await gone
  }
  await cluster.stop()
  rmSync(dataDir, { recursive: true, force: true })
})
const firstRunPath = join(dataDir, 'first-run.json')
await until(() => existsSync(firstRunPath), WAIT_MS)
for (const port of operatorPorts) await until(async () => (await readinessAt(port)) === 200, WAIT_MS)
const firstRun = JSON.parse(readFileSync(firstRunPath, 'utf8')) as FirstRun

async function run(
  args: readonly string[],
  env: NodeJS.ProcessEnv = TRUSTING,
): Promise<{ code: number; out: string; err: string }> {
  const child = spawnNode([MAIN, ...args], { env })
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: code as number, out, err }
}
const operator = ['--url', `http://127.0.0.1:${operatorPorts[1]}`, '--token', firstRun.operatorToken]

async function sends(key: string): Promise<number | undefined> {
  const body = { from: 'you@simulator.test', to: ['one@example.com'], subject: 's', text: 't' }
  return (await postEmail({ port: httpPort, token: firstRun.testServer.token }, body, key))?.status
}

t.test('mail is accepted through a mailbox, and bells arrive in the slots of shards', async (t) => {
  t.equal(await sends('first'), 200)
  await until(async () => {
    const heard = await Promise.all(primaries.map(({ client }) => client.call('PUBSUB', 'SHARDCHANNELS')))
    return (heard as string[][]).every((channels) => channels.some((channel) => channel.endsWith(':bell')))
  }, WAIT_MS)
  const clients = (await Promise.all(cluster.nodes.map(({ client }) => client.call('CLIENT', 'LIST')))) as string[]
  // Links between primary and replica, which were there before.
  const lines = clients.flatMap((list) => list.trim().split('\n')).filter((line) => !/ flags=[SM]/.test(line))
  const users = lines.map((line) => / user=(\S+)/.exec(line)?.[1])
  t.same([...new Set(users)], [USER], 'nobody is another user')
})

t.test('answers wait for a replica, over TLS too', async (t) => {
  const shard = shardOf(firstRun.account.accountId) ?? 0
  const primary = await cluster.primaryOf(SHARD_SLOTS[shard] ?? 0)
  t.match(await primary.client.call('CLIENT', 'LIST'), / name=gate /)
  const id = String(await primary.client.call('CLUSTER', 'MYID'))
  const views = await Promise.all(cluster.nodes.map(({ client }) => client.call('CLUSTER', 'NODES')))
  const replicas = cluster.nodes.filter((_, place) => String(views[place]).includes(`myself,slave ${id}`))
  t.equal(replicas.length, 2)
  const entryOf = async (): Promise<string> =>
    JSON.stringify(await primary.client.xrevrange(journalKey(shard), '+', '-', 'COUNT', 1))
  const waitsOf = async (): Promise<number> =>
    Number(/cmdstat_wait:calls=(\d+)/.exec(await primary.client.info('commandstats'))?.[1] ?? 0)
  const before = await entryOf()
  for (const { signal } of replicas) signal('SIGSTOP')
  let isAnswered = false
  const answered = sends('waits').then((status) => {
    isAnswered = true
    return status
  })
  await until(async () => (await entryOf()) !== before, WAIT_MS)
  // The wait for replicas fails, and is repeated.
  const waits = await waitsOf()
  await until(async () => (await waitsOf()) > waits + 1, WAIT_MS)
  t.equal(isAnswered, false, 'it is committed, and nobody is told')
  for (const { signal } of replicas) signal('SIGCONT')
  t.equal(await answered, 200)
})

t.test('status, doctor and plan reach every node, and a shard moves', async (t) => {
  const status = await run(['cluster', 'status', ...operator])
  t.equal(status.code, 0, status.out + status.err)
  t.equal(status.out.match(/primary +up/g)?.length, 3, status.out)
  const doctor = await run(['doctor', '--json', ...operator])
  const { findings } = JSON.parse(doctor.out) as { findings: { name: string; status: string; message: string }[] }
  t.same(
    findings.filter(({ name, status }) => (name === 'store' || name === 'clock') && status === 'failed'),
    [],
    doctor.out,
  )
  const plan = await run(['cluster', 'plan'])
  t.equal(plan.code, 0, plan.out + plan.err)
  const shard = shardOf(firstRun.account.accountId) ?? 0
  const here = await cluster.primaryOf(SHARD_SLOTS[shard] ?? 0)
  const to = cluster.nodes.find(({ name }) => name !== here.name)?.name ?? ''
  const moved = await run(['cluster', 'move', String(shard), to])
  t.equal(moved.code, 0, moved.out + moved.err)
  t.equal((await cluster.primaryOf(SHARD_SLOTS[shard] ?? 0)).name, to)
  await until(async () => (await sends('second')) === 200, WAIT_MS)
  t.ok(
    Number(
      await cluster.nodes
        .find(({ name }) => name === to)
        ?.client.call('CLUSTER', 'COUNTKEYSINSLOT', SHARD_SLOTS[shard] ?? 0),
    ) > 0,
  )
})

t.test('an unknown authority and a wrong password are reported as such', async (t) => {
  const unknown = await run(['cluster', 'plan'], ENV)
  t.not(unknown.code, 0)
  t.match(unknown.out + unknown.err, /The certificate of .* is not trusted/)
  t.notMatch(unknown.out + unknown.err, PASSWORD)
  const start = await run(['start'], {
    ...ENV,
    OPERATOR_PORT: String(await freePort()),
    HTTP_PORT: String(await freePort()),
  })
  t.match(start.out + start.err, /The certificate of .* is not trusted/)
  t.not(start.code, 0)
  const wrong = { ...TRUSTING, REDIS_URL: REDIS_URL.replaceAll('p%40ss', 'pass') }
  const refused = await run(['cluster', 'plan'], wrong)
  t.not(refused.code, 0)
  t.match(refused.out + refused.err, /refuses the user and password/)
})

t.test('no output contains the password or a warning about TLS', async (t) => {
  for (const service of services) {
    const gone = once(service, 'exit')
    service.kill('SIGTERM')
    await gone
  }
  const all = (await Promise.all(said)).flat().join('\n')
  t.notMatch(all, /p@ss|p%40ss/)
  t.notMatch(all, /Warning|ServerName/)
})
