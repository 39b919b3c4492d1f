/**
 * The process is stopped for longer than its heartbeats may be late, then goes on: timers run before sockets then,
 * and what is in doubt must still get its true answer.
 */
import t from 'tap'
import { checkSettled, oddRefusals } from '../support/clients/crash-check.ts'
import { startLoad } from '../support/clients/ledger.ts'
import { until } from '../support/machine/until.ts'
import { setScene } from '../support/service/crash-scene.ts'
import { type Host, startHost } from '../support/service/host.ts'

/** Shorter than an ask lives, longer than that, longer than a worker counts as living. */
const FROZEN_MS = [2_000, 5_000, 12_000]
/** Clients outlast all of it: whatever the answer is, they hear it. */
const TRY_MS_MAX = 90_000
const MESSAGES_BETWEEN = 100

const { redis, settings, firstRun, end } = await setScene()
let host: Host | null = null
t.teardown(async () => {
  await host?.kill('SIGKILL')
  await end()
})

t.test('crash: the process stands still under load and goes on; no answer is a lie [crash.frozen]', async (t) => {
  const running = await startHost(settings)
  host = running
  const load = startLoad({
    port: Number(settings.HTTP_PORT),
    token: firstRun.testServer.token,
    clients: 16,
    tryMsMax: TRY_MS_MAX,
    recipient: (n) => `person${n % 100}@example.com`,
  })
  for (const ms of FROZEN_MS) {
    await load.passes(MESSAGES_BETWEEN)
    process.kill(running.pid, 'SIGSTOP')
    const stoppedAtMs = performance.now()
    await until(() => performance.now() - stoppedAtMs >= ms, ms * 2)
    process.kill(running.pid, 'SIGCONT')
  }
  await load.passes(MESSAGES_BETWEEN)
  const ledger = await load.end()
  t.ok(running.isRunning(), 'the process goes on')
  await checkSettled(t, { socketPath: redis.socketPath, firstRun, ledger })
  t.same(oddRefusals(ledger), [], 'no refusal but 503')
  t.same(ledger.cuts, [], 'and each request has its answer')
  await running.kill('SIGTERM')
  t.equal(await running.exited, 0)
})
