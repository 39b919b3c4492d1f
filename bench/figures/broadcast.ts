/**
 * broadcast - many recipients in one request: the time to its 202, the latency of other requests next to it and its
 * release, the speed of its release without a rate limit, and the Redis memory of a recipient before and after
 *
 * The product is a process as started by `sendwright start`, and its broadcasts are those of a test server, so every
 * released message is also composed and simulated. Others are clients of the same server, at an even rate.
 */

import { setTimeout as delay } from 'node:timers/promises'
import { startWholeService, type WholeService } from '../contestants/whole-service.ts'
import { pace } from '../load/pace.ts'
import { type BenchStore, keysOf, readInfo, startStore } from '../store.ts'
import { formatNumber, formatTable, median } from '../table.ts'
import { shareOfCore } from '../usage.ts'

const TARGETS = { smallMs: 2_000, largeMs: 6_000, p99Ratio: 2, perSecond: 3_000, before: 240, after: 500 }
/** Bytes of the body for each recipient; for 50,000 recipients 11 MB and 57 MB. */
const SMALL_BYTES = 220
const LARGE_BYTES = 1_140
/** The part of it that is not a value: the address, names of fields, punctuation. */
const FRAME_BYTES = 92
/** An escape takes six bytes of the body and makes two of the message: 57 MB come to less than the 50 MB as built. */
const ESCAPE = '\\u00e9'
const ESCAPES = 80
/** A value has 500 characters at most. */
const VALUE_CHARS = 400
const OTHERS_PER_SECOND = 200
const OTHERS_SECONDS = 10
const PACED_PER_MINUTE = 6_000
const UNPACED_PER_MINUTE = 600_000_000
/** The pace at which a broadcast waits until it is paused. */
const HELD_PER_MINUTE = 60
const MINUTE_MS = 60_000
const WAIT_MS_MAX = 300_000
const LOOK_MS = 200
const UNLINK_COUNT = 1_000
/**
 * Families that a message's expiry removes. The buckets are gone by then; the template and a message's own content are
 * left.
 */
const EXPIRING = ['bodies', 'content', 'idempotency']

interface Broadcast {
  readonly broadcastId: string
  readonly released: number
  readonly completedAt: string | null
}

/** Measures and prints. Throws Error if a broadcast is refused, or not all of it is released. */
export async function benchBroadcast({ rounds, recipients }: { rounds: number; recipients: number }): Promise<void> {
  const store = await startStore()
  const service = await startWholeService(store, { MX_PORT: '0' })
  try {
    const limits = { testPerMinuteLimit: 1_000_000_000, testMonthlyCap: 1_000_000_000 }
    await service.call('PATCH', `/v1/operator/accounts/${service.accountId}`, service.operator, limits)
    const scene = { store, service, recipients }
    const quiet = await others(service)
    const small = await timeSubmissions(scene, { rounds, each: SMALL_BYTES })
    const large = await timeSubmissions(scene, { rounds, each: LARGE_BYTES })
    const beside = await besideSubmissions(scene)
    const paced = await besideRelease(scene)
    const kept = await measureRelease(scene)
    const size = (each: number): string => formatNumber((each * recipients) / 1e6)
    const times = (p99Ms: number): string => formatNumber(p99Ms / quiet, 2)
    const rows: readonly (readonly [string, string, number | null])[] = [
      [`202 of ${size(SMALL_BYTES)} MB, ms`, formatNumber(small.ms), TARGETS.smallMs],
      ['processor of the service for it, ms', formatNumber(small.serviceMs), null],
      [`202 of ${size(LARGE_BYTES)} MB, ms`, formatNumber(large.ms), TARGETS.largeMs],
      ['processor of the service for it, ms', formatNumber(large.serviceMs), null],
      ['p99 of others, quiet, ms', formatNumber(quiet, 1), null],
      ['beside submissions, times', times(beside), TARGETS.p99Ratio],
      [`beside ${PACED_PER_MINUTE}/min, times`, times(paced), TARGETS.p99Ratio],
      ['released/s without a pace', formatNumber(kept.perSecond), TARGETS.perSecond],
      ['released and delivered/s', formatNumber(kept.deliveredPerSecond), null],
      ['processor of one, service, µs', formatNumber(kept.serviceUs), null],
      ['processor of one, Redis, µs', formatNumber(kept.redisUs), null],
      ['bytes of Redis a recipient, before', formatNumber(kept.before), TARGETS.before],
      ['after, content gone', formatNumber(kept.after), TARGETS.after],
    ]
    console.log(`broadcast: ${formatNumber(recipients)} recipients, ${OTHERS_PER_SECOND}/s of others\n`)
    const cells = rows.map(([name, text, target]) => [name, text, target === null ? '' : formatNumber(target)])
    console.log(formatTable([['', 'measured', 'target'], ...cells]))
  } finally {
    await service.stop()
    await store.stop()
  }
}

