/** webhook-ports - enabled webhooks on ports that deliveries may not connect to, and the bounds of the scan. */
import t from 'tap'
import type { Health } from '../../../schemas/operator/health.ts'
import { examineWebhookPorts } from '../../../src/health/webhook-ports.ts'
import { accountsKey } from '../../../src/state/keys.ts'
import { startTestService } from '../../support/service/service.ts'
import { World } from '../../support/world/turn.ts'
import { readerOf } from '../../support/world/world-reader.ts'

const SHARDS_USED = [0, 7, 255]

t.test('health: enabled webhooks on refused ports are named, others are not [operator.health]', async (t) => {
  const service = await startTestService({ WEBHOOK_PORTS: '993' })
  t.teardown(() => service.stop())
  const { operatorToken, testServer, liveServer } = service.firstRun
  const create = async (token: string, url: string) =>
    (await service.call('POST /v1/webhooks', { token, body: { url } })).json.webhookId as string
  const findingOf = async () => {
    const { findings } = (await service.operate('GET /v1/operator/health', { token: operatorToken })).json as Health
    return findings.find(({ name }) => name === 'webhook-ports')
  }
  for (const port of ['', ':443', ':993', ':1024', ':8443'])
    await create(testServer.token, `https://hooks.acme.com${port}/`)
  t.match(await findingOf(), { status: 'ok', fix: null })
  const first = await create(testServer.token, 'https://hooks.acme.com:25/secret-path')
  const second = await create(liveServer.token, 'https://hooks.acme.com:587/')
  const found = await findingOf()
  t.match(found, { status: 'warning', fix: /WEBHOOK_PORTS=25,587,993$/ })
  for (const one of [`${first} (port 25)`, `${second} (port 587)`]) t.ok(found?.message.includes(one), one)
  t.notMatch(found?.message, /secret-path|acme\.com/, 'a URL may hold a secret')
  await service.call(`POST /v1/webhooks/${first}/disable`, { token: testServer.token })
  await service.call(`DELETE /v1/webhooks/${second}`, { token: liveServer.token })
  t.match(await findingOf(), { status: 'ok' })
})

/** A key space with webhooks on port 25 in several shards. In: accounts of a shard, webhooks of an account. */
function fill(accounts: number, webhooks: number) {
  const world = new World(Date.UTC(2026, 10, 20))
  for (const shard of SHARDS_USED) {
    const scores = new Map<string, number>()
    for (let n = 0; n < accounts; n += 1) {
      const accountId = `account-${shard}-${n}`
      const serverId = `server-${shard}-${n}`
      scores.set(accountId, n)
      world.states.set(`account:${accountId}`, { webhookServers: [{ serverId, mode: 'live' }] } as never)
      const ids = Array.from({ length: webhooks }, (_, at) => `webhook-${shard}-${n}-${at}`)
      world.states.set(`webhooks:${serverId}`, ids.map((webhookId) => ({ webhookId, enabled: true })) as never)
      for (const webhookId of ids)
        world.states.set(`webhook:${webhookId}`, { webhookId, url: 'https://a.example:25/' } as never)
    }
    world.keys.set(accountsKey(shard), { type: 'sorted', scores })
  }
  return readerOf(world)
}

t.test('health: the scan of webhooks is bounded, and says if it was cut [operator.health]', async (t) => {
  const all = SHARDS_USED.length * 250 * 2
  const whole = fill(250, 2)
  const found = await examineWebhookPorts(whole.read, [])
  t.match(found, { status: 'warning', message: /and 1490 more$/ })
  t.equal(found.message.match(/\(port 25\)/g)?.length, 10)
  t.equal((await examineWebhookPorts(fill(250, 2).read, [25])).status, 'ok')
  for (const [bounds, seen] of [
    [{ webhooksMax: 700 }, 700],
    [{ accountsMax: 300 }, 600],
    [{ webhooksMax: all }, null],
    [{ accountsMax: all / 2 }, null],
  ] as const) {
    const { message } = await examineWebhookPorts(fill(250, 2).read, [], bounds)
    if (seen === null) t.notMatch(message, /at its limit/, 'a bound that is just held cuts nothing')
    else t.match(message, new RegExp(`The scan ended at its limit, after ${seen} webhooks$`))
  }
  let nowMs = 0
  const late = fill(250, 2)
  const { message } = await examineWebhookPorts(late.read, [], { endsAtMs: 3, nowMs: () => nowMs++ })
  t.match(message, /at its limit/)
  t.ok(late.reads < whole.reads / 2, 'its time ends it as well')
})
