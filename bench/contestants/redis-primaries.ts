/**
 * redis-primaries - redis-servers of one measurement that make a Redis Cluster without replicas, or the one beside it
 *
 * Guarantee: they differ from each other and from the store of other measurements (`store.ts`) in nothing but their
 * number, the cluster's own settings and the way to them, which is a port of the loopback.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { redisArguments } from '../../cluster/embedded/binary.ts'
import { freePorts } from '../../test/support/machine/port.ts'
import { ROOT } from '../../test/support/machine/root.ts'
import { until } from '../../test/support/machine/until.ts'

const MEMORY_BYTES = 2 * 1024 ** 3
const SLOTS = 16_384
const READY_MS_MAX = 60_000

export interface BenchPrimaries {
  /** The first address, for contestants that take only one. */
  readonly socketPath: string
  /** Parent of the data directories of this measurement, which is removed with them. */
  readonly dir: string
  readonly seeds: readonly string[]
  readonly pids: readonly number[]
  /** For reads outside of the measurement. */
  readonly clients: readonly Redis[]
  /** Ends them and removes their directories. */
  stop(): Promise<void>
}

/** Starts so many; one alone is no cluster. */
export async function startPrimaries(count: number): Promise<BenchPrimaries> {
  mkdirSync(join(ROOT, 'data'), { recursive: true })
  const dir = mkdtempSync(join(ROOT, 'data', 'bench-'))
  const first = await freePorts(2 * count)
  const ports = Array.from({ length: count }, (_, n) => first + n)
  const servers = ports.map((port) => launch(dir, port, count > 1 ? port + count : 0))
  const endWithUs = (): void => {
    for (const server of servers) server.kill('SIGKILL')
  }
  process.once('exit', endWithUs)
  const clients = ports.map((port) => new Redis({ port, host: '127.0.0.1', retryStrategy: () => 100 }))
  for (const client of clients) client.on('error', () => undefined)
  await Promise.all(clients.map((client) => client.ping()))
  if (count > 1) await joinAll(clients, ports)
  return {
    socketPath: join(dir, String(first), 'redis.sock'),
    dir,
    seeds: ports.map((port) => `redis://127.0.0.1:${port}`),
    pids: servers.map(({ pid }) => pid as number),
    clients,
    async stop() {
      for (const client of clients) client.disconnect()
      await Promise.all(servers.map(end))
      process.removeListener('exit', endWithUs)
      rmSync(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    },
  }
}

/** Gives each its share of the slots and waits until all agree. */
async function joinAll(clients: readonly Redis[], ports: readonly number[]): Promise<void> {
  const share = Math.ceil(SLOTS / clients.length)
  for (const [n, client] of clients.entries()) {
    await client.call('CLUSTER', 'SET-CONFIG-EPOCH', n + 1)
    await client.call('CLUSTER', 'ADDSLOTSRANGE', n * share, Math.min(SLOTS, (n + 1) * share) - 1)
    if (n > 0)
      await clients[0]?.call('CLUSTER', 'MEET', '127.0.0.1', String(ports[n]), String((ports[n] ?? 0) + ports.length))
  }
  await until(async () => {
    const infos = await Promise.all(clients.map((client) => client.call('CLUSTER', 'INFO') as Promise<string>))
    return infos.every((text) => text.includes('cluster_state:ok') && text.includes(`cluster_size:${clients.length}`))
  }, READY_MS_MAX)
}

function launch(parent: string, port: number, bus: number): ChildProcess {
  const dir = join(parent, String(port))
  mkdirSync(dir)
  const output = openSync(join(dir, 'redis.log'), 'a')
  const cluster = ['--cluster-enabled', 'yes', '--cluster-require-full-coverage', 'no', '--cluster-port', String(bus)]
  const withoutReplicas = ['--cluster-replica-no-failover', 'yes']
  const args = redisArguments(dir, 'fsync', { memoryBytes: MEMORY_BYTES, port })
  return spawn('redis-server', bus === 0 ? args : [...args, ...cluster, ...withoutReplicas], {
    cwd: dir,
    stdio: ['ignore', output, output],
  })
}

async function end(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  const gone = once(server, 'exit')
  server.kill('SIGKILL')
  await gone
}
