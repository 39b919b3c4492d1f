/**
 * feed - the cost of subscribers to a server's events: events a second with no feed, one, and the maximum number; the
 * latency from an event to a subscriber; and the replay of all kept events for a feed that was cut off
 *
 * Events are those of a test server. A missing or duplicate event, or one out of the order of its id, fails the run.
 */

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { FEED_EVENTS_KEPT, SERVER_FEEDS_MAX } from '../../schemas/limits.ts'
import { until } from '../../test/support/machine/until.ts'
import { startHost } from '../../test/support/service/host.ts'
import { freePort } from '../free-port.ts'
import { startStore } from '../store.ts'
import { formatNumber, formatTable, median } from '../table.ts'
import { shareOfCore } from '../usage.ts'

const WAIT_MS_MAX = 300_000
const BATCH = 50
const STEADY_RATE = 100
/**
 * The bars: the share of the rate without a feed that remains with one; ms from an event to a subscriber; seconds for
 * all kept events.
 */
const BARS = { share: 0.5, p99Ms: 500, resumeSeconds: 20 }

interface Rig {
  readonly pids: readonly number[]
  readonly send: (count: number) => Promise<void>
  readonly isSettled: () => Promise<boolean>
  readonly listen: (lastId?: string) => Promise<Ears>
  stop(): Promise<void>
}

/** An open feed, and the events that it has received. */
interface Ears {
  readonly count: () => number
  readonly firstId: () => string
  readonly latenciesMs: number[]
  /** Throws if the ids were not ascending. */
  stop(): void
}

/** Runs the loads and prints them. Throws Error if an event was not received. */
export async function benchFeed({ seconds, events }: { seconds: number; events: number }): Promise<void> {
  const rig = await openRig()
  try {
    await burst(rig, { events, feeds: 0 })
    const rows = [['load', 'figure', 'bar', 'processor: service, Redis (share of a core)']]
    const rates: number[] = []
    for (const feeds of [0, 1, SERVER_FEEDS_MAX]) {
      const { perSecond, shares } = await burst(rig, { events, feeds })
      rates.push(perSecond)
      const share = perSecond / (rates[0] ?? perSecond)
      const bar =
        feeds === 1 ? `${BARS.share} of the first: ${formatNumber(share, 2)} ${verdict(share >= BARS.share)}` : ''
      rows.push([`${formatNumber(events)} events, ${feeds} feeds`, `${formatNumber(perSecond)} events/s`, bar, shares])
    }
    const { p50, p99 } = await steady(rig, seconds)
    const figure = `p50 ${formatNumber(p50)} ms, p99 ${formatNumber(p99)} ms`
    rows.push([
      `${STEADY_RATE} events a second, heard after`,
      figure,
      `${BARS.p99Ms} ms ${verdict(p99 <= BARS.p99Ms)}`,
      '',
    ])
    const again = await resume(rig)
    const bar = `${BARS.resumeSeconds} s ${verdict(again <= BARS.resumeSeconds)}`
    rows.push([`${formatNumber(FEED_EVENTS_KEPT)} events again, after a cut`, `${formatNumber(again, 1)} s`, bar, ''])
    console.log(formatTable(rows))
  } finally {
    await rig.stop()
  }
}

function verdict(isHeld: boolean): string {
  return isHeld ? 'held' : 'MISSED'
}

/** Events at the maximum rate, until each is committed and every feed has received it. */
async function burst(rig: Rig, { events, feeds }: { events: number; feeds: number }) {
  const ears = await Promise.all(Array.from({ length: feeds }, () => rig.listen()))
  const startedAtMs = performance.now()
  const { percents } = await shareOfCore([...rig.pids], async () => {
    await rig.send(events)
    await until(async () => (await rig.isSettled()) && ears.every((one) => one.count() >= events), WAIT_MS_MAX)
  })
  const perSecond = (events / (performance.now() - startedAtMs)) * 1000
  for (const one of ears) {
    one.stop()
    if (one.count() !== events) throw new Error(`${one.count()} of ${events} events were heard`)
  }
  return { perSecond, shares: `${percents.map((share) => formatNumber(share)).join(', ')} %` }
}

/** One message after the other at an even rate. Out: ms from each event to its arrival. */
async function steady(rig: Rig, seconds: number): Promise<{ p50: number; p99: number }> {
  const ears = await rig.listen()
  const startMs = Date.now()
  const events = seconds * STEADY_RATE
  for (let sent = 0; sent < events; sent += 1) {
    const dueMs = startMs + (sent * 1000) / STEADY_RATE
    if (dueMs > Date.now()) await pause(dueMs - Date.now())
    await rig.send(1)
  }
  await until(() => ears.count() === events, WAIT_MS_MAX)
  ears.stop()
  const sorted = [...ears.latenciesMs].sort((one, other) => one - other)
  return { p50: median(sorted), p99: sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN }
}

