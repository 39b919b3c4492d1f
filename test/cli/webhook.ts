/** webhook - `sendwright webhook create|list|deliveries|replay` against a real service and a real receiver. */
import { Redis } from 'ioredis'
import t from 'tap'
import { entryIdOf, makeIds, shardOf, shortId } from '../../cluster/id.ts'
import { deliveryKey, queueKey, slicesKey } from '../../src/state/keys.ts'
import { formatItem, QUEUE_FIELD } from '../../src/state/webhook/item.ts'
import { until } from '../support/machine/until.ts'
import { isSigned, startReceiver } from '../support/peers/receiver.ts'
import { startCommandLine } from '../support/service/command-line.ts'
import { startTestService } from '../support/service/service.ts'

const WAIT_MS = 20_000
/** Deliveries: more than one page looks at. */
const PAST_A_LOOK = 5_200
const receiver = await startReceiver()
if (receiver === null) {
  t.pass('openssl is not installed: skipped')
  process.exit(0)
}
const service = await startTestService({ PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8' }, { smtp: { ca: receiver.ca } })
const commands = await startCommandLine()
t.teardown(async () => {
  commands.stop()
  await service.stop()
  await receiver.close()
})
const environment = { DATA_DIR: service.dataDir, HTTP_PORT: String(service.config.httpPort) }
const run = (...args: string[]) => commands.run(['webhook', ...args], environment)
const url = `${receiver.url}/hook`

async function runJson(...args: string[]) {
  const { out, err, code } = await run(...args, '--json')
  t.equal(code, 0, err)
  return JSON.parse(out)
}

t.test('webhook: created, listed, its deliveries read and replayed [webhook.create, webhook.replay]', async (t) => {
  const made = await run('create', url, '--event', 'bounced', '--event', 'delivered')
  t.equal(made.code, 0, made.err)
  const [, id = ''] = /\(([0-9a-f-]{36})\) for bounced, delivered$/m.exec(made.out) ?? []
  const [, secret = ''] = /secret, shown this once: (whsec_\S+)$/m.exec(made.out) ?? []
  t.match(await run('create', url), { code: 1, err: 'webhook_exists' })
  const list = await run('list')
  t.match(list.out, /^URL +ENABLED +EVENTS +ID$/m)
  t.match(list.out, new RegExp(`^${url} +yes +bounced,delivered +${id}$`, 'm'))
  t.match(await runJson('list'), { webhooks: [{ webhookId: id, url }] })

  receiver.react((_request, response) => {
    response.statusCode = 500
    response.end()
  })
  const body = { from: 'shop@simulator.test', to: ['bounce@simulator.test'], subject: 'Order', text: 'Hello' }
  t.equal((await service.call('POST /v1/email', { token: service.firstRun.testServer.token, body })).status, 200)
  const failed = await until(async () => {
    const { deliveries } = await runJson('deliveries', url)
    return deliveries[0]?.attempts === 1 ? deliveries[0] : null
  }, WAIT_MS)
  t.match(failed, { event: 'bounced', status: 'pending', lastError: 'http_500' })
  t.match((await run('deliveries', id)).out, new RegExp(`bounced +pending +1 +http_500 +${failed.deliveryId}$`, 'm'))
  t.same((await runJson('deliveries', url, '--status', 'dead')).deliveries, [])

  receiver.react(null)
  const replayed = await run('replay', url, failed.deliveryId)
  t.match(replayed, { code: 0, out: `Queued ${failed.deliveryId} again, after 1 attempts\n` })
  await until(() => receiver.received.length === 2, WAIT_MS)
  const [first, second] = receiver.received
  t.same([second?.json.id, second?.json.attempt], [first?.json.id, 2])
  for (const one of receiver.received) t.ok(isSigned(one, secret))
  t.match(await runJson('replay', url, '--since', '2026-01-01'), { queued: 0 })
  for (const day of ['2026-02-30', '2026-02-30T00:00:00Z', '2026-02-28T24:00:00', 'soon'])
    t.match(await run('replay', url, '--since', day), { code: 2, err: 'Expected a date-time' }, day)
})

t.test('webhook: what is asked for is found behind thousands of others [webhook.deliveries]', async (t) => {
  const token = service.firstRun.testServer.token
  const call = (what: string, body?: object) => service.call(what, { token, ...(body !== undefined && { body }) })
  const { webhookId } = (await call('POST /v1/webhooks', { url: `${receiver.url}/many`, events: ['delivered'] })).json
  const path = `/v1/webhooks/${webhookId}`
  receiver.react((_request, response) => void response.writeHead(500).end())
  for (let n = 0; n < 2; n += 1) await call(`POST ${path}/test`, { event: 'bounced' })
  await call(`POST ${path}/disable`)
  const dead = async () => (await call(`GET ${path}/deliveries?status=dead`)).json.deliveries
  const old = await until(async () => ((await dead()).length === 2 ? dead() : null), WAIT_MS)
  // Thousands that are younger, put where the service looks for them.
  const shard = shardOf(webhookId) as number
  const redis = new Redis({ path: service.redis.socketPath })
  t.teardown(() => redis.disconnect())
  const slice = (await redis.zrange(slicesKey(shard, webhookId), 0, -1)).at(-1) as string
  const ids = makeIds({ shard, last: '', random: Math.random })
  const pipeline = redis.pipeline()
  for (let n = 0; n < PAST_A_LOOK; n += 1) {
    const deliveryId = ids.next(Date.now() + 1)
    const reference = { kind: 'example', event: 'bounced', madeUpId: deliveryId } as const
    const item = formatItem({ deliveryId, slice, reference })
    pipeline.xadd(queueKey(shard, webhookId, slice), entryIdOf(deliveryId), QUEUE_FIELD, item)
    const row = JSON.stringify(['v', 1])
    pipeline.hset(deliveryKey(shard, webhookId, slice), shortId(deliveryId), row)
  }
  await pipeline.exec()
  const page = (await call(`GET ${path}/deliveries?status=dead`)).json
  t.same([page.deliveries, typeof page.next], [[], 'string'], 'they are not on the first page')
  const found = await runJson('deliveries', webhookId, '--status', 'dead')
  t.same(
    found.deliveries.map(({ deliveryId }: { deliveryId: string }) => deliveryId),
    old.map(({ deliveryId }: { deliveryId: string }) => deliveryId),
  )
  t.equal((await runJson('deliveries', webhookId, '--status', 'dead', '--limit', '1')).deliveries.length, 1)
  t.equal((await call(`DELETE ${path}`)).status, 204)
  receiver.react(null)
})

t.test('webhook: what cannot be done is said, with exit code 1', async (t) => {
  t.match(await run('deliveries', 'https://nowhere.example/'), { code: 1, err: 'No webhook https://nowhere.example/' })
  t.match(await run('replay', url), { code: 1, err: 'Give a delivery id, or --since' })
  t.match(await run('create', 'http://example.com/'), { code: 1, err: /url/i })
})
