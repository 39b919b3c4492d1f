/**
 * rolls - every process is restarted, one after another, while clients send and a probe connects to each port every 20
 * ms. No connection is refused or reset. A supervisor holds the SMTP sockets, and two HTTP processes share a port.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { FirstRun } from '../../../src/service/first-start.ts'
import { startLoad } from '../../support/clients/ledger.ts'
import { startProbe } from '../../support/clients/probe.ts'
import { freePort } from '../../support/machine/port.ts'
import { until } from '../../support/machine/until.ts'
import { openDialog } from '../../support/peers/smtp-dialog.ts'
import { raiseLimits } from '../../support/service/crash-scene.ts'
import { type Supervised, startSupervised } from '../../support/service/supervised.ts'
import { startRedis } from '../../support/store/redis.ts'

const PASSES = 20

t.test('every process is restarted and no connection is refused [listener.port]', async (t) => {
  const redis = await startRedis()
  const dataDir = mkdtempSync(join(tmpdir(), 'sendwright-roll-'))
  t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))
  t.teardown(() => redis.stop())
  const [http, mx, submission, submissionTls] = [await freePort(), await freePort(), await freePort(), await freePort()]
  const common = {
    REDIS_URL: `unix://${redis.socketPath}`,
    SECRET_KEY: 'a secret of the tests that is long enough',
    CONTENT_STORE: 'file',
    DATA_DIR: dataDir,
    HTTP_PORT: String(http),
    HTTP_PORT_SHARED: 'on',
    MX_PORT: String(mx),
    SUBMISSION_PORT: String(submission),
    SUBMISSION_TLS_PORT: String(submissionTls),
    EDGE_RATE: '0',
    LOG_LEVEL: 'fatal',
  }
  const start = async (ROLES: string, ports: readonly number[] = []) => {
    const operatorPort = await freePort()
    const one = await startSupervised({ ...common, ROLES, OPERATOR_PORT: String(operatorPort) }, ports)
    t.teardown(() => one.stop())
    return { ROLES, ports, operatorPort, ...one }
  }
  const all: (Supervised & { readonly ROLES: string; readonly ports: readonly number[]; operatorPort: number })[] = []
  for (const roles of ['actors', 'actors', 'http', 'http']) all.push(await start(roles))
  all.push(await start('mx', [mx]), await start('submission', [submission, submissionTls]))
  const path = join(dataDir, 'first-run.json')
  await until(() => existsSync(path), 10_000)
  const firstRun = JSON.parse(readFileSync(path, 'utf8')) as FirstRun
  await raiseLimits(all[2]?.operatorPort ?? 0, firstRun)

  const load = startLoad({
    port: http,
    token: firstRun.testServer.token,
    clients: 4,
    everyMs: 50,
    recipient: (n) => `person${n % 100}@example.com`,
  })
  const probe = startProbe([http, mx, submission, submissionTls])
  await load.passes(PASSES)
  for (const one of all) {
    await one.restart(async () => {
      // A client that comes between two processes is greeted by the next one.
      for (const port of one.ports.filter((some) => some !== submissionTls)) {
        const dialog = await openDialog(port)
        t.match(dialog.greeting, /^220 /)
        dialog.end()
      }
    })
    await load.passes(PASSES)
  }
  const outcomes = await probe.end()
  const { told, cuts } = await load.end()
  t.comment(`${told.size} messages, ${JSON.stringify(outcomes)}`)
  t.same(Object.keys(outcomes).sort(), [http, mx, submission, submissionTls].map((port) => `${port} connected`).sort())
  t.same(
    cuts.filter(({ connected }) => !connected),
    [],
    'no request was refused a connection',
  )
  t.ok([...told.values()].every((ids) => ids.size === 1))
})
