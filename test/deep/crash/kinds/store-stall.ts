/**
 * Redis stands still, and connections to it are cut, under load: a commit in doubt is answered by what became of it,
 * never by a refusal; what was sent twice counts once.
 */
import { Redis } from 'ioredis'
import t from 'tap'
import { checkSettled, oddRefusals } from '../../../support/clients/crash-check.ts'
import { startLoad } from '../../../support/clients/ledger.ts'
import { until } from '../../../support/machine/until.ts'
import { raiseLimits } from '../../../support/service/crash-scene.ts'
import { startTestService } from '../../../support/service/service.ts'

const STALLED_MS = [1_000, 3_000, 6_000]
const CUT_EVERY_MS = 100
const CUTTING_MS = Number(process.env.CUTTING_MS ?? 5_000)
const CUTS_MIN = 10
const MESSAGES_BETWEEN = 100
/** Clients outlast all of it. */
const TRY_MS_MAX = 90_000

t.jobs = 1
const service = await startTestService()
t.teardown(() => service.stop())
const { firstRun, redis } = service
await raiseLimits(service.config.operatorPort, firstRun)
const { socketPath } = redis
let before = 0
const LOAD = {
  port: service.config.httpPort,
  token: firstRun.testServer.token,
  clients: 16,
  tryMsMax: TRY_MS_MAX,
  recipient: (n: number) => `person${n % 100}@example.com`,
}

t.test('store: stands still under load; nothing is refused that becomes true [crash.store-stalled]', async (t) => {
  const load = startLoad(LOAD)
  for (const ms of STALLED_MS) {
    await load.passes(MESSAGES_BETWEEN)
    await redis.kill('SIGSTOP')
    const stoppedAtMs = performance.now()
    await until(() => performance.now() - stoppedAtMs >= ms, ms * 2)
    await redis.kill('SIGCONT')
  }
  await load.passes(MESSAGES_BETWEEN)
  const ledger = await load.end()
  const found = await checkSettled(t, { socketPath, firstRun, ledger, before })
  before = found.logged
  t.same(oddRefusals(ledger), [], 'no refusal but 503')
  t.same(ledger.cuts, [], 'and each request has its answer')
})

t.test(
  'store: the commit connection is cut again and again; each key makes one message [crash.commit-cut]',
  async (t) => {
    const load = startLoad(LOAD)
    const redis = new Redis({ path: socketPath })
    t.teardown(() => redis.disconnect())
    const endMs = performance.now() + CUTTING_MS
    let cut = 0
    while (performance.now() < endMs || cut <= CUTS_MIN) {
      const clients = String(await redis.client('LIST')).split('\n')
      for (const one of clients.filter((line) => line.includes(' name=commit '))) {
        const [, id = ''] = /id=(\d+)/.exec(one) ?? []
        cut += Number(await redis.client('KILL', 'ID', Number(id)))
      }
      const nextMs = performance.now() + CUT_EVERY_MS
      await until(() => performance.now() >= nextMs, CUT_EVERY_MS * 20)
    }
    t.comment(`${cut} connections were cut`)
    await load.passes(MESSAGES_BETWEEN)
    const ledger = await load.end()
    const found = await checkSettled(t, { socketPath, firstRun, ledger, before })
    before = found.logged
    t.same(oddRefusals(ledger), [], 'no refusal but 503')
    t.same(ledger.cuts, [], 'and each request has its answer')
  },
)
