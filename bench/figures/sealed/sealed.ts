/**
 * sealed - the Redis memory and disk use of a message in a sealed segment, and the service's processor time for
 * sealing, reading and searching
 */

import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Redis } from 'ioredis'
import { unpackSealed } from '../../../src/state/message/sealed.ts'
import { makeMovedClock } from '../../../test/support/machine/moved-clock.ts'
import { until } from '../../../test/support/machine/until.ts'
import { startTestService, type TestService } from '../../../test/support/service/service.ts'
import { measureFamilies, readInfo } from '../../store.ts'
import { formatNumber, formatTable } from '../../table.ts'

const BATCH = 100
const BATCHES_AT_ONCE = 8
/** Messages that each address gets. */
const EACH = 10
const WAIT_MS = 900_000
const DAYS = 6
const READS = 300
const IDLE_MS = 3_000
/** Share of a processor below which the service counts as idle, and the windows that it is waited for. */
const IDLE_SHARE = 0.05
const IDLE_WINDOWS = 20
const SEARCHES = 100
/** Families of keys that hold a message of the log, sealed or not. */
const LOG_FAMILIES = [
  'log',
  'head',
  'status',
  'segments',
  'by-person',
  'by-tag',
  'sealed',
  'sealed-persons',
  'recalled',
]
const TARGETS = { resident: 1.5, disk: 65, sealMicros: 25, readMs: 2, searchMs: 30 }

/** Sends, seals, reads and searches; prints a table. Throws Error if a message is missing. */
export async function benchSealed(messages: number): Promise<void> {
  const clock = makeMovedClock()
  const service = await clock.around(() => startTestService({ CONTENT_STORE: 'file', HOT_DAYS: '4' }))
  const { Redis: Client } = await import('ioredis')
  const redis = new Client({ path: service.redis.socketPath })
  try {
    const { accountId } = service.firstRun.account
    const limits = { testPerMinuteLimit: 1_000_000, testMonthlyCap: 10_000_000 }
    await service.operate(`PATCH /v1/operator/accounts/${accountId}`, {
      token: service.firstRun.operatorToken,
      body: limits,
    })
    const ids = await sendAll(service, messages)
    await until(
      async () => (await redis.zcard('{s000}:due:simulate')) + (await redis.hlen('{s000}:claims')) === 0,
      WAIT_MS,
    )
    const hot = await logBytes(redis)
    await idleShare()
    const readHot = await timed(READS, (n) => readOne(service, ids[Math.floor((n * ids.length) / READS)] as string))
    clock.moveTo(1)
    await sendOne(service, 'delivered+later@simulator.test')
    const segments = (await redis.zcard(`{s000}:segments:${service.firstRun.testServer.serverId}`)) - 1
    const pauses = monitorEventLoopDelay({ resolution: 1 })
    pauses.enable()
    const idle = await idleShare()
    const startedAt = process.cpuUsage()
    const startedAtMs = performance.now()
    clock.moveTo(DAYS)
    // Each segment has its turn five seconds after the one before.
    await until(async () => (await rowsOf(redis, service)).length >= segments, WAIT_MS)
    const [sealingMicros, sealingMs] = [microsSince(startedAt), performance.now() - startedAtMs]
    pauses.disable()
    const rows = await rowsOf(redis, service)
    const sealed = rows.reduce((sum, row) => sum + row.messages, 0)
    if (sealed !== messages) throw new Error(`${sealed} of ${messages} messages were sealed`)
    const cold = await logBytes(redis)
    const disk = diskBytes(join(service.dataDir, 'content'))
    await idleShare()
    const read = await timed(READS, (n) => readOne(service, ids[Math.floor((n * ids.length) / READS)] as string))
    const search = await timed(SEARCHES, (n) => searchOne(service, addressOf(n * 7, messages)))
    const jump = await jumpMicros(() => clock.moveTo(2 * DAYS - 1), sealingMs)
    const sealing = sealingMicros - Math.max(jump, idle * sealingMs * 1000)
    print(messages, [
      ['segments', String(segments), ''],
      ['bytes in Redis each, before', formatNumber(hot / messages, 1), ''],
      ['bytes in Redis each, sealed', formatNumber(cold / messages, 2), verdict(cold / messages, TARGETS.resident)],
      ['bytes on disk each', formatNumber(disk / messages, 1), verdict(disk / messages, TARGETS.disk)],
      ['sealing each, µs', formatNumber(sealing / messages, 1), verdict(sealing / messages, TARGETS.sealMicros)],
      ['longest pause while sealing, ms', formatNumber(pauses.max / 1e6, 1), ''],
      ['reading one more than before, ms', formatNumber(read - readHot, 2), verdict(read - readHot, TARGETS.readMs)],
      ['searching a recipient, ms', formatNumber(search, 1), verdict(search, TARGETS.searchMs)],
    ])
  } finally {
    redis.disconnect()
    await service.stop()
  }
}

