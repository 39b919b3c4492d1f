/**
 * secret-rotation - processes that are killed at each step of a rotation of the secret, under load, one and two.
 * Every accepted message is there with its content, nothing opens with a former key, and each rotation ends.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import t from 'tap'
import { openRing, type SealingKeys } from '../../../src/state/ring/ring.ts'
import { webhookSecretOwner } from '../../../src/state/ring/sealed-values.ts'
import { freePort } from '../../support/machine/port.ts'
import { until } from '../../support/machine/until.ts'
import { setScene } from '../../support/service/crash-scene.ts'
import { type Host, startHost } from '../../support/service/host.ts'
import { ROTATION_POINTS, type RotationPoint } from '../../support/store/crash-rotation.ts'
import { SealedSeeker } from '../../support/store/seek-sealed.ts'

const WAIT_MS = 120_000
const SENDERS = 4
/** Kills of one of two processes in one rotation. */
const KILLS = Number(process.env.KILLS ?? 4)
const KILL_MS_MAX = 2_500
/** More than a stall of a process. */
const FROZEN_MS = 32_000
/** More than a body that stays in Redis. */
const BODY_BYTES = 90_000

const scene = await setScene({ CONTENT_STORE: 'file' })
const { redis, firstRun, end } = scene
const { testServer, liveServer, operatorToken } = firstRun
const store = new Redis(redis.socketPath)
const hosts = new Set<Host>()
t.teardown(async () => {
  for (const host of hosts) await host.kill('SIGKILL')
  store.disconnect()
  await end()
})
let secret = scene.settings.SECRET_KEY as string
const former: SealingKeys[] = []
const sent = new Map<string, string>()

// biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects.
async function call(url: string, method: string, { token, body }: { token: string; body?: object }): Promise<any> {
  return until(async () => {
    const headers = {
      authorization: `Bearer ${token}`,
      connection: 'close',
      ...(body !== undefined && { 'content-type': 'application/json' }),
    }
    const answer = await fetch(url, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }).catch(() => null)
    if (answer === null || answer.status === 503) return null
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${url}: ${answer.status} ${text}`)
    return JSON.parse(text)
  }, WAIT_MS)
}

interface Running {
  readonly host: Host
  readonly api: string
  readonly desk: string
}

/** Starts a process with the secret to come and the present one. */
async function start(next: string, point?: RotationPoint): Promise<Running> {
  const [http, operator] = [await freePort(), await freePort()]
  const settings = {
    ...scene.settings,
    HTTP_PORT: String(http),
    OPERATOR_PORT: String(operator),
    SECRET_KEY: next,
    SECRET_KEY_PREVIOUS: secret,
    SETTLING_MS: '2000',
    ...(point !== undefined && { ROTATION_POINT: point }),
  }
  const host = await startHost(settings)
  hosts.add(host)
  return { host, api: `http://127.0.0.1:${http}`, desk: `http://127.0.0.1:${operator}` }
}

async function stop({ host }: Running, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  await host.kill(signal)
  hosts.delete(host)
}

/** Sends messages with large content until it is ended. In: where to, which changes with kills. */
function load(apiOf: () => string): { end(): Promise<void> } {
  let isOver = false
  const send = async (): Promise<void> => {
    while (!isOver) {
      const text = randomBytes(BODY_BYTES / 2).toString('hex')
      const body = { from: 'hello@simulator.test', to: ['delivered@simulator.test'], subject: 'A large one', text }
      const key = randomUUID()
      const answer = await until(async () => {
        const headers = {
          authorization: `Bearer ${testServer.token}`,
          'content-type': 'application/json',
          'idempotency-key': key,
          connection: 'close',
        }
        const tried = await fetch(`${apiOf()}/v1/email`, { method: 'POST', headers, body: JSON.stringify(body) }).catch(
          () => null,
        )
        if (tried === null || tried.status === 503) return null
        if (!tried.ok) throw new Error(`${tried.status} ${await tried.text()}`)
        return (await tried.json()) as { messageId: string }
      }, WAIT_MS)
      sent.set(answer.messageId, text)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
  const all = Promise.all(Array.from({ length: SENDERS }, send))
  return {
    async end() {
      isOver = true
      await all
    },
  }
}

const phaseIn = async (): Promise<string | null> => {
  const text = await store.hget('{s000}:rotation', 'state')
  return text === null ? null : (JSON.parse(text) as { phase: string }).phase
}
const order = (desk: string) => call(`${desk}/v1/operator/secret/rotate`, 'POST', { token: operatorToken, body: {} })

/** What must hold after each rotation. */
async function check(t: Tap, api: string, next: string): Promise<void> {
  former.push(...known)
  known = openRing((await store.hget('{cl}:conf', 'ring')) as string, next)?.sealing ?? []
  t.equal(known.length, 1, 'one generation is left')
  const owners = [testServer, liveServer].map(({ serverId }) => webhookSecretOwner(serverId))
  t.same(await new SealedSeeker(former, owners).inRedis(store), [], 'nothing opens with a former key')
  const ids = [...sent.keys()].slice(-200)
  for (const id of ids) {
    const { text } = await call(`${api}/v1/messages/${id}`, 'GET', { token: testServer.token })
    if (text !== sent.get(id)) return void t.fail(`message ${id} has other content`)
  }
  t.pass(`${ids.length} messages have their content`)
}

type Tap = Pick<typeof t, 'equal' | 'same' | 'fail' | 'pass'>
let known = openRing((await store.hget('{cl}:conf', 'ring')) as string, secret)?.sealing ?? []

for (const point of ROTATION_POINTS) {
  // Redis of the tests is not the service's own, whose file it would rewrite.
  if (point === 'file being rewritten') continue
  t.test(`rotation: killed at "${point}"`, async (t) => {
    const next = randomBytes(24).toString('hex')
    let running = await start(next, point)
    const sending = load(() => running.api)
    await order(running.desk)
    await until(() => !running.host.isRunning(), WAIT_MS)
    hosts.delete(running.host)
    t.not(await phaseIn(), 'done')
    running = await start(next)
    await until(async () => (await phaseIn()) === 'done', WAIT_MS)
    await sending.end()
    await check(t, running.api, next)
    await stop(running)
    secret = next
  })
}

t.test('rotation: a process that was frozen across the switch ends, and seals nothing', async (t) => {
  const next = randomBytes(24).toString('hex')
  const pair = await Promise.all([start(next), start(next)])
  const sending = load(() => pair[0].api)
  const frozen = pair[1].host
  process.kill(frozen.pid, 'SIGSTOP')
  await order(pair[0].desk)
  await until(async () => (await phaseIn()) === 'walking' || (await phaseIn()) === 'done', WAIT_MS)
  await new Promise((resolve) => setTimeout(resolve, FROZEN_MS))
  process.kill(frozen.pid, 'SIGCONT')
  await until(() => !frozen.isRunning(), WAIT_MS)
  t.match(frozen.said(), /The secret was rotated while this process was frozen/)
  hosts.delete(frozen)
  await until(async () => (await phaseIn()) === 'done', WAIT_MS)
  await sending.end()
  await check(t, pair[0].api, next)
  await stop(pair[0])
  secret = next
})

t.test('rotation: of two processes under load one after the other is killed', async (t) => {
  const next = randomBytes(24).toString('hex')
  const pair = await Promise.all([start(next), start(next)])
  let at = 0
  const sending = load(() => (pair[at++ % 2] as Running).api)
  await order(pair[0].desk)
  for (let kill = 0; kill < KILLS; kill += 1) {
    await new Promise((resolve) => setTimeout(resolve, Math.random() * KILL_MS_MAX))
    await stop(pair[kill % 2] as Running, 'SIGKILL')
    pair[kill % 2] = await start(next)
  }
  await until(async () => (await phaseIn()) === 'done', WAIT_MS)
  await sending.end()
  await check(t, pair[1].api, next)
  for (const one of pair) await stop(one)
  const stranger = { ...scene.settings, SECRET_KEY: secret, HTTP_PORT: String(await freePort()), OPERATOR_PORT: '0' }
  const host = await startHost(stranger, { ready: false })
  t.equal(await host.exited, 1)
  t.match(host.said(), /SECRET_KEY is the one from before the last rotation of this store: set the new one/)
  t.ok(sent.size > 50, `${sent.size} messages`)
})
