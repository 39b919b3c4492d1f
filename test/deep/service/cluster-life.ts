/**
 * cluster-life - everything that an installation does, once, over a Redis Cluster of three primaries: processes of
 * each role, two of which know only one node; mail out by HTTP and SMTP, in, by broadcast; webhooks, search,
 * statistics, the dashboard, the operator's views, an erasure.
 */
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { shardOf } from '../../../cluster/id.ts'
import { COMMON_SLOT, SHARD_SLOTS } from '../../../cluster/slots/slot-map.ts'
import { type RunningService, startService } from '../../../src/main.ts'
import type { FirstRun } from '../../../src/service/first-start.ts'
import { Browser } from '../../support/clients/browser.ts'
import { postEmail } from '../../support/clients/ledger.ts'
import { spawnNode } from '../../support/machine/node.ts'
import { freePort } from '../../support/machine/port.ts'
import { ROOT } from '../../support/machine/root.ts'
import { until } from '../../support/machine/until.ts'
import { startMx } from '../../support/peers/mx.ts'
import { startReceiver } from '../../support/peers/receiver.ts'
import { deliverMail } from '../../support/peers/smtp-dialog.ts'
import { openSubmission, submitMail } from '../../support/peers/submission.ts'
import { startZone } from '../../support/peers/zone.ts'
import { verifyDomain } from '../../support/service/crash-live.ts'
import { raiseLimits } from '../../support/service/crash-scene.ts'
import { TIMEOUTS } from '../../support/service/delivery.ts'
import { FLEET_SECRET } from '../../support/service/fleet.ts'
import { readinessAt } from '../../support/service/host.ts'
import { configOf } from '../../support/service/service.ts'
import { startCluster } from '../../support/store/redis-cluster.ts'
import { Seeker, seekInRedis } from '../../support/store/seek.ts'

const MAIN = fileURLToPath(new URL('../../../src/cli/main.js', import.meta.url))
const WAIT_MS = 60_000
const DOMAIN = 'acme.example'
const PERSON = 'jo.quetzalcoatlus@dest.example'
const PASSWORD = 'correct horse battery'

const receiver = await startReceiver()
if (receiver === null) {
  t.pass('openssl is not installed: skipped')
  process.exit(0)
}
const [cluster, zone, mx] = [await startCluster(), await startZone(), await startMx()]
const dataDir = mkdtempSync(join(tmpdir(), 'sendwright-cluster-'))
const services: RunningService[] = []
const [httpPort, mxPort, submissionPort] = [await freePort(), await freePort(), await freePort()]
const operatorPorts: Record<string, number> = {}
t.teardown(async () => {
  await Promise.all(services.map((service) => service.stop()))
  await cluster.stop()
  await Promise.all([zone.close(), mx.close(), receiver.close()])
  rmSync(dataDir, { recursive: true, force: true })
})

/** Starts a process of a role. In: the number of nodes in its settings. */
async function start(roles: string, seeds: number): Promise<void> {
  const operatorPort = await freePort()
  operatorPorts[roles] = operatorPort
  const config = configOf({
    REDIS_URL: cluster.seeds.slice(0, seeds).join(','),
    SECRET_KEY: FLEET_SECRET,
    DATA_DIR: dataDir,
    CONTENT_STORE: 'file',
    ROLES: roles,
    HTTP_PORT: String(httpPort),
    OPERATOR_PORT: String(operatorPort),
    MX_PORT: String(mxPort),
    SUBMISSION_PORT: String(submissionPort),
    SUBMISSION_TLS_PORT: '0',
    DNS_SERVERS: zone.server,
    DELIVERY_PORT: String(mx.port),
    PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8',
    SERVICE_DOMAIN: 'service.example',
    EDGE_RATE: '0',
    LOG_LEVEL: process.env.LOG_LEVEL ?? 'silent',
  })
  const smtp = { timeouts: TIMEOUTS, ca: receiver?.ca ?? '' }
  services.push(await startService(config, { print: () => undefined, smtp }))
}
await Promise.all([start('actors', 1), start('actors', 3), start('http', 3), start('mx', 1), start('submission', 2)])
const firstRunPath = join(dataDir, 'first-run.json')
await until(() => existsSync(firstRunPath), WAIT_MS)
const firstRun = JSON.parse(readFileSync(firstRunPath, 'utf8')) as FirstRun
await until(async () => (await readinessAt(operatorPorts.http ?? 0)) === 200, WAIT_MS)

// biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects.
type Json = any
const { account, liveServer, operatorToken } = firstRun

async function ask(
  what: string,
  { token = liveServer.token, body, port = httpPort }: { token?: string; body?: object; port?: number } = {},
): Promise<Json> {
  const [method = 'GET', path = '/'] = what.split(' ')
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', connection: 'close' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${what}: ${answer.status} ${text}`)
  return text === '' ? {} : JSON.parse(text)
}

const operate = (what: string, body?: object) =>
  ask(what.replace(' ', ' /v1/operator'), {
    token: operatorToken,
    port: operatorPorts.http ?? 0,
    ...(body !== undefined && { body }),
  })

const when = <Seen>(look: () => Promise<Seen>, isSo: (seen: Seen) => boolean): Promise<Seen> =>
  until(async () => {
    const seen = await look()
    return isSo(seen) ? seen : null
  }, WAIT_MS) as Promise<Seen>

/** A test server on each primary. */
const servers: { primary: string; token: string }[] = []
const primaryOf = async (shard: number) => (await cluster.primaryOf(SHARD_SLOTS[shard] ?? 0)).name
const mail = (to: string, more: object = {}) => ({
  from: `shop@${DOMAIN}`,
  to: [to],
  subject: 'Hello',
  text: 'Hi',
  ...more,
})

t.test('mail goes out by HTTP and SMTP, is announced to webhooks, searched and counted', async (t) => {
  zone.set('dest.example', { type: 'MX', exchange: 'mx.dest.example', priority: 10 })
  zone.set('mx.dest.example', { type: 'A', address: '127.0.0.1' })
  await raiseLimits(operatorPorts.http ?? 0, firstRun)
  await verifyDomain(httpPort, firstRun, { zone, domain: DOMAIN })
  await ask('POST /v1/webhooks', { body: { url: receiver?.url } })
  const large = Buffer.alloc(90_000, 'x').toString('base64')
  const attachments = [{ name: 'large.txt', content: large }]
  const { messageId } = await ask('POST /v1/email', { body: mail(PERSON, { tag: 'life', attachments }) })
  await when(
    () => ask(`GET /v1/messages/${messageId}`),
    ({ status }) => status === 'delivered',
  )
  await when(
    async () => receiver?.received.map(({ json }) => json.event) ?? [],
    (types) => types.includes('delivered'),
  )
  const dialog = await openSubmission(submissionPort, { password: liveServer.token })
  const raw = `From: shop@${DOMAIN}\nTo: ${PERSON}\nSubject: Raw\n\nHi\n`
  t.match(await submitMail(dialog, [PERSON], raw), /^250/)
  dialog.end()
  const { messages } = await when(
    () => ask('POST /v1/messages/search', { body: { recipient: PERSON } }),
    (found) => found.messages.length === 2 && found.messages.every(({ status }: Json) => status === 'delivered'),
  )
  t.ok(messages.some((one: Json) => one.messageId === messageId))
  const { stats } = await when(
    () => ask('GET /v1/stats'),
    (found) => found.stats.reduce((sum: number, { delivered }: Json) => sum + delivered, 0) === 2,
  )
  t.ok(stats.length > 0)
  const found = await when(
    () => ask('POST /v1/requests/search', { body: {} }),
    ({ requests }) => requests.length > 0,
  )
  t.ok(found.requests.length > 0)
})

