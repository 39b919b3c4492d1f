/**
 * webhooks - signed posts a second, each outcome committed; and first attempts of a receiver that answers, beside a
 * thousand that hang
 *
 * The events are those of a test server; each message makes one, which every webhook gets. The receiver is a separate
 * process on the loopback, over TLS. A delivery that does not come, is not committed as delivered, or is attempted
 * before one whose event was earlier, fails the run.
 */

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { withoutSum } from '../../cluster/sum.ts'
import { until } from '../../test/support/machine/until.ts'
import { makeSelfSigned } from '../../test/support/peers/self-signed.ts'
import { startHost } from '../../test/support/service/host.ts'
import { freePort } from '../free-port.ts'
import type { Report } from '../load/webhook-receiver.ts'
import { startStore } from '../store.ts'
import { formatNumber, formatTable, median } from '../table.ts'
import { shareOfCore } from '../usage.ts'

const WEBHOOKS = 100
const SEQUENTIAL_EVENTS = 2_000
const HANGING = 1_000
const HEALTHY_RATE = 20
const WAIT_MS_MAX = 120_000
const BATCH = 50
/** The bars: posts a second over all webhooks, and of one; ms at the 99th percentile beside those that hang. */
const BARS = { all: 2_000, one: 300, p99Ms: 2_000 }

export interface WebhooksOrder {
  /** Length of the load beside receivers that hang. */
  readonly seconds: number
  /** Posts of the burst. */
  readonly posts: number
  /** Which of the loads: `all`, `one`, `beside`. */
  readonly only: readonly string[]
}

interface Rig {
  readonly pids: readonly number[]
  readonly hook: (path: string, events?: readonly string[]) => Promise<string>
  readonly remove: (webhookId: string) => Promise<void>
  readonly send: (count: number, localPart?: string) => Promise<void>
  readonly report: (kind: string) => Promise<Report>
  readonly isSettled: (webhookIds: readonly string[]) => Promise<boolean>
  stop(): Promise<void>
}

/** Runs the loads and prints them. Throws Error when a delivery is missing. */
export async function benchWebhooks({ seconds, posts, only }: WebhooksOrder): Promise<void> {
  const loads: Record<string, (rig: Rig) => Promise<string[]>> = {
    all: (rig) => burstRow(rig, { webhooks: WEBHOOKS, events: Math.ceil(posts / WEBHOOKS), kind: 'fast' }, BARS.all),
    one: (rig) => burstRow(rig, { webhooks: 1, events: SEQUENTIAL_EVENTS, kind: 'slow' }, BARS.one),
    beside: (rig) => besideRow(rig, seconds),
  }
  const wrong = only.find((name) => loads[name] === undefined)
  if (wrong !== undefined) throw new Error(`--only takes ${Object.keys(loads).join(', ')} (is ${wrong})`)
  const rows = [['load', 'figure', 'bar', 'processor: service, Redis (share of a core)']]
  const rig = await openRig()
  try {
    for (const name of only) rows.push(await (loads[name] as (rig: Rig) => Promise<string[]>)(rig))
    console.log(formatTable(rows))
  } finally {
    await rig.stop()
  }
}

async function burstRow(rig: Rig, load: BurstLoad, least: number): Promise<string[]> {
  const { perSecond, shares } = await burst(rig, load)
  const name = load.kind === 'fast' ? 'receiver answers at once' : 'receiver answers in 1 ms'
  const figure = `${formatNumber(perSecond)} posts/s`
  return [`${load.webhooks} webhooks, ${name}`, figure, `${least} ${perSecond >= least ? 'held' : 'MISSED'}`, shares]
}

async function besideRow(rig: Rig, seconds: number): Promise<string[]> {
  const { p50, p99 } = await besideHanging(rig, seconds)
  const figure = `p50 ${formatNumber(p50)} ms, p99 ${formatNumber(p99)} ms`
  const bar = `${BARS.p99Ms} ms ${p99 <= BARS.p99Ms ? 'held' : 'MISSED'}`
  return [`first attempts beside ${HANGING} that hang`, figure, bar, '']
}

interface BurstLoad {
  readonly webhooks: number
  readonly events: number
  readonly kind: 'fast' | 'slow'
}

/** Events for some webhooks, as fast as they go: posts a second from the first to the last. */
async function burst(rig: Rig, { webhooks, events, kind }: BurstLoad): Promise<{ perSecond: number; shares: string }> {
  const ids: string[] = []
  for (let n = 0; n < webhooks; n += 1) ids.push(await rig.hook(`/${kind}/${n}`))
  await rig.send(2)
  await until(() => rig.isSettled(ids), WAIT_MS_MAX)
  await rig.report(kind)
  const { percents } = await shareOfCore([...rig.pids], async () => {
    await rig.send(events)
    await until(() => rig.isSettled(ids), WAIT_MS_MAX)
  })
  const { posts, deliveries, firstAtMs, lastAtMs, outOfOrder } = await rig.report(kind)
  if (deliveries !== webhooks * events) throw new Error(`${deliveries} of ${webhooks * events} deliveries came`)
  if (outOfOrder > 0) throw new Error(`${outOfOrder} first attempts were not in the order of their events`)
  for (const id of ids) await rig.remove(id)
  const shares = percents.map((share) => formatNumber(share)).join(', ')
  return { perSecond: (posts / (lastAtMs - firstAtMs)) * 1000, shares: `${shares} %` }
}

