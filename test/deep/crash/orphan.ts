/**
 * The service's own Redis survives it: it is adopted by the next start, never doubled. Killed both at once they come
 * back with everything that was answered.
 */
import { existsSync, mkdtempSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { FirstRun } from '../../../src/service/first-start.ts'
import { checkSettled } from '../../support/clients/crash-check.ts'
import { startLoad } from '../../support/clients/ledger.ts'
import { freePort } from '../../support/machine/port.ts'
import { until } from '../../support/machine/until.ts'
import { raiseLimits } from '../../support/service/crash-scene.ts'
import { type Host, startHost } from '../../support/service/host.ts'

const ROUNDS = Number(process.env.ORPHANS ?? 2)
const MESSAGES_BETWEEN = 30
const GONE_MS_MAX = 10_000

t.test(
  'crash: embedded Redis orphaned, adopted, and killed with the service [crash.embedded-redis-orphaned]',
  async (t) => {
    const dataDir = mkdtempSync(join(tmpdir(), 'sendwright-orphan-'))
    const settings = {
      DATA_DIR: dataDir,
      HTTP_PORT: String(await freePort()),
      OPERATOR_PORT: String(await freePort()),
      MX_PORT: '0',
      SUBMISSION_PORT: '0',
      SUBMISSION_TLS_PORT: '0',
      EDGE_RATE: '0',
      LOG_LEVEL: 'fatal',
      REDIS_URL: '',
      SECRET_KEY: '',
    }
    let host: Host | null = null
    t.teardown(async () => {
      await host?.kill('SIGKILL')
      endRedis(dataDir)
      rmSync(dataDir, { recursive: true, force: true })
    })
    host = await startHost(settings)
    const path = join(dataDir, 'first-run.json')
    await until(() => existsSync(path), GONE_MS_MAX)
    const firstRun = JSON.parse(readFileSync(path, 'utf8')) as FirstRun
    await raiseLimits(Number(settings.OPERATOR_PORT), firstRun)
    const load = startLoad({
      port: Number(settings.HTTP_PORT),
      token: firstRun.testServer.token,
      clients: 8,
      recipient: (n) => `person${n % 50}@example.com`,
    })
    for (let round = 0; round < ROUNDS; round += 1) {
      const pid = redisPid(dataDir)
      await load.passes(MESSAGES_BETWEEN)
      await host.kill('SIGKILL')
      t.ok(isRedisOf(dataDir, pid), 'Redis survives the service')
      host = await startHost(settings)
      t.equal(redisPid(dataDir), pid, 'and is adopted')
      await load.passes(MESSAGES_BETWEEN)
      process.kill(pid, 'SIGKILL')
      await host.kill('SIGKILL')
      await until(() => !isRedisOf(dataDir, pid), GONE_MS_MAX)
      host = await startHost(settings)
      t.not(redisPid(dataDir), pid, 'a new one was started')
    }
    await load.passes(MESSAGES_BETWEEN)
    const ledger = await load.end()
    await checkSettled(t, { socketPath: join(dataDir, 'redis.sock'), firstRun, ledger })
    const pid = redisPid(dataDir)
    await host.kill('SIGTERM')
    t.equal(await host.exited, 0)
    await until(() => !isRedisOf(dataDir, pid), GONE_MS_MAX)
    t.notOk(isRedisOf(dataDir, pid), 'a stop takes it along, adopted or not')
  },
)

function redisPid(dataDir: string): number {
  return Number(readFileSync(join(dataDir, 'redis.pid'), 'utf8'))
}

function isRedisOf(dataDir: string, pid: number): boolean {
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === dataDir
  } catch {
    return false
  }
}

/** Ends what a test that failed has left behind. */
function endRedis(dataDir: string): void {
  if (!existsSync(join(dataDir, 'redis.pid'))) return
  const pid = redisPid(dataDir)
  if (isRedisOf(dataDir, pid)) process.kill(pid, 'SIGKILL')
}
