/**
 * broadcasts - the service and its Redis are killed by turns while three broadcasts are released, one of which is
 * cancelled. Every recipient is in the log once or counts as failed, the sums are exact, and nothing of a bucket is
 * left.
 */
import { Redis } from 'ioredis'
import { freePort } from '../support/machine/port.ts'
import { until } from '../support/machine/until.ts'
import { type CrashScene, setScene } from '../support/service/crash-scene.ts'
import { type Host, startHost } from '../support/service/host.ts'
import { makeRandom } from '../support/store/random-ops.ts'

export interface BroadcastsOptions {
  readonly kills: number
  /** Recipients of each broadcast, enough for the kills. */
  readonly recipients: number
  readonly seed: number
  readonly say: (line: string) => void
}

export interface BroadcastsReport {
  readonly kills: { readonly service: number; readonly redis: number }
  /** The results, broadcast by broadcast. */
  readonly found: readonly FoundBroadcast[]
  /** Names of keys that should have gone. */
  readonly left: readonly string[]
  readonly recipients: number
}

interface FoundBroadcast {
  readonly status: string
  readonly released: number
  readonly failed: number
  /** Recipients in the log, and those that occur more than once. */
  readonly logged: number
  readonly doubled: number
}

const PACE_PER_MINUTE = 6_000
const PAGE = 100
const WAIT_MS = 60_000
const END_MS = 300_000
/** Released between two kills, at least. */
const BETWEEN = 20
const CANCELLED = 2

/** The parts of answers that this file reads. */
interface Said {
  readonly streamId: string
  readonly broadcastId: string
  readonly status: string
  readonly released: number
  readonly failed: number
  readonly completedAt: string | null
  readonly messages: readonly { readonly recipients: readonly { readonly recipient: string }[] }[]
  readonly next: string | null
}

type Call = (what: string, body?: object, isOperator?: boolean) => Promise<Said>

/** Kills, and checks the result of the broadcasts. There are enough recipients for the number of kills. */
export async function runBroadcasts(options: BroadcastsOptions): Promise<BroadcastsReport> {
  const scene = await setScene({ OPERATOR_PORT: String(await freePort()) })
  const store = new Redis(scene.redis.socketPath)
  const running: { host: Host } = { host: await startHost(scene.settings) }
  store.on('error', () => undefined)
  try {
    return await killed({ scene, store, running, call: makeCall(scene) }, options)
  } finally {
    await running.host.kill('SIGKILL')
    store.disconnect()
    await scene.end()
  }
}

interface Rig {
  readonly scene: CrashScene
  readonly store: Redis
  readonly running: { host: Host }
  readonly call: Call
}

/** Requests that are made again until a process answers them. */
function makeCall({ settings, firstRun }: CrashScene): Call {
  return (what, body, isOperator = false) => {
    const [method = 'GET', path = '/'] = what.split(' ')
    const port = isOperator ? settings.OPERATOR_PORT : settings.HTTP_PORT
    const token = isOperator ? firstRun.operatorToken : firstRun.testServer.token
    return until(async () => {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', connection: 'close' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }).catch(() => null)
      return answer === null || answer.status === 503 ? null : ((await answer.json()) as Said)
    }, WAIT_MS)
  }
}

async function killed(rig: Rig, { kills, recipients, seed, say }: BroadcastsOptions): Promise<BroadcastsReport> {
  const { scene, running, call, store } = rig
  const random = makeRandom(seed)
  const { streamId } = await call('POST /v1/streams', { kind: 'broadcast', name: 'News' })
  await call(`PATCH /v1/operator/streams/${streamId}`, { pacePerMinute: PACE_PER_MINUTE }, true)
  const ids: string[] = []
  for (const name of ['a', 'b', 'c']) {
    const messages = Array.from({ length: recipients }, (_, n) => ({
      to: `delivered+${name}${n}@simulator.test`,
      substitutions: { n: String(n) },
    }))
    const body = { streamId, from: 'news@simulator.test', subject: 'Hi {{n}}', text: 'Hello', messages }
    ids.push((await call('POST /v1/broadcasts', body)).broadcastId)
  }
  const count = { service: 0, redis: 0 }
  for (let kill = 0; kill < kills; kill += 1) {
    const watched = `GET /v1/broadcasts/${ids[kill % CANCELLED]}`
    const before = (await call(watched)).released
    await until(async () => {
      const { released, completedAt } = await call(watched)
      return completedAt !== null || released > before + BETWEEN ? true : null
    }, WAIT_MS)
    if (kill === Math.floor(kills / 2)) await call(`POST /v1/broadcasts/${ids[CANCELLED]}/cancel`)
    if (random() < 1 / 3 || (kill === kills - 1 && count.redis === 0)) {
      count.redis += 1
      await scene.redis.kill('SIGKILL')
      await scene.redis.restart()
    } else {
      count.service += 1
      await running.host.kill('SIGKILL')
      running.host = await startHost(scene.settings)
    }
    if ((kill + 1) % 10 === 0) say(`broadcasts: ${kill + 1} kills`)
  }
  const found: FoundBroadcast[] = []
  for (const id of ids) found.push(await lookAt(call, id))
  const left = (await store.keys('*')).filter((key) => /:content:.*:r\d+$|:running:/.test(key))
  return { kills: count, found, left, recipients }
}

/** A broadcast once it has ended, and how often its recipients are in the log. */
async function lookAt(call: Call, id: string): Promise<FoundBroadcast> {
  const ended = await until(async () => {
    const seen = await call(`GET /v1/broadcasts/${id}`)
    return seen.completedAt === null ? null : seen
  }, END_MS)
  const counts = new Map<string, number>()
  for (let after: string | null = ''; after !== null; ) {
    const page = { broadcastId: id, limit: PAGE, ...(after !== '' && { after }) }
    const { messages, next }: Said = await call('POST /v1/messages/search', page)
    for (const { recipients } of messages) {
      const recipient = recipients[0]?.recipient ?? ''
      counts.set(recipient, (counts.get(recipient) ?? 0) + 1)
    }
    after = next
  }
  const doubled = Array.from(counts.values()).filter((times) => times !== 1).length
  const { status, released, failed } = ended
  return { status, released, failed, logged: counts.size, doubled }
}

/** The parts of a report that break a promise. */
export function failuresOfBroadcasts({ found, left, recipients }: BroadcastsReport): string[] {
  const failures = found.flatMap(({ status, released, failed, logged, doubled }, at) => {
    const isCancelled = at === CANCELLED
    return [
      ...(status === (isCancelled ? 'cancelled' : 'completed') ? [] : [`broadcast ${at} is ${status}`]),
      ...(released + failed === recipients ? [] : [`broadcast ${at}: ${released} + ${failed} is not ${recipients}`]),
      ...(isCancelled || released === recipients ? [] : [`broadcast ${at}: only ${released} were released`]),
      ...(logged === released ? [] : [`broadcast ${at}: ${released} were released, ${logged} are in the log`]),
      ...(doubled === 0 ? [] : [`broadcast ${at}: ${doubled} are in the log more than once`]),
    ]
  })
  return [...failures, ...left.map((key) => `${key} is left`)]
}
