/**
 * send-at - the service or its Redis is killed before, at and after the time of scheduled mail: none is sent early,
 * twice or never, and a cancelled or moved message obeys the answered order. `SEED=n` for other moments.
 */
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { makeChance } from '../../simulation/prng.ts'
import { until } from '../../support/machine/until.ts'
import { startScene } from '../../support/service/crash-scene.ts'
import { type Host, startHost } from '../../support/service/host.ts'

const SEED = Number(process.env.SEED ?? 1)
/** From the first request of a case to the time of its mail. */
const AHEAD_MS = 6_000
/** When the kill is, relative to the time of the mail: drawn between the two. */
const MOMENTS = { before: [-1_500, -500], at: [-60, 60], after: [100, 900] } as const
const MESSAGES = 12
/** Orders to the messages by turns: another time, by ms; null cancels. */
const MOVES = [null, 1_000, -700, 0]
const RECIPIENTS = 40
const WAIT_MS = 60_000

const chance = makeChance(SEED)
const scene = await startScene()
let host: Host = scene.host
t.teardown(async () => {
  await host.kill('SIGKILL')
  await scene.end()
})
const { token } = scene.firstRun.testServer
const base = `http://127.0.0.1:${scene.settings.HTTP_PORT}`

interface Event {
  readonly event: string
  readonly occurredAt: string
  readonly messageId: string
  readonly recipient: string
}

/** The parts of answers that this file reads. */
interface Said {
  readonly messageId: string
  readonly status: string
  readonly broadcastId: string
  readonly streamId: string
  readonly completedAt: string | null
  readonly released: number
  readonly failed: number
  readonly recipients: readonly { readonly attempts: number }[]
  readonly events: readonly Event[]
  readonly messages: readonly { readonly messageId: string }[]
  readonly next: string | null
}

/** A request that is made again until a process answers it. Throws if it is refused. */
async function call(what: string, body?: object): Promise<Said> {
  const { status, said } = await ask(what, body)
  if (status >= 300) throw new Error(`${what}: ${JSON.stringify(said)}`)
  return said
}

function ask(what: string, body?: object): Promise<{ status: number; said: Said }> {
  const [method = 'GET', path = '/'] = what.split(' ')
  return until(async () => {
    const answer = await fetch(base + path, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', connection: 'close' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }).catch(() => null)
    if (answer === null || answer.status === 503) return null
    return { status: answer.status, said: (await answer.json()) as Said }
  }, WAIT_MS)
}

const KILLS: Readonly<Record<string, () => Promise<void>>> = {
  async service() {
    await host.kill('SIGKILL')
    host = await startHost(scene.settings)
  },
  async redis() {
    await scene.redis.kill('SIGKILL')
    await scene.redis.restart()
  },
}

/** The scheduled mail of one case. A message's time is null if it is cancelled. */
interface Scheduled {
  readonly atMs: ReadonlyMap<string, number | null>
  readonly broadcastId: string
  readonly sendAtMs: number
}

const { streamId } = await call('POST /v1/streams', { kind: 'broadcast', name: 'News' })

async function schedule(name: string): Promise<Scheduled> {
  const sendAtMs = Date.now() + AHEAD_MS
  const sendAt = (ms: number) => new Date(sendAtMs + ms).toISOString()
  const mail = { from: 'news@simulator.test', subject: 'Hello', text: 'Hello' }
  const to = Array.from({ length: RECIPIENTS }, (_, n) => ({ to: `delivered+${name}${n}@simulator.test` }))
  const { broadcastId } = await call('POST /v1/broadcasts', { ...mail, streamId, sendAt: sendAt(0), messages: to })
  const atMs = new Map<string, number | null>()
  await Promise.all(
    Array.from({ length: MESSAGES }, async (_, n) => {
      const message = { ...mail, to: [`delivered+${name}${n}@simulator.test`], sendAt: sendAt(0) }
      const { messageId } = await call('POST /v1/email', message)
      const moved = MOVES[n % MOVES.length] as number | null
      const order =
        moved === null
          ? ask(`POST /v1/messages/${messageId}/cancel`)
          : ask(`PATCH /v1/messages/${messageId}`, { sendAt: sendAt(moved) })
      // On a slow machine its time has come before the order.
      const isOrdered = (await order).status === 200
      atMs.set(messageId, !isOrdered ? sendAtMs : moved === null ? null : sendAtMs + moved)
    }),
  )
  return { atMs, broadcastId, sendAtMs }
}

async function checkMessages(t: Test, { atMs }: Scheduled): Promise<void> {
  for (const [messageId, sendAtMs] of atMs) {
    const { status, recipients, events } = await until(async () => {
      const seen = await call(`GET /v1/messages/${messageId}`)
      return seen.status === 'scheduled' || seen.status === 'accepted' ? null : seen
    }, WAIT_MS)
    const occurred = events.map(({ event, occurredAt }) => [event, Date.parse(occurredAt) >= (sendAtMs ?? 0)])
    if (sendAtMs === null) t.same([status, occurred, recipients[0]?.attempts], ['cancelled', [], 0], 'never sent')
    else t.same([status, occurred], ['delivered', [['delivered', true]]], 'once, and not before its time')
  }
}

async function checkBroadcast(t: Test, { broadcastId, sendAtMs }: Scheduled): Promise<void> {
  const { status, released, failed } = await until(async () => {
    const seen = await call(`GET /v1/broadcasts/${broadcastId}`)
    return seen.completedAt === null ? null : seen
  }, WAIT_MS)
  t.same([status, released, failed], ['completed', RECIPIENTS, 0])
  const { messages, next } = await call('POST /v1/messages/search', { broadcastId, limit: 100 })
  t.same([messages.length, next], [RECIPIENTS, null], 'each message is in the log once')
  const delivered = await Promise.all(
    messages.map(({ messageId }) =>
      until(async () => {
        const { events } = await call(`GET /v1/messages/${messageId}`)
        return events.length === 0 ? null : events
      }, WAIT_MS),
    ),
  )
  t.ok(
    delivered.every(([first, ...others]) => others.length === 0 && Date.parse(first?.occurredAt ?? '') >= sendAtMs),
    'each was delivered once, and none before its time',
  )
}

for (const victim of Object.keys(KILLS))
  for (const [moment, [fromMs, toMs]] of Object.entries(MOMENTS))
    t.test(`crash: ${victim} is killed ${moment} the time of scheduled mail [send.at] [broadcast.at]`, async (t) => {
      const scheduled = await schedule(`${victim}-${moment}-`)
      const killAtMs = scheduled.sendAtMs + fromMs + chance.below(toMs - fromMs)
      await pause(killAtMs - Date.now())
      await KILLS[victim]?.()
      await checkMessages(t, scheduled)
      await checkBroadcast(t, scheduled)
    })
