/**
 * redis-cluster - `sendwright cluster plan` and `cluster move`: plan and change the holders of shards in a Redis
 * Cluster while the service runs; and the Redis part of `cluster status`
 */
import { type Command, InvalidArgumentError } from 'commander'
import type { RedisNodeRow } from '../../../schemas/operator/cluster.ts'
import { type Config, readConfig } from '../../process/config.ts'
import type { ShardMoved } from '../../store/cluster/move-shards.ts'
import type { PlannedMove } from '../../store/cluster/plan-moves.ts'
import { CommandFailure } from '../console/failure.ts'
import { collect } from '../console/options.ts'
import type { Ended } from '../console/print.ts'
import { formatTable } from '../console/table.ts'

const SHARDS = 256
const PRIMARIES_MAX = 256
const MB = 1024 ** 2
/** A line of progress at most this often. */
const PROGRESS_MS = 1_000

interface PlanOptions {
  without?: string[]
  json?: boolean
}

/** Adds the commands. `ended` is called with the exit code of the command that ran. */
export function addRedisClusterCommands(cluster: Command, ended: Ended): void {
  cluster
    .command('plan')
    .argument('[primaries]', 'number of primaries of a new cluster', parsePrimaries)
    .description(
      'print the commands that give every Redis of the cluster in REDIS_URL the same number of shards; with a number, slot ranges for a new cluster of that many primaries',
    )
    .option('--without <node>', 'host:port of a primary to empty of shards; may be repeated', collect)
    .option('--json', 'print the plan as one line of JSON')
    .action(async (primaries: number | undefined, options: PlanOptions) =>
      ended(primaries === undefined ? await planShards(options) : await planSlots(primaries, options)),
    )
  cluster
    .command('move')
    .argument('<shards>', 'numbers of shards, such as 17 or 3,8-11', parseShards)
    .argument('<node>', 'host:port of the target primary, as printed by cluster status')
    .description(
      'move shards to another Redis of the cluster in REDIS_URL while the service runs; to resume an interrupted move, run the command again',
    )
    .option('--json', 'print the result as one line of JSON')
    .action(async (shards: readonly number[], node: string, options: { json?: boolean }) =>
      ended(await moveThem(shards, node, options)),
    )
}

/** Whether a Redis works, which means that a primary with shards answers, or a replica is in sync. */
export function isServing({ role, isUp, shards, isInStep }: RedisNodeRow): boolean {
  return role === 'primary' ? isUp || shards.length === 0 : isUp && isInStep
}

/** Every Redis of a cluster as a table. */
export function formatRedis(nodes: readonly RedisNodeRow[]): string {
  const rows = nodes.map((node) => [
    node.name,
    node.role,
    describeState(node),
    node.role === 'primary' ? String(node.shards.length) : '-',
    node.role === 'primary' ? String(node.replicasInStep) : '-',
    formatMemory(node),
    node.clockOffMs === null ? '-' : `${node.clockOffMs} ms`,
    node.commandsPerSecond === null ? '-' : String(node.commandsPerSecond),
    node.primary ?? '-',
  ])
  const head = ['redis', 'role', 'state', 'shards', 'replicas', 'memory', 'clock', 'commands/s', 'follows']
  return formatTable(head, rows)
}

function describeState(node: RedisNodeRow): string {
  if (node.isUp) return isServing(node) ? 'up' : 'behind'
  // An unreachable primary without shards blocks no request: another one has taken over.
  return isServing(node) ? 'gone' : 'AWAY'
}

/** The state of every Redis as seen from here; null if no node of REDIS_URL answers. */
export async function lookAtRedis(): Promise<RedisNodeRow[] | null> {
  const read = readConfig()
  if (!read.ok || read.config.redisUrls.length === 0) return null
  const { readState } = await import('../../store/cluster/move-shards.ts')
  const { redisRows } = await import('../../store/cluster/cluster-state.ts')
  return readState(read.config).then(redisRows, () => null)
}

function formatMemory({ usedBytes, bytesMax }: RedisNodeRow): string {
  if (usedBytes === null) return '-'
  const used = `${Math.round(usedBytes / MB)} MB`
  return bytesMax === null || bytesMax === 0 ? `${used}, no bound` : `${Math.round((100 * usedBytes) / bytesMax)} %`
}