t.test('mail comes in, and broadcasts are released', async (t) => {
  const { inboundAddress } = await ask('POST /v1/streams', { body: { kind: 'inbound', name: 'In' } })
  const text = `From: ${PERSON}\nTo: x@example.org\nSubject: About\n\nDear all\n`
  t.match(await deliverMail(mxPort, inboundAddress, text), /^250/)
  const { messages } = await when(
    () => ask('POST /v1/inbound/search', { body: {} }),
    (seen) => seen.messages.length === 1 && seen.messages[0].subject === 'About',
  )
  t.match(messages, [{ subject: 'About' }])
  const { streamId } = await ask('POST /v1/streams', { body: { kind: 'broadcast', name: 'News' } })
  const listed = [PERSON, 'a@dest.example', 'b@dest.example'].map((to) => ({ to, substitutions: { name: to } }))
  const { broadcastId } = await ask('POST /v1/broadcasts', {
    body: { streamId, from: `news@${DOMAIN}`, subject: 'Hi {{name}}', text: 'Dear {{name}}', messages: listed },
  })
  const done = await when(
    () => ask(`GET /v1/broadcasts/${broadcastId}`),
    ({ status }) => status === 'completed',
  )
  t.match(done, { total: 3, released: 3, failed: 0 })
})

t.test('the feed of another process than the announcing one gets the events', async () => {
  const stop = new AbortController()
  const headers = { authorization: `Bearer ${liveServer.token}` }
  const feed = await fetch(`http://127.0.0.1:${httpPort}/v1/events`, { headers, signal: stop.signal })
  let heard = ''
  const reading = (async () => {
    for await (const chunk of feed.body ?? []) heard += Buffer.from(chunk).toString()
  })().catch(() => undefined)
  const { messageId } = await ask('POST /v1/email', { body: mail('fay@dest.example') })
  await until(() => heard.includes(messageId) && heard.includes('"delivered"'), WAIT_MS)
  stop.abort()
  await reading
})

t.test('a start refuses what the cluster cannot promise', async (t) => {
  const config = configOf({
    REDIS_URL: cluster.seeds[0] ?? '',
    SECRET_KEY: FLEET_SECRET,
    DATA_DIR: dataDir,
    DURABILITY: 'replica',
    LOG_LEVEL: 'silent',
  })
  await t.rejects(startService(config), { name: 'StoreRefused', message: /two replicas of each primary: .* has 0/ })
})

t.test('people sign in at the dashboard', async (t) => {
  const browser = new Browser(`http://127.0.0.1:${httpPort}`)
  const token = Browser.tokenOf(firstRun.dashboardUrl)
  const body = { token, address: 'ada@example.net', name: 'Ada', password: PASSWORD }
  const made = await browser.call('POST /links/consume', body)
  t.equal(made.status, 200, made.text)
  t.equal((await browser.call('DELETE /session')).status, 204)
  const again = await browser.call('POST /session', { address: 'ada@example.net', password: PASSWORD })
  t.equal(again.status, 200, again.text)
  t.equal((await browser.call('GET /servers')).json.servers.length, 2)
})

