/**
 * losses - manual failovers to a replica that lagged: each process reports, once for each shard, how many acknowledged
 * commits the store has lost, and counts them.
 */
import { rmSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { seedAccounts } from '../../bench/contestants/seed.ts'
import { SHARDS } from '../../cluster/id.ts'
import { metaKey } from '../../cluster/keyspace.ts'
import { startLoad } from '../support/clients/ledger.ts'
import { freePort } from '../support/machine/port.ts'
import { until } from '../support/machine/until.ts'
import { FLEET_SECRET, type Fleet, isReady } from '../support/service/fleet.ts'
import { startRedis } from '../support/store/redis.ts'
import { FREE } from './valve.ts'
import { type ValvedFleet, withValvedFleet } from './valved-fleet.ts'

export interface LossReport {
  /** Commits that were confirmed and that the store after the failover does not have. */
  readonly lost: number
  /** The counts of the processes. */
  readonly counted: number
  /** Shards with losses, and lines that report them. */
  readonly shards: number
  readonly lines: number
}

const ACCOUNTS = 16
const CLIENTS = 4
const EVERY_MS = 20
const MESSAGES = 60
const FAILURE_MS_MAX = 60_000
const SENTENCE = /The store has lost confirmed commits/g
/** The deliveries of a message are committed by then: two checks in a row find the same. */
const CALM_MS = 1_500

/** One failover. Every process reaches its store through a valve, which leads to the replica afterwards. */
export async function runLoss(say: (line: string) => void): Promise<LossReport> {
  const port = await freePort()
  const options = {
    roles: ['actors', 'actors', 'http'],
    settings: { LOG_LEVEL: 'error' },
    store: { port: String(port), bind: '127.0.0.1' },
  }
  return withValvedFleet(options, async (valved) => {
    const replica = await startRedis()
    try {
      return await failOver(valved, { port, replicaPath: replica.socketPath, say })
    } finally {
      await replica.stop()
      rmSync(replica.dir, { recursive: true, force: true })
    }
  })
}

async function failOver(
  { fleet, valves, leadTo }: ValvedFleet,
  { port, replicaPath, say }: { port: number; replicaPath: string; say: (line: string) => void },
): Promise<LossReport> {
  const [primary, replica] = [new Redis({ path: fleet.redis.socketPath }), new Redis({ path: replicaPath })]
  const seeding = { socketPath: fleet.redis.socketPath, accounts: ACCOUNTS, over: ACCOUNTS, mode: 'test' } as const
  const tokens = await seedAccounts({ ...seeding, secretKey: FLEET_SECRET })
  await replica.replicaof('127.0.0.1', port)
  await until(async () => /master_link_status:up/.test(await replica.info('replication')), FAILURE_MS_MAX)
  await send(fleet, tokens)
  await settled(primary)
  await replica.replicaof('NO', 'ONE')
  const before = await seqs(replica)
  await send(fleet, tokens)
  const after = await settled(primary)
  const gone = after.map((seq, shard) => Math.max(0, seq - (before[shard] ?? 0)))
  const lost = gone.reduce((sum, count) => sum + count, 0)
  const shards = gone.filter((count) => count > 0).length
  leadTo(replicaPath)
  const rule = { names: null, toStore: FREE, fromStore: FREE, severs: true }
  for (const valve of valves.values()) valve.set(rule)
  for (const valve of valves.values()) valve.set(null)
  await Promise.all(fleet.vessels.map(isReady))
  await until(async () => (await counted(fleet)) >= lost, FAILURE_MS_MAX).catch(() => undefined)
  await send(fleet, tokens)
  const lines = fleet.vessels.flatMap(({ host }) => [...host.said().matchAll(SENTENCE)]).length
  const report = { lost, counted: await counted(fleet), shards, lines }
  say(`a failover by hand lost ${lost} commits of ${shards} shards: ${report.counted} counted, ${lines} lines`)
  primary.disconnect()
  replica.disconnect()
  return report
}

/** So many messages, each until it is accepted. */
async function send(fleet: Fleet, tokens: readonly string[]): Promise<void> {
  const load = startLoad({
    port: fleet.with('http').map(({ httpPort }) => httpPort),
    token: tokens,
    clients: CLIENTS,
    everyMs: EVERY_MS,
    recipient: (n) => `person${n}@example.com`,
  })
  await load.passes(MESSAGES)
  await load.end()
}

/** Commits of each shard, once no more are made. */
async function settled(redis: Redis): Promise<number[]> {
  let last: number[] = []
  await until(async () => {
    const before = last
    await pause(CALM_MS)
    last = await seqs(redis)
    return before.join() === last.join()
  }, FAILURE_MS_MAX)
  return last
}

async function seqs(redis: Redis): Promise<number[]> {
  const pipeline = redis.pipeline()
  for (let shard = 0; shard < SHARDS; shard += 1) pipeline.hget(metaKey(shard), 'seq')
  return ((await pipeline.exec()) ?? []).map(([, seq]) => Number(seq))
}

/** The metric of all processes. */
async function counted(fleet: Fleet): Promise<number> {
  const texts = await Promise.all(
    fleet.vessels.map(async ({ operatorPort }) => {
      const answer = await fetch(`http://127.0.0.1:${operatorPort}/metrics`, { headers: { connection: 'close' } })
      return answer.text()
    }),
  )
  return texts.reduce((sum, text) => sum + Number(/^\w*store_lost_commits\w* (\d+)/m.exec(text)?.[1] ?? 0), 0)
}

/** The broken promises. */
export function failuresOfLoss({ lost, counted, shards, lines }: LossReport): string[] {
  if (lost === 0) return ['A failover lost nothing: it proves nothing']
  const isTold = counted === lost && lines === shards
  return isTold ? [] : [`Lost ${lost} commits of ${shards} shards, counted ${counted}, said ${lines} times`]
}
