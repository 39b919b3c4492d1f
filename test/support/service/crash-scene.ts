/** crash-scene - a store, a data directory and settings for tests that end the service again and again. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FirstRun } from '../../../src/service/first-start.ts'
import { freePort } from '../machine/port.ts'
import { until } from '../machine/until.ts'
import { startRedis, type TestRedis } from '../store/redis.ts'
import { type Host, type HostOptions, startHost } from './host.ts'

const FIRST_RUN_MS_MAX = 10_000
const RAISED_MS_MAX = 10_000

export interface CrashScene {
  readonly redis: TestRedis
  readonly settings: Readonly<Record<string, string>>
  readonly firstRun: FirstRun
  end(): Promise<void>
}

/** A scene whose service still runs. */
export interface RunningScene extends CrashScene {
  readonly host: Host
}

/** Creates one with `startScene`, and stops its service, for tests that start it in another way. */
export async function setScene(...how: Parameters<typeof startScene>): Promise<CrashScene> {
  const scene = await startScene(...how)
  await scene.host.kill('SIGTERM')
  return scene
}

/**
 * Makes the store, starts the service with its first account, and raises that account's limits.
 * @param more settings of the service over those of the tests
 * @param store how the store is started
 * @param how the process is started
 */
export async function startScene(
  more: Readonly<Record<string, string>> = {},
  store: Parameters<typeof startRedis>[0] = {},
  how: Pick<HostOptions, 'nodeArgs'> = {},
): Promise<RunningScene> {
  const redis = await startRedis(store)
  const dataDir = mkdtempSync(join(tmpdir(), 'sendwright-crash-'))
  const settings = {
    REDIS_URL: `unix://${redis.socketPath}`,
    SECRET_KEY: 'a secret of the tests that is long enough',
    DATA_DIR: dataDir,
    HTTP_PORT: String(await freePort()),
    OPERATOR_PORT: String(await freePort()),
    MX_PORT: '0',
    SUBMISSION_PORT: '0',
    SUBMISSION_TLS_PORT: '0',
    EDGE_RATE: '0',
    LOG_LEVEL: 'fatal',
    ...more,
  }
  const host = await startHost(settings, how)
  const path = join(dataDir, 'first-run.json')
  await until(() => existsSync(path), FIRST_RUN_MS_MAX)
  const firstRun = JSON.parse(readFileSync(path, 'utf8')) as FirstRun
  await raiseLimits(Number(settings.OPERATOR_PORT), firstRun)
  return {
    redis,
    settings,
    firstRun,
    host,
    async end() {
      await redis.stop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

/** Takes the limits of the first account out of a test's way. */
export async function raiseLimits(operatorPort: number, { account, operatorToken }: FirstRun): Promise<void> {
  const much = 1_000_000_000
  const status = await until(async () => {
    const answer = await fetch(`http://127.0.0.1:${operatorPort}/v1/operator/accounts/${account.accountId}`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${operatorToken}`, 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify({ testPerMinuteLimit: much, testMonthlyCap: much, perMinuteLimit: much }),
    })
    await answer.text()
    return answer.status === 503 ? null : answer.status
  }, RAISED_MS_MAX)
  if (status !== 200) throw new Error(`Limits were not raised: ${status}`)
}
