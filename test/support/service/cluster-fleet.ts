/** cluster-fleet - services of this process over a Redis Cluster: two that run shards, one with HTTP */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { seedAccounts } from '../../../bench/contestants/seed.ts'
import { type RunningService, startService } from '../../../src/main.ts'
import type { Config } from '../../../src/process/config.ts'
import { freePort } from '../machine/port.ts'
import { until } from '../machine/until.ts'
import { startCluster, type TestCluster } from '../store/redis-cluster.ts'
import { FLEET_SECRET } from './fleet.ts'
import { readinessAt } from './host.ts'
import { configOf } from './service.ts'

const READY_MS_MAX = 60_000

export interface ClusterFleet {
  readonly cluster: TestCluster
  readonly httpPort: number
  /** Keys of test servers, of accounts dealt out to the shards from 0 on. */
  readonly keys: readonly string[]
  /** Resolves when every process reports that it is ready. */
  ready(): Promise<void>
  end(): Promise<void>
}

/** Starts cluster and services. In: the accounts to distribute, and the form of the cluster. */
export async function startClusterFleet({
  accounts,
  durability,
  replicas = 0,
  lagsMs = [],
  settings = {},
}: {
  accounts: number
  durability: Config['durability']
  replicas?: number
  /** How far replicas are behind, as `startCluster` has it. */
  lagsMs?: readonly number[]
  settings?: Record<string, string>
}): Promise<ClusterFleet> {
  const cluster = await startCluster({ replicas, lagsMs, settings })
  const dirs: string[] = []
  const services: RunningService[] = []
  const operatorPorts: number[] = []
  const httpPort = await freePort()
  const start = async (roles: string): Promise<void> => {
    const dir = mkdtempSync(join(tmpdir(), 'sendwright-service-'))
    dirs.push(dir)
    const operatorPort = await freePort()
    operatorPorts.push(operatorPort)
    const config = configOf({
      REDIS_URL: cluster.seeds[0] ?? '',
      SECRET_KEY: FLEET_SECRET,
      DATA_DIR: dir,
      ROLES: roles,
      HTTP_PORT: String(httpPort),
      OPERATOR_PORT: String(operatorPort),
      MX_PORT: '0',
      CONTENT_STORE: 'redis',
      EDGE_RATE: '0',
      LOG_LEVEL: process.env.LOG_LEVEL ?? 'silent',
    })
    services.push(
      await startService({ ...config, redisUrls: cluster.seeds.slice(0, 3), durability }, { print: () => undefined }),
    )
  }
  for (const roles of ['actors', 'actors', 'http']) await start(roles)
  const ready = async (): Promise<void> => {
    await until(async () => {
      const answers = await Promise.all(operatorPorts.map(readinessAt))
      return answers.every((status) => status === 200)
    }, READY_MS_MAX)
  }
  await ready()
  const seeding = { socketPath: '', seeds: cluster.seeds, accounts, over: accounts, mode: 'test' } as const
  const keys = await seedAccounts({ ...seeding, secretKey: FLEET_SECRET })
  return {
    cluster,
    httpPort,
    keys,
    ready,
    async end() {
      for (const service of services.toReversed()) await service.stop()
      await cluster.stop()
      for (const dir of dirs) rmSync(dir, { recursive: true, force: true })
    },
  }
}
