/**
 * Many requests with one Idempotency-Key at once, the process killed during them, then all of them again: one message.
 * The same key with another body is refused.
 */
import t from 'tap'
import { checkSettled } from '../../support/clients/crash-check.ts'
import { type Answered, type Ledger, postEmail } from '../../support/clients/ledger.ts'
import { until } from '../../support/machine/until.ts'
import { setScene } from '../../support/service/crash-scene.ts'
import { type Host, startHost } from '../../support/service/host.ts'

const ROUNDS = Number(process.env.STORMS ?? 6)
const AT_ONCE = 64
/** When the process is killed: at a named step, or (null) at the first answer. */
const POINTS = [null, 'decided', 'committed, reply lost'] as const
const READY_MS_MAX = 20_000

const { redis, settings, firstRun, end } = await setScene()
const desk = { port: Number(settings.HTTP_PORT), token: firstRun.testServer.token }
let host: Host | null = null
t.teardown(async () => {
  await host?.kill('SIGKILL')
  await end()
})

t.test(`crash: ${ROUNDS} storms of ${AT_ONCE} requests with one key make one message each [crash.storm]`, async (t) => {
  const ledger: Ledger = { told: new Map(), statuses: new Map(), refusals: [], cuts: [], falselyRefused: [] }
  for (let round = 0; round < ROUNDS; round += 1) {
    const key = `storm-${round}`
    const point = POINTS[round % POINTS.length] ?? null
    const running = await startHost(settings, point === null ? {} : { point })
    host = running
    let first: () => void = () => undefined
    const answered = new Promise<void>((resolve) => (first = resolve))
    const storm = Array.from({ length: AT_ONCE }, async () => {
      const answer = await postEmail(desk, bodyOf(round), key)
      first()
      return answer
    })
    if (point === null) {
      await answered
      await running.kill('SIGKILL')
    } else await running.exited
    const before = await Promise.all(storm)
    host = await startHost(settings)
    const after = await Promise.all(Array.from({ length: AT_ONCE }, () => untilAnswered(round, key)))
    const taken = [...before, ...after].filter((answer) => answer?.status === 200) as Answered[]
    ledger.told.set(key, new Set(taken.map(({ body }) => JSON.parse(body).messageId)))
    const made = taken.filter(({ headers }) => headers['idempotent-replayed'] === undefined)
    t.ok(made.length <= 1, 'at most one answer is not a replay')
    t.equal(new Set(taken.map(({ body }) => body)).size, 1, 'all say the same')
    const other = await postEmail(desk, { ...bodyOf(round), subject: 'Another' }, key)
    t.equal(other?.status, 422)
    t.match(other?.body, /idempotency_key_reused/)
    // An attempt that dies with its process counts: five deaths would end it, and here none may be ended so.
    await untilDelivered([...(ledger.told.get(key) ?? [])])
    await host.kill('SIGKILL')
  }
  host = await startHost(settings)
  const found = await checkSettled(t, { socketPath: redis.socketPath, firstRun, ledger })
  t.equal(found.logged, ROUNDS)
})

function bodyOf(round: number): object {
  return { from: 'you@simulator.test', to: [`person${round}@example.com`], subject: 'Storm', text: 'A text.' }
}

/** Sends again and again until it is taken. */
function untilAnswered(round: number, key: string): Promise<Answered> {
  return until(async () => {
    const answer = await postEmail(desk, bodyOf(round), key)
    return answer?.status === 200 ? answer : null
  }, READY_MS_MAX)
}

/** Waits until these messages have been delivered. */
async function untilDelivered(messageIds: readonly string[]): Promise<void> {
  const headers = { authorization: `Bearer ${desk.token}`, connection: 'close' }
  for (const messageId of messageIds)
    await until(async () => {
      const answer = await fetch(`http://127.0.0.1:${desk.port}/v1/messages/${messageId}`, { headers })
      return ((await answer.json()) as { status?: string }).status === 'delivered'
    }, READY_MS_MAX)
}