/** A healthy webhook under a steady load while a thousand others hang, each for ten seconds, again and again. */
async function besideHanging(rig: Rig, seconds: number): Promise<{ p50: number; p99: number }> {
  const healthy = await rig.hook('/fast/healthy', ['delivered'])
  // It is healthy once it has answered.
  await rig.send(1)
  await until(() => rig.isSettled([healthy]), WAIT_MS_MAX)
  await rig.report('fast')
  for (let n = 0; n < HANGING; n += 1) await rig.hook(`/hang/${n}`, ['bounced'])
  const endsAtMs = Date.now() + seconds * 1000
  let sent = 0
  for (let round = 0; Date.now() < endsAtMs; round += 1) {
    if (round % HEALTHY_RATE === 0) await rig.send(1, 'bounce')
    await rig.send(1)
    sent += 1
    const nextAtMs = endsAtMs - seconds * 1000 + (sent * 1000) / HEALTHY_RATE
    if (nextAtMs > Date.now()) await new Promise((resolve) => setTimeout(resolve, nextAtMs - Date.now()))
  }
  await until(() => rig.isSettled([healthy]), WAIT_MS_MAX)
  const { latenciesMs, deliveries } = await rig.report('fast')
  const { posts: hanging } = await rig.report('hang')
  if (deliveries !== sent) throw new Error(`${deliveries} of ${sent} deliveries came`)
  if (hanging < HANGING) throw new Error(`Only ${hanging} attempts hung`)
  const sorted = [...latenciesMs].sort((one, other) => one - other)
  return { p50: median(sorted), p99: sorted[Math.floor(sorted.length * 0.99)] ?? 0 }
}

async function openRig(): Promise<Rig> {
  const dir = mkdtempSync(join(tmpdir(), 'sendwright-bench-'))
  const { receiver, port: receiverPort } = await startReceiver(dir)
  const store = await startStore()
  const ports = { http: await freePort(), operator: await freePort() }
  const host = await startHost(settingsOf(dir, store.socketPath, ports))
  await until(() => existsSync(join(dir, 'first-run.json')), WAIT_MS_MAX)
  const first = JSON.parse(readFileSync(join(dir, 'first-run.json'), 'utf8'))
  const most = 1_000_000_000
  await call(ports.operator, `PATCH /v1/operator/accounts/${first.account.accountId}`, {
    token: first.operatorToken,
    body: { testPerMinuteLimit: most, testMonthlyCap: most },
  })
  const { token } = first.testServer
  return {
    pids: [host.pid, store.pid],
    async hook(path, events) {
      const body = { url: `https://localhost:${receiverPort}${path}`, ...(events !== undefined && { events }) }
      return (await call(ports.http, 'POST /v1/webhooks', { token, body })).webhookId
    },
    remove: (webhookId) => call(ports.http, `DELETE /v1/webhooks/${webhookId}`, { token }),
    async send(count, localPart = 'delivered') {
      for (let left = count; left > 0; left -= BATCH) {
        const to = Array.from({ length: Math.min(left, BATCH) }, (_, n) => `${localPart}+${left}-${n}@simulator.test`)
        const body = { from: 'shop@simulator.test', to, subject: 'Order', text: 'Hello' }
        await call(ports.http, 'POST /v1/email', { token, body })
      }
    },
    report: (kind) => askReceiver(receiver, kind),
    isSettled: (webhookIds) => isSettled(store, webhookIds),
    async stop() {
      await host.kill('SIGTERM')
      receiver.kill()
      await store.stop()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** The receiver, with its own certificate in `dir`. */
async function startReceiver(dir: string): Promise<{ receiver: ChildProcess; port: number }> {
  const pair = makeSelfSigned()
  if (pair === null) throw new Error('openssl is not installed')
  for (const [name, text] of Object.entries(pair)) writeFileSync(join(dir, name), text, { mode: 0o600 })
  const script = fileURLToPath(new URL('../load/webhook-receiver.js', import.meta.url))
  const receiver = fork(script, [join(dir, 'key'), join(dir, 'cert')])
  const [{ port }] = (await once(receiver, 'message')) as [{ port: number }]
  return { receiver, port }
}

function settingsOf(dir: string, socketPath: string, { http, operator }: { http: number; operator: number }) {
  return {
    REDIS_URL: `unix://${socketPath}`,
    SECRET_KEY: 'a secret of the benchmark, long enough',
    DATA_DIR: dir,
    HTTP_PORT: String(http),
    OPERATOR_PORT: String(operator),
    MX_PORT: '0',
    SUBMISSION_PORT: '0',
    SUBMISSION_TLS_PORT: '0',
    EDGE_RATE: '0',
    LOG_LEVEL: 'error',
    PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8',
    NODE_EXTRA_CA_CERTS: join(dir, 'cert'),
  }
}

async function call(port: number, what: string, { token, body }: { token: string; body?: object }) {
  const [method, path] = what.split(' ') as [string, string]
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const said = body === undefined ? {} : { body: JSON.stringify(body) }
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers, ...said })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${what}: ${answer.status} ${text}`)
  return text === '' ? {} : JSON.parse(text)
}

/** Whether all deliveries to the webhooks have ended. */
async function isSettled(
  { client }: Awaited<ReturnType<typeof startStore>>,
  webhookIds: readonly string[],
): Promise<boolean> {
  // The source of deliveries is read before the pending ones; in the other order an item in between would be missed.
  const messages = await client.zcard('{s000}:due:simulate')
  const counters = await client.hgetall('{s000}:counters')
  const owned = webhookIds.map((id) => counters[`webhook:${id}`] ?? '{"pending":0}')
  return (
    messages === 0 &&
    owned.every((text) => (JSON.parse(withoutSum(text, 'counters')) as { pending: number }).pending === 0)
  )
}

async function askReceiver(receiver: ChildProcess, kind: string): Promise<Report> {
  const answered = once(receiver, 'message')
  receiver.send(kind)
  const [report] = (await answered) as [Report]
  return report
}