async function planShards({ without = [], json }: PlanOptions): Promise<number> {
  const [{ readHolders }, { planMoves }] = await Promise.all([
    import('../../store/cluster/move-shards.ts'),
    import('../../store/cluster/plan-moves.ts'),
  ])
  const { redisUrls, durability } = settings()
  const holders = await told(readHolders({ redisUrls, durability }))
  const unknown = without.find((name) => !holders.some((one) => one.name === name))
  if (unknown !== undefined)
    throw new CommandFailure(
      `No primary is named ${unknown}: the primaries are ${holders.map(({ name }) => name).join(', ')}`,
    )
  const moves = await told((async () => planMoves(holders, new Set(without)))())
  if (json) console.log(JSON.stringify({ moves }))
  else if (moves.length === 0) console.error('Nothing to move: the shards are evenly distributed')
  else for (const move of moves) console.log(formatMove(move))
  return 0
}

function formatMove({ shards, to }: PlannedMove): string {
  return `sendwright cluster move ${formatShards(shards)} ${to}`
}

async function planSlots(primaries: number, { json }: PlanOptions): Promise<number> {
  const { holdsCommon, planRanges } = await import('../../store/cluster/plan-moves.ts')
  const ranges = planRanges(primaries)
  if (json) console.log(JSON.stringify({ ranges }))
  else {
    const rows = ranges.map((range, n) => [
      String(n + 1),
      String(range.shards),
      holdsCommon(range) ? 'and keys outside any shard' : '',
      `CLUSTER ADDSLOTSRANGE ${range.first} ${range.last}`,
    ])
    console.log(formatTable(['primary', 'shards', '', 'order'], rows))
  }
  return 0
}

async function moveThem(shards: readonly number[], to: string, { json }: { json?: boolean }): Promise<number> {
  const { moveShards } = await import('../../store/cluster/move-shards.ts')
  const { redisUrls, durability } = settings()
  const moved: ShardMoved[] = []
  let toldAtMs = Number.NEGATIVE_INFINITY
  const progress = (shard: number, gone: number, keys: number): void => {
    if (json || performance.now() - toldAtMs < PROGRESS_MS) return
    toldAtMs = performance.now()
    console.error(`shard ${shard}: ${gone} of ${keys} keys`)
  }
  const done = (one: ShardMoved): void => {
    moved.push(one)
    if (json) return
    const place = `${moved.length} of ${shards.length}`
    if (one.from === one.to) console.log(`shard ${one.shard} is at ${one.to} (${place})`)
    else console.log(`shard ${one.shard}: ${one.keys} keys from ${one.from} to ${one.to}, ${one.ms} ms (${place})`)
  }
  await told(moveShards({ redisUrls, durability }, { shards, to, progress, done }))
  if (json) console.log(JSON.stringify({ moved }))
  return 0
}

function settings(): Config {
  const read = readConfig()
  if (!read.ok) throw new CommandFailure(`Wrong settings: ${read.mistakes.join('; ')}`)
  return read.config
}

/** Its errors are sentences. */
function told<Result>(act: Promise<Result>): Promise<Result> {
  return act.catch((error: Error) => {
    throw new CommandFailure(error.message)
  })
}

function parsePrimaries(text: string): number {
  const primaries = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (primaries >= 1 && primaries <= PRIMARIES_MAX) return primaries
  throw new InvalidArgumentError(`Expected a number from 1 to ${PRIMARIES_MAX}.`)
}

/** `17` or `3,8-11`, in order, each once. */
function parseShards(text: string): number[] {
  const found = new Set<number>()
  for (const part of text.split(',')) {
    const [, first = '', last = first] = /^(\d{1,3})(?:-(\d{1,3}))?$/.exec(part) ?? []
    if (first === '' || Number(last) < Number(first) || Number(last) >= SHARDS)
      throw new InvalidArgumentError(`Expected shards from 0 to ${SHARDS - 1}, such as 17 or 3,8-11.`)
    for (let shard = Number(first); shard <= Number(last); shard += 1) found.add(shard)
  }
  return [...found]
}

/** As `move` takes them. */
function formatShards(shards: readonly number[]): string {
  const runs: [number, number][] = []
  for (const shard of shards.toSorted((a, b) => a - b)) {
    const last = runs.at(-1)
    if (last !== undefined && last[1] === shard - 1) last[1] = shard
    else runs.push([shard, shard])
  }
  return runs.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(',')
}
