/**
 * Redis goes away under load: what was not handed to it is refused within 2 s, never accepted and never half; what is
 * in doubt waits for the truth; when Redis is back the service is too, without a restart.
 */
import t from 'tap'
import { type Answered, postEmail, sendAll } from '../support/clients/ledger.ts'
import { SETTLED, settle } from '../support/clients/settle.ts'
import { watchStalls } from '../support/machine/stall.ts'
import { until } from '../support/machine/until.ts'
import { raiseLimits } from '../support/service/crash-scene.ts'
import { startTestService } from '../support/service/service.ts'

const ROUNDS = 5
const BACK_MS_MAX = 5_000
const REFUSED_MS_MAX = 2_000
/** A late answer of the machine itself is not the service's. */
const MACHINE_MS = 500

const service = await startTestService()
t.teardown(() => service.stop())
const { testServer, account } = service.firstRun
await raiseLimits(service.config.operatorPort, service.firstRun)
const { httpPort } = service.config
const message = { from: 'you@simulator.test', to: ['a@example.com'], subject: 'Away', text: 'A text.' }

t.test('store: away under load, refused in time, back by itself, nothing lost [crash.store-away]', async (t) => {
  const stalls = watchStalls(t)
  const isLate = ({ startedAtMs, tookMs }: Answered): boolean =>
    tookMs - stalls.during(startedAtMs, startedAtMs + tookMs) > REFUSED_MS_MAX + MACHINE_MS
  // When the store came back: from its start until it was seen to answer.
  const returns: { fromMs: number; toMs: number }[] = []
  // What was in the commit in flight when the store went is in doubt: refused once the store can tell, and no sooner.
  const wasInDoubt = ({ startedAtMs, tookMs }: Answered): boolean =>
    returns.some(({ fromMs, toMs }) => startedAtMs <= toMs && startedAtMs + tookMs >= fromMs)
  let going = true
  const load = sendAll({
    port: httpPort,
    token: testServer.token,
    clients: 16,
    recipient: (n) => `person${n % 100}@example.com`,
    goOn: () => going,
  })
  for (let round = 0; round < ROUNDS; round += 1) {
    await until(
      async () => (await postEmail({ port: httpPort, token: testServer.token }, message, null))?.status === 200,
      10_000,
    )
    await service.redis.kill('SIGKILL')
    const refused = await until(() => refusedNow(), 10_000)
    t.equal(refused.status, 503)
    t.ok(Number(refused.headers['retry-after']) >= 1, 'says when to come back')
    t.equal(JSON.parse(refused.body).error, 'unavailable')
    t.notOk(isLate(refused), `refused after ${Math.round(refused.tookMs)} ms`)
    const fromMs = performance.now()
    await service.redis.restart()
    const restartedAtMs = performance.now()
    returns.push({ fromMs, toMs: restartedAtMs })
    await until(
      async () => (await postEmail({ port: httpPort, token: testServer.token }, message, null))?.status === 200,
      15_000,
    )
    const backMs = performance.now() - restartedAtMs - stalls.during(restartedAtMs)
    t.ok(backMs < BACK_MS_MAX, `back after ${Math.round(backMs)} ms`)
  }
  going = false
  const ledger = await load
  const found = await settle(service.redis.socketPath, {
    serverId: testServer.serverId,
    accountId: account.accountId,
    ledger,
  })
  t.match(found, SETTLED)
  t.equal(found.counted, found.logged, 'counters are exact')
  const slow = ledger.refusals.filter((answer) => answer.status === 503 && isLate(answer) && !wasInDoubt(answer))
  t.equal(slow.length, 0, 'no refusal came late')
  t.comment(JSON.stringify({ found, statuses: Object.fromEntries(ledger.statuses) }))
})

async function refusedNow(): ReturnType<typeof postEmail> {
  const answer = await postEmail({ port: httpPort, token: testServer.token }, message, null)
  return answer?.status === 503 ? answer : null
}
