/**
 * Redis's clock, the only one that the product knows, jumps an hour ahead and back under load: nothing is lost or
 * doubled, and a limit is neither given anew nor withheld.
 */
import t from 'tap'
import { checkSettled, oddRefusals } from '../../../support/clients/crash-check.ts'
import { postEmail, startLoad } from '../../../support/clients/ledger.ts'
import { MOVED_CLOCK_SKIP, type MovedClock, makeMovedClock } from '../../../support/machine/moved-clock.ts'
import { until } from '../../../support/machine/until.ts'
import { raiseLimits } from '../../../support/service/crash-scene.ts'
import { startTestService, type TestService } from '../../../support/service/service.ts'

const HOUR_DAYS = 1 / 24
const JUMPS_HOURS = [1, 0, -1, 0, 1, -1, 0]
const MESSAGES_BETWEEN = 40
const LIMIT = 20
const MOVED_MS_MAX = 15_000
const MINUTE_MS = 60_000
const HOUR_S = 3_600
const DAY_S = 86_400
/** The turns of a limit's test fall into one minute when they take no longer. */
const TURNS_MS_MAX = 50_000
const TRIES_MAX = 3

t.jobs = 1
const skip = MOVED_CLOCK_SKIP

t.test('clock: jumps of an hour under load lose and double nothing [crash.clock-jump]', { skip }, async (t) => {
  const { clock, service } = await startMoved()
  t.teardown(() => service.stop())
  await raiseLimits(service.config.operatorPort, service.firstRun)
  const { firstRun, redis, config } = service
  const load = startLoad({
    port: config.httpPort,
    token: firstRun.testServer.token,
    clients: 8,
    recipient: (n) => `person${n % 50}@example.com`,
  })
  await load.passes(MESSAGES_BETWEEN)
  for (const hours of JUMPS_HOURS) {
    clock.moveTo(hours * HOUR_DAYS)
    await load.passes(MESSAGES_BETWEEN)
  }
  const ledger = await load.end()
  await checkSettled(t, { socketPath: redis.socketPath, firstRun, ledger })
  t.same(oddRefusals(ledger), [], 'no refusal but 503')
})

t.test(
  'clock: a limit that was reached stays so in its minute, whatever the clock did [crash.clock-limit]',
  { skip },
  async (t) => {
    const moved = await startMoved()
    t.teardown(() => moved.service.stop())
    await setMinuteLimit(moved.service)
    let taken = await takenByTurns(moved, 0)
    for (let tries = 1; tries < TRIES_MAX && taken.tookMs > TURNS_MS_MAX; tries += 1)
      taken = await takenByTurns(moved, tries)
    const [first, second, firstAgain, secondAgain] = taken.counts
    t.equal(first, LIMIT, 'the limit is reached')
    t.equal(second, LIMIT, 'another minute has a limit of its own')
    t.equal(firstAgain, 0, 'the first minute is still used up')
    t.equal(secondAgain, 0, 'and so is the second')
  },
)

interface Moved {
  readonly clock: MovedClock
  readonly service: TestService
}

/**
 * How many are accepted in each of two minutes, an hour apart, that have just begun: by turns, in each twice. They last
 * as long as this is in them, unless it takes too long; each try has minutes of its own, later than those before.
 */
async function takenByTurns({ clock, service }: Moved, tries: number): Promise<{ counts: number[]; tookMs: number }> {
  const beganAtMs = performance.now()
  const first = secondsToMinute() + tries * 2 * HOUR_S
  const second = first + HOUR_S
  const counts: number[] = []
  for (const seconds of [first, second, first, second]) {
    clock.moveTo(seconds / DAY_S)
    await untilMoved(service, seconds)
    counts.push(await takenNow(service))
  }
  return { counts, tookMs: performance.now() - beganAtMs }
}

async function startMoved(): Promise<Moved> {
  const clock = makeMovedClock()
  return { clock, service: await clock.around(() => startTestService()) }
}

async function setMinuteLimit({ operate, firstRun }: TestService): Promise<void> {
  const { account, operatorToken } = firstRun
  const path = `PATCH /v1/operator/accounts/${account.accountId}`
  const { status } = await operate(path, { token: operatorToken, body: { testPerMinuteLimit: LIMIT } })
  if (status !== 200) throw new Error('The limit was not set')
}

/** Sends until it is decided: right after a jump the service says that it will be there soon. Out: the status. */
function sendOne({ config, firstRun }: TestService): Promise<number> {
  const desk = { port: config.httpPort, token: firstRun.testServer.token }
  const body = { from: 'you@simulator.test', to: ['a@example.com'], subject: 'Limit', text: 'A text.' }
  return until(async () => {
    const status = (await postEmail(desk, body, null))?.status
    return status === 503 ? null : status
  }, MOVED_MS_MAX)
}

/** How many of twice the limit are accepted. */
async function takenNow(service: TestService): Promise<number> {
  const statuses = await Promise.all(Array.from({ length: LIMIT * 2 }, () => sendOne(service)))
  return statuses.filter((status) => status === 200).length
}

/** Whole seconds to the next minute. */
function secondsToMinute(): number {
  return Math.ceil((MINUTE_MS - (Date.now() % MINUTE_MS)) / 1000)
}

/** Waits until the service counts by the clock that is `seconds` ahead: its limit's end says so. */
async function untilMoved({ call, firstRun }: TestService, seconds: number): Promise<void> {
  await until(async () => {
    const { json } = await call('GET /v1/server', { token: firstRun.testServer.token })
    const leftMs = Date.parse(json.limits[0].resetsAt) - (Date.now() + seconds * 1000)
    return leftMs > 0 && leftMs <= MINUTE_MS
  }, MOVED_MS_MAX)
}