interface Scene {
  readonly store: BenchStore
  readonly service: WholeService
  readonly recipients: number
}

let streams = 0

async function makeStream({ service }: Scene, pacePerMinute: number): Promise<string> {
  streams += 1
  const stream = { kind: 'broadcast', name: `News ${streams}` }
  const { streamId } = (await service.call('POST', '/v1/streams', service.test, stream)) as { streamId: string }
  await service.call('PATCH', `/v1/operator/streams/${streamId}`, service.operator, { pacePerMinute })
  return streamId
}

/** The body of a broadcast as it goes over the wire. In: bytes for each recipient. */
function bodyOf({ recipients }: Scene, streamId: string, each: number): Buffer {
  const share = each - FRAME_BYTES
  const escapes = share > VALUE_CHARS * 2 ? ESCAPES : 0
  const plain = share - escapes * ESCAPE.length
  const first = Math.min(plain, VALUE_CHARS)
  const values = `"a":"${'x'.repeat(first)}","b":"${ESCAPE.repeat(escapes)}","c":"${'x'.repeat(plain - first)}"`
  const messages = Array.from(
    { length: recipients },
    (_, n) => `{"to":"delivered+${String(n).padStart(6, '0')}@simulator.test","substitutions":{${values}}}`,
  )
  const head = `"streamId":"${streamId}","from":"news@simulator.test","subject":"News","text":"Hello {{a}}{{b}}{{c}}"`
  return Buffer.from(`{${head},"messages":[${messages.join(',')}]}`)
}

/** Submits one. Returns its id, and the milliseconds from the first byte to the 202. */
async function submit({ service }: Scene, body: Buffer): Promise<{ id: string; ms: number }> {
  const startedAtMs = performance.now()
  const answer = await fetch(`http://127.0.0.1:${service.httpPort}/v1/broadcasts`, {
    method: 'POST',
    headers: { authorization: `Bearer ${service.test}`, 'content-type': 'application/json' },
    body: new Uint8Array(body),
  })
  const text = await answer.text()
  if (answer.status !== 202) throw new Error(`A broadcast was answered ${answer.status}: ${text.slice(0, 300)}`)
  return { id: (JSON.parse(text) as Broadcast).broadcastId, ms: performance.now() - startedAtMs }
}

/** The medians of several submissions, each cancelled as soon as it is accepted. */
async function timeSubmissions(
  scene: Scene,
  { rounds, each }: { rounds: number; each: number },
): Promise<{ readonly ms: number; readonly serviceMs: number }> {
  const body = bodyOf(scene, await makeStream(scene, 1), each)
  const taken: { readonly ms: number; readonly serviceMs: number }[] = []
  for (let round = 0; round < rounds; round += 1) {
    const { value, percents } = await shareOfCore([scene.service.pid], () => submit(scene, body))
    const { id, ms } = value
    taken.push({ ms, serviceMs: ((percents[0] ?? 0) * ms) / 100 })
    await scene.service.call('POST', `/v1/broadcasts/${id}/cancel`, scene.service.test)
  }
  return { ms: median(taken.map(({ ms }) => ms)), serviceMs: median(taken.map(({ serviceMs }) => serviceMs)) }
}

/** p99 of the answers to others, milliseconds. */
async function others(service: WholeService): Promise<number> {
  const target = { port: service.httpPort, keys: [service.test], domain: 'simulator.test' }
  const count = OTHERS_PER_SECOND * OTHERS_SECONDS
  const measured = await pace(target, { rate: OTHERS_PER_SECOND, count })
  if (measured.accepted !== count) throw new Error(`${count - measured.accepted} messages of others were not accepted`)
  return measured.p99Ms
}