t.test('operators see every Redis, and accounts are placed on all of them', async (t) => {
  const { redis, shards, workers } = await operate('GET /shards')
  t.equal(redis.length, 3)
  t.equal(
    redis.reduce((sum: number, one: Json) => sum + one.shards.length, 0),
    256,
  )
  t.ok(redis.every(({ isUp, role, clockOffMs }: Json) => isUp && role === 'primary' && Math.abs(clockOffMs) < 5_000))
  t.ok(shards.every(({ state }: Json) => state === 'owned'))
  t.equal(workers.length, 5)
  const { findings } = await operate('GET /health')
  const ofStore = findings.filter(({ name }: Json) => name === 'store' || name === 'clock')
  t.same(
    ofStore.filter(({ status }: Json) => status === 'failed'),
    [],
    JSON.stringify(ofStore),
  )
  t.match(
    ofStore.find(({ message }: Json) => /no maxmemory/.test(message)),
    { status: 'warning' },
  )
  const places = new Map<string, Json>()
  for (let n = 0; n < 12 && places.size < 3; n += 1) {
    const made = await operate('POST /accounts', {
      name: `Account ${n}`,
      administrators: ['ann@acme.example'],
      note: 'x',
    })
    const primary = await primaryOf(shardOf(made.accountId) ?? 0)
    if (places.has(primary)) continue
    places.set(primary, made)
    const key = await operate(`POST /accounts/${made.accountId}/tokens`, { name: 'Key', note: 'x' })
    const server = await ask('POST /v1/servers', { token: key.token, body: { name: 'Test', mode: 'test' } })
    servers.push({ primary, token: server.key.token })
  }
  t.equal(places.size, 3, 'a dozen accounts are enough to reach all')
  const listed = await operate('GET /accounts')
  t.ok(listed.accounts.length > places.size)
  t.ok((await operate('GET /audit')).entries.length >= places.size)
  await operate('GET /queue')
  const page = await fetch(`http://127.0.0.1:${operatorPorts.http}/metrics`).then((answer) => answer.text())
  t.equal(page.match(/^sendwright_redis_up\{redis="[^"]+"\} 1$/gm)?.length, 3)
  const monitoring = ['docs/operate/monitoring.md', 'docs/monitoring/alerts.yml', 'docs/monitoring/grafana.json']
  const named = monitoring.flatMap(
    (path) => readFileSync(join(ROOT, path), 'utf8').match(/sendwright_redis_\w+/g) ?? [],
  )
  const told = (name: string) => page.match(new RegExp(`^${name}\\{redis="[^"]+"\\} `, 'gm'))?.length
  for (const name of new Set(named)) t.equal(told(name), 3, name)
})

t.test('a person is erased from all of them', async (t) => {
  const seeker = new Seeker('quetzalcoatlus')
  const seek = async () => (await Promise.all(cluster.nodes.map(({ client }) => seekInRedis(client, seeker)))).flat()
  t.ok((await seek()).length > 0)
  const { erasureId } = await ask('POST /v1/erasures', { token: account.token, body: { address: PERSON } })
  const done = await when(
    () => ask(`GET /v1/erasures/${erasureId}`, { token: account.token }),
    ({ status }) => status === 'done',
  )
  t.match(done, { messages: 3, receivedMessages: 1 })
  const left = await when(seek, (keys) => keys.every((key) => /:(?:staged|told|replies)/.test(key)))
  t.same(
    left.filter((key) => !/:(?:staged|told|replies)/.test(key)),
    [],
  )
})

t.test(
  'while the Redis of operators and processes is unreachable the others are served, and status shows it',
  async (t) => {
    const command = async (...args: readonly string[]) => {
      const env = {
        PATH: process.env.PATH,
        DATA_DIR: dataDir,
        REDIS_URL: cluster.seeds.join(','),
        SECRET_KEY: FLEET_SECRET,
      }
      const child = spawnNode([MAIN, ...args], { env })
      const [out, [code]] = await Promise.all([text(child.stdout), once(child, 'close')])
      return { out, code: code as number }
    }
    const made = await command('operator-key', '--json')
    t.equal(made.code, 0, made.out)
    const { token } = JSON.parse(made.out) as { token: string }
    const url = `http://127.0.0.1:${operatorPorts.http}`
    const status = () => command('cluster', 'status', '--url', url, '--token', token)
    const before = await status()
    t.equal(before.code, 0, before.out)
    t.equal(before.out.match(/ primary +up +8\d|primary +up +9\d/g)?.length, 3, before.out)
    const gone = await cluster.primaryOf(COMMON_SLOT)
    t.equal(await primaryOf(0), gone.name, 'it has the keys of operators too')
    await gone.kill()
    await until(async () => (await status()).out.includes('AWAY'), WAIT_MS)
    t.equal((await status()).code, 1)
    await until(async () => (await readinessAt(operatorPorts.http ?? 0)) === 200, WAIT_MS)
    const asked = await Promise.all(
      servers.map(async ({ primary, token }) => {
        const body = { from: 'you@simulator.test', to: ['one@example.com'], subject: 's', text: 't' }
        const answer = await postEmail({ port: httpPort, token }, body, `key-${primary}`)
        return [primary === gone.name, answer?.status]
      }),
    )
    t.same(
      asked.filter(([isGone]) => !isGone).map(([, code]) => code),
      [200, 200],
    )
    await gone.start()
  },
)
