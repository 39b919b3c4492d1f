/**
 * cluster - `sendwright inspect`, `sendwright cluster status`, `sendwright audit`: shards, processes, entities, the
 * actions of operators.
 */
import type { Command } from 'commander'
import { dueKey, journalKey, mailboxKey, metaKey, WORKERS_KEY } from '../../../cluster/keyspace.ts'
import type { AuditList } from '../../../schemas/operator/audit.ts'
import type { Entity, ShardList } from '../../../schemas/operator/cluster.ts'
import { type ClientOptions, makeClient } from '../console/client.ts'
import { CommandFailure } from '../console/failure.ts'
import { parseInteger, withNote, withOperatorOptions } from '../console/options.ts'
import { type Ended, print } from '../console/print.ts'
import { formatTable } from '../console/table.ts'
import { inspectSegment } from '../operator/objects.ts'
import { formatReads, type InspectOptions, inspectMessage } from './inspect-message.ts'
import { addRedisClusterCommands, formatRedis, isServing, lookAtRedis } from './redis-cluster.ts'

const AUDIT_PAGE_MAX = 100
const AUDIT_LIMIT_DEFAULT = 50
const AUDIT_PAGES_MAX = 1000

type Shard = ShardList['shards'][number]

/** Adds the commands. `ended` is called with the exit code of the command that ran. */
export function addClusterCommands(program: Command, ended: Ended): void {
  const inspect = withNote(program.command('inspect <what> [id] [segment]'))
    .description(
      "what owns a shard (inspect 17), an entity's last states (inspect account <id>), how a message fares (inspect message <id>), with what was read of Redis, or the rows of a segment of a server's log (inspect segment <server> <name>), read with the settings of the service",
    )
    .option('--reveal', 'also print text and addresses of a message; recorded in the audit log')
    .action(async (what: string, id: string | undefined, segment: string | undefined, options: InspectOptions) => {
      if (id === undefined && !/^\d{1,3}$/.test(what)) inspect.error('error: give a shard, or a kind and an id')
      if (options.reveal && what !== 'message') inspect.error('error: --reveal is of a message')
      if ((what === 'segment') !== (segment !== undefined)) inspect.error('error: give a server and its segment')
      if (id !== undefined && segment !== undefined) ended(await inspectSegment(id, segment, options))
      else if (id === undefined) ended(await inspectShard(Number(what), options))
      else ended(await (what === 'message' ? inspectMessage(id, options) : inspectEntity(what, id, options)))
    })
  const cluster = program.command('cluster').description('the processes and their shards')
  withOperatorOptions(cluster.command('status'))
    .description(
      'list every Redis of a cluster, the processes and every shard that is not running; exit code 1 if there is one',
    )
    .action(async (options) => ended(await showStatus(options)))
  addRedisClusterCommands(cluster, ended)
  addAuditCommand(program, ended)
}

async function inspectShard(shard: number, options: ClientOptions): Promise<number> {
  const { shards, workers } = await readShards(options)
  const found = shards.find((one) => one.shard === shard)
  if (found === undefined) throw new CommandFailure(`No shard ${shard}: there are ${shards.length} shards`)
  const owner = workers.find(({ worker }) => worker === found.owner) ?? null
  if (options.json) console.log(JSON.stringify({ ...found, worker: owner }))
  else {
    const rows = Object.entries(found).map(([name, value]) => [name, String(value ?? '-')])
    if (owner !== null) rows.push(['host', owner.host], ['pid', String(owner.pid)])
    console.log(formatTable(['field', 'value'], rows))
    const hashes = [metaKey(shard), WORKERS_KEY].map((key) => `HGETALL ${key}`)
    const newest = `XREVRANGE ${journalKey(shard)} + - COUNT 1`
    const waiting = [`XRANGE ${mailboxKey(shard)} - + COUNT 10`, `ZRANGE ${dueKey(shard)} 0 9 WITHSCORES`]
    console.log(formatReads([...hashes, newest, ...waiting]))
  }
  return found.state === 'owned' ? 0 : 1
}