/** The same while broadcasts are submitted, one after the other. */
async function besideSubmissions(scene: Scene): Promise<number> {
  const body = bodyOf(scene, await makeStream(scene, 1), SMALL_BYTES)
  let isOver = false
  const submitting = async (): Promise<void> => {
    while (!isOver) {
      const { id } = await submit(scene, body)
      await scene.service.call('POST', `/v1/broadcasts/${id}/cancel`, scene.service.test)
    }
  }
  const measuring = others(scene.service).finally(() => {
    isOver = true
  })
  const [p99Ms] = await Promise.all([measuring, submitting()])
  return p99Ms
}

/** The same while one is released at a pace. */
async function besideRelease(scene: Scene): Promise<number> {
  const { service } = scene
  const { id } = await submit(scene, bodyOf(scene, await makeStream(scene, PACED_PER_MINUTE), SMALL_BYTES))
  const p99Ms = await others(service)
  const { released } = (await service.call('GET', `/v1/broadcasts/${id}`, service.test)) as Broadcast
  if (released < (PACED_PER_MINUTE / 60) * OTHERS_SECONDS * 0.5) throw new Error(`Only ${released} were released`)
  await service.call('POST', `/v1/broadcasts/${id}/cancel`, service.test)
  return p99Ms
}

interface Kept {
  readonly perSecond: number
  readonly deliveredPerSecond: number
  /** Processor time of a message that is released, composed and simulated, with its events. */
  readonly serviceUs: number
  readonly redisUs: number
  readonly before: number
  readonly after: number
}

/** Releases one without a pace. */
async function measureRelease(scene: Scene): Promise<Kept> {
  const { store, service, recipients } = scene
  const dataset = async (): Promise<number> => {
    await waitFor(async () => (await readInfo(store.client, 'memory', 'lazyfree_pending_objects')) === 0)
    return readInfo(store.client, 'memory', 'used_memory_dataset')
  }
  const delivered = async (): Promise<number> => {
    const page = await (await fetch(`http://127.0.0.1:${service.operatorPort}/metrics`)).text()
    return Number(/^sendwright_attempts_total\{result="delivered",class=""\} (\d+)$/m.exec(page)?.[1] ?? 0)
  }
  await unlinkExpiring(store)
  const streamId = await makeStream(scene, HELD_PER_MINUTE)
  const order = (act: 'pause' | 'resume', id: string) =>
    service.call('POST', `/v1/broadcasts/${id}/${act}`, service.test)
  const settled = await dataset()
  const deliveredBefore = await delivered()
  // At its pace one message has gone by the time that it is paused, and the next may go a second later.
  const { id } = await submit(scene, bodyOf(scene, streamId, SMALL_BYTES))
  await order('pause', id)
  await service.call('PATCH', `/v1/operator/streams/${streamId}`, service.operator, {
    pacePerMinute: UNPACED_PER_MINUTE,
  })
  const before = (await dataset()) - settled
  await delay(MINUTE_MS / HELD_PER_MINUTE)
  const startedAtMs = performance.now()
  await order('resume', id)
  const isCompleted = async (): Promise<boolean> => {
    const found = (await service.call('GET', `/v1/broadcasts/${id}`, service.test)) as Broadcast
    if (found.completedAt !== null && found.released !== recipients) throw new Error(`${found.released} were released`)
    return found.completedAt !== null
  }
  const { value: perSecond, percents } = await shareOfCore([service.pid, store.pid], async () => {
    await waitFor(isCompleted)
    const rate = (recipients / (performance.now() - startedAtMs)) * 1000
    await waitFor(async () => (await delivered()) - deliveredBefore >= recipients)
    return rate
  })
  const seconds = (performance.now() - startedAtMs) / 1000
  const [serviceUs = 0, redisUs = 0] = percents.map((percent) => ((percent ?? 0) * 1e4 * seconds) / recipients)
  await unlinkExpiring(store)
  const after = (await dataset()) - settled
  const used = { serviceUs, redisUs, before: before / recipients, after: after / recipients }
  return { perSecond, deliveredPerSecond: recipients / seconds, ...used }
}

async function waitFor(isSo: () => Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + WAIT_MS_MAX
  while (!(await isSo())) {
    if (performance.now() > deadlineMs) throw new Error(`Not so within ${WAIT_MS_MAX / 1000} s: ${isSo}`)
    await delay(LOOK_MS)
  }
}

async function unlinkExpiring({ client }: BenchStore): Promise<void> {
  for (const family of EXPIRING) {
    const keys = await keysOf(client, `{s*}:${family}:*`)
    for (let start = 0; start < keys.length; start += UNLINK_COUNT)
      await client.unlink(...keys.slice(start, start + UNLINK_COUNT))
  }
}
