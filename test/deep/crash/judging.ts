/**
 * The process is ended with SIGKILL in a round of judging: after the commit of its claim and before that of its
 * outcome. The next process judges again; the result is stored once, and no second event follows.
 */
import { Redis } from 'ioredis'
import t from 'tap'
import { freePort } from '../../support/machine/port.ts'
import { until } from '../../support/machine/until.ts'
import { openDialog } from '../../support/peers/smtp-dialog.ts'
import { startZone } from '../../support/peers/zone.ts'
import { startScene } from '../../support/service/crash-scene.ts'
import { type Host, startHost } from '../../support/service/host.ts'
import type { CrashPoint } from '../../support/store/crash-shard.ts'

const WAIT_MS = 60_000
const POINTS: readonly CrashPoint[] = ['claim committed', 'outcome not committed']

t.jobs = 1
const zone = await startZone()
const scene = await startScene({
  CONTENT_STORE: 'file',
  MX_PORT: String(await freePort()),
  DNS_SERVERS: zone.server,
  PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8',
})
const { settings, firstRun } = scene
const redis = new Redis(scene.redis.socketPath)
let host: Host = scene.host
t.teardown(async () => {
  redis.disconnect()
  await host.kill('SIGKILL')
  await scene.end()
  await zone.close()
})

// biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects.
async function call(method: string, path: string, body?: object): Promise<any> {
  const headers = {
    authorization: `Bearer ${firstRun.liveServer.token}`,
    'content-type': 'application/json',
    connection: 'close',
  }
  const json = body === undefined ? {} : { body: JSON.stringify(body) }
  return (await fetch(`http://127.0.0.1:${settings.HTTP_PORT}${path}`, { method, headers, ...json })).json()
}

const stream = await call('POST', '/v1/streams', { kind: 'inbound', name: 'Mail' })
const hook = await call('POST', '/v1/webhooks', { url: 'https://127.0.0.1:9/', events: ['inbound'] })

async function deliver(domain: string): Promise<string> {
  const dialog = await openDialog(Number(settings.MX_PORT))
  for (const line of ['EHLO [127.0.0.1]', `MAIL FROM:<a@${domain}>`, `RCPT TO:<${stream.inboundAddress}>`, 'DATA'])
    await dialog.say(line)
  dialog.write(`From: a@${domain}\r\n\r\nx\r\n`)
  const reply = await dialog.say('.')
  dialog.end()
  return /accepted ([0-9a-f-]{36})/.exec(reply)?.[1] ?? reply
}

const authenticationOf = async (id: string) => (await call('GET', `/v1/inbound/${id}`)).authentication
const judgedSince = (id: string, before: string | null) =>
  until(async () => {
    const told = await authenticationOf(id)
    return told.checkedAt === before ? null : told
  }, WAIT_MS)

/** Makes the round due while it has no owner. */
async function makeDue(): Promise<void> {
  for (const lane of await redis.keys('*:due:judge/*')) {
    for (const item of await redis.zrange(lane, 0, -1)) await redis.zadd(lane, 1, item)
    await redis.zadd(lane.replace(/:judge.*$/, ''), 1, lane.replace(/^.*:due:/, ''))
  }
}

for (const [number, point] of POINTS.entries())
  t.test(
    `crash: killed in a round of judging, ${point}, it is made again [inbound.authentication.rounds]`,
    async (t) => {
      const domain = `c${number}.test`
      zone.fail(domain, 'servfail')
      zone.set(`_dmarc.${domain}`, { type: 'TXT', data: 'v=DMARC1; p=reject' })
      const id = await deliver(domain)
      const first = await judgedSince(id, null)
      t.match(first, { spf: 'temperror', dmarc: 'temperror' })
      await host.kill('SIGKILL')
      await makeDue()
      zone.set(domain, { type: 'TXT', data: 'v=spf1 ip4:127.0.0.1 -all' })
      host = await startHost(settings, { point, ready: false })
      await host.exited
      host = await startHost(settings)
      t.match(await judgedSince(id, first.checkedAt), { spf: 'pass', dmarc: 'pass', dmarcPolicy: null })
      const { deliveries } = await call('GET', `/v1/webhooks/${hook.webhookId}/deliveries`)
      const own = deliveries.filter((one: { inboundMessageId: string }) => one.inboundMessageId === id)
      t.equal(own.length, 1, 'one event')
      t.same(await redis.keys('*:due:judge/*'), [], 'no round is left')
    },
  )
