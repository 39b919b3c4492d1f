/**
 * SIGTERM under load: requests in flight are answered, the process ends by itself within 10 s, and nothing is lost
 * between one start and the next.
 */
import t from 'tap'
import { checkSettled, oddRefusals } from '../../support/clients/crash-check.ts'
import { startLoad } from '../../support/clients/ledger.ts'
import { watchStalls } from '../../support/machine/stall.ts'
import { setScene } from '../../support/service/crash-scene.ts'
import { type Host, startHost } from '../../support/service/host.ts'

const ROUNDS = Number(process.env.STOPS ?? 4)
const MESSAGES_BETWEEN = 100
const STOP_MS_MAX = 10_000
/** Clients receive any answer. */
const TRY_MS_MAX = 60_000

const { redis, settings, firstRun, end } = await setScene()
let host: Host | null = null
t.teardown(async () => {
  await host?.kill('SIGKILL')
  await end()
})

const LOADS = [
  { name: 'full load', clients: 16 },
  // Connections that are idle when the stop comes, and are used just then.
  { name: 'a light load', clients: 8, everyMs: 2 },
]

t.jobs = 1
let before = 0
for (const { name, ...pace } of LOADS) {
  t.test(`crash: ${ROUNDS} stops under ${name} cut no request and lose nothing [crash.stop]`, async (t) => {
    const stalls = watchStalls(t)
    let running = await startHost(settings)
    host = running
    const load = startLoad({
      port: Number(settings.HTTP_PORT),
      token: firstRun.testServer.token,
      tryMsMax: TRY_MS_MAX,
      recipient: (n) => `person${n % 100}@example.com`,
      ...pace,
    })
    for (let round = 0; round < ROUNDS; round += 1) {
      await load.passes(MESSAGES_BETWEEN)
      const askedAtMs = performance.now()
      await running.kill('SIGTERM')
      const tookMs = performance.now() - askedAtMs - stalls.during(askedAtMs)
      t.equal(await running.exited, 0, 'ends by itself')
      t.ok(tookMs < STOP_MS_MAX, `stopped after ${Math.round(tookMs)} ms`)
      running = await startHost(settings)
      host = running
    }
    const ledger = await load.end()
    const found = await checkSettled(t, { socketPath: redis.socketPath, firstRun, ledger, before })
    before = found.logged
    t.same(oddRefusals(ledger), [], 'no refusal but 503')
    const cut = ledger.cuts.filter(({ connected }) => connected)
    t.same(cut, [], 'no request that was sent is left without its answer')
    await running.kill('SIGTERM')
  })
}