async function inspectEntity(kind: string, id: string, options: ClientOptions): Promise<number> {
  const path = `/v1/operator/entities/${encodeURIComponent(kind)}/${encodeURIComponent(id)}`
  const entity = await makeClient(options, 'operator').get<Entity>(path)
  if (options.json) console.log(JSON.stringify(entity))
  else {
    console.log(`${entity.kind} ${entity.id} on shard ${entity.shard}, newest first`)
    for (const { entry, command, events, state } of entity.states) {
      const happened = events.map((event) => (event as { type?: string }).type ?? '?').join(', ')
      console.log(`\n${entry}  ${command}: ${happened}\n${JSON.stringify(state, null, 2)}`)
    }
    console.log(formatReads(entity.reads))
  }
  return 0
}

async function showStatus(options: ClientOptions): Promise<number> {
  const seen = await readShards(options).catch(async (error: CommandFailure) => {
    // The unreachable Redis may be the one that has the operator keys; the others can be checked from here.
    const rows = isUnavailable(error) ? await lookAtRedis() : null
    if (rows === null) throw error
    if (options.json) console.log(JSON.stringify({ redis: rows }))
    else console.log(`${formatRedis(rows)}\n\n${error.message}`)
    return null
  })
  if (seen === null) return 1
  const { shards, workers, redis } = seen
  const stopped = shards.filter(({ state }) => state !== 'owned')
  if (options.json) console.log(JSON.stringify({ workers, shards, redis }))
  else {
    if (redis.length > 0) console.log(`${formatRedis(redis)}\n`)
    const rows = workers.map((worker) => [
      worker.host,
      String(worker.pid),
      worker.isLeaving ? 'leaving' : worker.isAlive ? 'alive' : 'dead',
      worker.roles.join(','),
      String(worker.shards),
      worker.worker,
    ])
    console.log(formatTable(['host', 'pid', 'state', 'roles', 'shards', 'id'], rows))
    const waiting = shards.reduce((sum, one) => sum + one.waiting, 0)
    console.log(`\n${shards.length - stopped.length} of ${shards.length} shards run, ${waiting} commands wait`)
    if (stopped.length > 0)
      console.log(`\n${formatTable(['shard', 'state', 'seq', 'journal', 'owner'], stopped.map(rowOf))}`)
  }
  return stopped.length === 0 && redis.every(isServing) ? 0 : 1
}

function isUnavailable({ body }: CommandFailure): boolean {
  return (body as { error?: string } | undefined)?.error === 'unavailable'
}

function rowOf({ shard, state, seq, journalSeq, owner }: Shard): string[] {
  return [String(shard), state, String(seq), String(journalSeq ?? '-'), owner ?? '-']
}

function readShards(options: ClientOptions): Promise<ShardList> {
  return makeClient(options, 'operator').get<ShardList>('/v1/operator/shards')
}

/** Adds the command that lists the audit log. */
function addAuditCommand(program: Command, ended: Ended): void {
  withOperatorOptions(program.command('audit'))
    .description('list the actions of operators, newest first')
    .option('--limit <n>', `maximum number (default: ${AUDIT_LIMIT_DEFAULT})`, parseInteger)
    .action(async (options) => ended(await listAudit(options)))
}

async function listAudit(options: ClientOptions & { limit?: number }): Promise<number> {
  const client = makeClient(options, 'operator')
  const { limit = AUDIT_LIMIT_DEFAULT } = options
  const found: AuditList = { entries: [], next: null }
  for (let page = 0; page < AUDIT_PAGES_MAX && found.entries.length < limit; page += 1) {
    const after = found.next === null ? '' : `&after=${found.next}`
    const rest = Math.min(AUDIT_PAGE_MAX, limit - found.entries.length)
    const answer = await client.get<AuditList>(`/v1/operator/audit?limit=${rest}${after}`)
    found.entries.push(...answer.entries)
    found.next = answer.next
    if (answer.next === null) break
  }
  return print(options, found, ({ entries }) =>
    formatTable(
      ['when', 'act', 'targets', 'note', 'by'],
      entries.map(({ at, act, targets, note, actor }) => [at, act, JSON.stringify(targets), note ?? '', actor ?? '-']),
    ),
  )
}
