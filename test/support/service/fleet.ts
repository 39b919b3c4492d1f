/**
 * fleet - several processes of the service on one Redis, each with its roles, to be ended and started again one by one.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FirstRun } from '../../../src/service/first-start.ts'
import { freePort } from '../machine/port.ts'
import { until } from '../machine/until.ts'
import { startRedis, type TestRedis } from '../store/redis.ts'
import { raiseLimits } from './crash-scene.ts'
import { type Host, readinessAt, startHost } from './host.ts'

export const FLEET_SECRET = 'a secret of the tests that is long enough'
const FIRST_RUN_MS_MAX = 10_000

/** One process of the fleet; its host changes with each start. */
export interface Vessel {
  readonly name: string
  readonly roles: string
  readonly settings: Readonly<Record<string, string>>
  readonly httpPort: number
  readonly operatorPort: number
  host: Host
}

export interface Fleet {
  readonly redis: TestRedis
  readonly firstRun: FirstRun
  readonly vessels: readonly Vessel[]
  /** Those that run a role. */
  with(role: 'http' | 'actors'): Vessel[]
  /** Starts a process of the fleet again. It must have ended. */
  start(vessel: Vessel, ready?: boolean): Promise<void>
  end(): Promise<void>
}

/**
 * Starts one process for each entry of `roles` (`http`, `actors`, `all`); limits of its first account are out of the
 * way.
 */
export async function startFleet(
  roles: readonly string[],
  { store, settings = {}, address, checkout }: FleetOptions = {},
): Promise<Fleet> {
  const redis = await startRedis(store)
  const dataDir = mkdtempSync(join(tmpdir(), 'sendwright-fleet-'))
  const vessels: Vessel[] = []
  const end = async (): Promise<void> => {
    await Promise.all(vessels.map(({ host }) => host.kill('SIGKILL')))
    await redis.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
  try {
    for (const [place, role] of roles.entries()) {
      const name = `${role}-${place}`
      const [httpPort, operatorPort] = [await freePort(), await freePort()]
      const own = {
        REDIS_URL: `unix://${address?.(name, redis) ?? redis.socketPath}`,
        SECRET_KEY: FLEET_SECRET,
        DATA_DIR: dataDir,
        HTTP_PORT: String(httpPort),
        OPERATOR_PORT: String(operatorPort),
        // An earlier version may not know how to go without.
        SUBMISSION_PORT: checkout === undefined ? '0' : String(await freePort()),
        SUBMISSION_TLS_PORT: checkout === undefined ? '0' : String(await freePort()),
        EDGE_RATE: '0',
        LOG_LEVEL: 'fatal',
        ROLES: role,
        ...settings,
      }
      // A process without shards is ready once another one has taken them.
      vessels.push({
        name,
        roles: role,
        settings: own,
        httpPort,
        operatorPort,
        host: await startHost(own, { ready: false, checkout }),
      })
    }
    await Promise.all(vessels.map(isReady))
    const path = join(dataDir, 'first-run.json')
    await until(() => existsSync(path), FIRST_RUN_MS_MAX)
    const firstRun = JSON.parse(readFileSync(path, 'utf8')) as FirstRun
    const having = (role: string): Vessel[] => vessels.filter((one) => one.roles === 'all' || one.roles === role)
    await raiseLimits(having('http')[0]?.operatorPort ?? 0, firstRun)
    return {
      redis,
      firstRun,
      vessels,
      with: having,
      async start(vessel, ready = true) {
        vessel.host = await startHost(vessel.settings, { ready })
      },
      end,
    }
  } catch (error) {
    await end()
    throw error
  }
}

interface FleetOptions {
  /**
   * A built checkout of another version, which the processes run at first. Processes that are started again run this
   * one.
   */
  readonly checkout?: string
  readonly store?: Parameters<typeof startRedis>[0]
  readonly settings?: Readonly<Record<string, string>>
  /** Socket through which a process reaches the store; the store's own by default. */
  readonly address?: (name: string, redis: TestRedis) => string | undefined
}

const READY_MS_MAX = 60_000

/** Resolves when every shard has a living owner, as a process sees it. */
export async function isReady({ host, operatorPort, name }: Vessel): Promise<void> {
  await until(async () => {
    if (!host.isRunning()) throw new Error(`${name} ended: ${host.said()}`)
    return (await readinessAt(operatorPort)) === 200
  }, READY_MS_MAX)
}