/** A feed that was cut off continues after its first event, with all later kept ones. Out: seconds. */
async function resume(rig: Rig): Promise<number> {
  const before = await rig.listen()
  await rig.send(1)
  await until(() => before.count() === 1, WAIT_MS_MAX)
  before.stop()
  await rig.send(FEED_EVENTS_KEPT - 1)
  await until(rig.isSettled, WAIT_MS_MAX)
  const startedAtMs = performance.now()
  const after = await rig.listen(before.firstId())
  await until(() => after.count() === FEED_EVENTS_KEPT - 1, WAIT_MS_MAX)
  after.stop()
  return (performance.now() - startedAtMs) / 1000
}

async function openRig(): Promise<Rig> {
  const dir = mkdtempSync(join(tmpdir(), 'sendwright-bench-'))
  const store = await startStore()
  const [port, operatorPort] = [await freePort(), await freePort()]
  const host = await startHost({
    REDIS_URL: `unix://${store.socketPath}`,
    SECRET_KEY: 'a secret of the benchmark, long enough',
    DATA_DIR: dir,
    HTTP_PORT: String(port),
    OPERATOR_PORT: String(operatorPort),
    MX_PORT: '0',
    SUBMISSION_PORT: '0',
    SUBMISSION_TLS_PORT: '0',
    EDGE_RATE: '0',
    LOG_LEVEL: 'error',
  })
  await until(() => existsSync(join(dir, 'first-run.json')), WAIT_MS_MAX)
  const { account, operatorToken, testServer } = JSON.parse(readFileSync(join(dir, 'first-run.json'), 'utf8'))
  const say = async (url: string, method: string, { token, body }: { token: string; body: object }) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const answer = await fetch(url, { method, headers, body: JSON.stringify(body) })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${url}: ${answer.status} ${text}`)
  }
  const most = { testPerMinuteLimit: 1_000_000_000, testMonthlyCap: 1_000_000_000 }
  const accountUrl = `http://127.0.0.1:${operatorPort}/v1/operator/accounts/${account.accountId}`
  await say(accountUrl, 'PATCH', { token: operatorToken, body: most })
  return {
    pids: [host.pid, store.pid],
    async send(count) {
      for (let left = count; left > 0; left -= BATCH) {
        const to = Array.from({ length: Math.min(left, BATCH) }, (_, n) => `ada+${left}-${n}@simulator.test`)
        const body = { from: 'shop@simulator.test', to, subject: 'Order', text: 'Hello' }
        await say(`http://127.0.0.1:${port}/v1/email`, 'POST', { token: testServer.token, body })
      }
    },
    isSettled: async () => (await store.client.zcard('{s000}:due:simulate')) === 0,
    listen: (lastId) => openFeed({ port, token: testServer.token, lastId }),
    async stop() {
      await host.kill('SIGTERM')
      await store.stop()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** Opens a feed. Resolves once it receives events; rejects if it is refused. */
function openFeed({ port, token, lastId }: { port: number; token: string; lastId: string | undefined }): Promise<Ears> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, ...(lastId !== undefined && { 'last-event-id': lastId }) }
    const asked = request({ host: '127.0.0.1', port, path: '/v1/events', headers, agent: false })
    asked.once('error', reject)
    asked.once('response', (answer) => {
      if (answer.statusCode !== 200) reject(new Error(`A feed was answered ${answer.statusCode}`))
      else resolve(readFeed(answer))
    })
    asked.end()
  })
}

function readFeed(answer: IncomingMessage): Ears {
  const ids: string[] = []
  const latenciesMs: number[] = []
  let rest = ''
  let wrong: string | null = null
  answer.setEncoding('utf8')
  answer.on('error', () => undefined)
  answer.on('data', (piece: string) => {
    const blocks = (rest + piece).split('\n\n')
    rest = blocks.pop() ?? ''
    const atMs = Date.now()
    for (const block of blocks) {
      const [, id = '', occurredAt = ''] = /^id: (\S+)\n.*"occurredAt":"([^"]+)"/.exec(block) ?? []
      if (id === '') continue
      if (!isAfter(id, ids.at(-1) ?? '0-0')) wrong = `${id} came after ${ids.at(-1)}`
      ids.push(id)
      latenciesMs.push(atMs - Date.parse(occurredAt))
    }
  })
  return {
    count: () => ids.length,
    firstId: () => ids[0] ?? '',
    latenciesMs,
    stop() {
      answer.destroy()
      if (wrong !== null) throw new Error(wrong)
    },
  }
}

function isAfter(id: string, other: string): boolean {
  const [ms = 0n, n = 0n] = id.split('-').map(BigInt)
  const [otherMs = 0n, otherN = 0n] = other.split('-').map(BigInt)
  return ms > otherMs || (ms === otherMs && n > otherN)
}