async function sendAll(service: TestService, messages: number): Promise<string[]> {
  const ids: string[] = []
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < messages) {
      const first = next
      next += BATCH
      const body = {
        messages: Array.from({ length: Math.min(BATCH, messages - first) }, (_, n) => mail(first + n, messages)),
      }
      const { status, json } = await service.call('POST /v1/email/batch', {
        token: service.firstRun.testServer.token,
        body,
      })
      if (status !== 200) throw new Error(`A batch was answered ${status}`)
      for (const [n, { messageId }] of json.messages.entries()) ids[first + n] = messageId
    }
  }
  await Promise.all(Array.from({ length: BATCHES_AT_ONCE }, worker))
  return ids
}

function addressOf(n: number, messages: number): string {
  return `delivered+p${n % Math.ceil(messages / EACH)}@simulator.test`
}

function mail(n: number, messages: number): object {
  const to = addressOf(n, messages)
  const metadata = { order: String(100_000 + n) }
  return { from: 'shop@simulator.test', to: [to], subject: `Your order ${n}`, text: 'x', tag: `tag-${n % 7}`, metadata }
}

async function sendOne(service: TestService, to: string): Promise<void> {
  const body = { from: 'shop@simulator.test', to: [to], subject: 'Later', text: 'x' }
  const { token } = service.firstRun.testServer
  // A jump of the clock lets the first request wait for the store.
  await until(async () => (await service.call('POST /v1/email', { token, body })).status === 200, WAIT_MS)
}

async function readOne(service: TestService, id: string): Promise<void> {
  const { status } = await service.call(`GET /v1/messages/${id}`, { token: service.firstRun.testServer.token })
  if (status !== 200) throw new Error(`A message was answered ${status}`)
}

async function searchOne(service: TestService, recipient: string): Promise<void> {
  const body = { recipient, limit: 100 }
  const { json } = await service.call('POST /v1/messages/search', { token: service.firstRun.testServer.token, body })
  if (json.messages.length !== EACH) throw new Error(`${json.messages.length} of ${EACH} messages were found`)
}

/** Milliseconds of processor for each of some acts, those of the client among them. */
async function timed(count: number, act: (n: number) => Promise<void>): Promise<number> {
  const startedAt = process.cpuUsage()
  for (let n = 0; n < count; n += 1) await act(n)
  return microsSince(startedAt) / count / 1000
}

/** Waits until the service is idle. Returns the share of a processor that it and this waiting then use. */
async function idleShare(): Promise<number> {
  for (let windows = 1; ; windows += 1) {
    const share = (await microsWithin(IDLE_MS)) / 1000 / IDLE_MS
    if (share < IDLE_SHARE || windows === IDLE_WINDOWS) return share
  }
}

/** The cost of a clock jump by as many days on its own, because timers of all days become due at once. */
async function jumpMicros(jump: () => void, ms: number): Promise<number> {
  await idleShare()
  jump()
  return microsWithin(ms)
}

async function microsWithin(ms: number): Promise<number> {
  const [startedAt, startedAtMs] = [process.cpuUsage(), performance.now()]
  await until(() => performance.now() - startedAtMs > ms, WAIT_MS)
  return microsSince(startedAt)
}

function microsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before)
  return user + system
}

async function rowsOf(redis: Redis, { firstRun }: TestService) {
  const texts = await redis.hvals(`{s000}:sealed:${firstRun.testServer.serverId}`)
  return texts.flatMap((text) => unpackSealed(text) ?? []).filter(({ generation }) => generation > 0)
}

async function logBytes(redis: Redis): Promise<number> {
  await until(async () => (await readInfo(redis, 'memory', 'lazyfree_pending_objects')) === 0, WAIT_MS)
  const families = await measureFamilies(redis)
  return LOG_FAMILIES.reduce((sum, name) => sum + (families.get(name)?.bytes ?? 0), 0)
}

function diskBytes(folder: string): number {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.includes('/cold/'))
    .map((name) => statSync(join(folder, name)))
    .reduce((sum, one) => sum + (one.isFile() ? one.size : 0), 0)
}

function verdict(value: number, target: number): string {
  return `<= ${target}: ${value <= target ? 'reached' : 'missed'}`
}

function print(messages: number, rows: readonly (readonly [string, string, string])[]): void {
  console.log(`memory --sealed: ${formatNumber(messages)} messages, ${EACH} to each address\n`)
  console.log(formatTable([['figure', 'value', 'target'], ...rows.map((row) => [...row])]))
}
