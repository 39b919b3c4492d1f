/**
 * request-writes - writes recorded requests to many streams of Redis in few calls
 *
 * Bounds: streams and rows of a call, age and rows of a stream.
 *
 * Keys: `requests:<account>:<r or a>`, `requests:new`
 *
 * Spec retention.requests
 */

import { promisify } from 'node:util'
import { constants, deflateRaw } from 'node:zlib'
import type { Redis } from 'ioredis'
import { REQUESTS_KEPT_MAX } from '../../../schemas/limits.ts'
import { REQUEST_DEFLATED_FIELD, REQUEST_LIFE_MS, REQUEST_ROWS_FIELD, REQUESTS_FIELD } from '../../state/request-row.ts'
import type { Nodes } from '../nodes.ts'
import { ENTRY_ROWS_MAX, type NotedStream, type RowsEntry, type ShardRows } from './noted.ts'

/** Entries over the bound that one write removes. */
const REMOVED_MAX = 100
/** Entries of about this many writes stay in the stream of a shard, for processes that died before they moved them. */
const SHARD_ENTRIES_MAX = 2_000
/** The stream of a shard is moved and gets its life again every minute. */
const SHARD_LIFE_MS = REQUEST_LIFE_MS.answered + 3_600_000
/** Entries that one call writes, and rows in them: the store does nothing else in the meantime. */
const CALL_ENTRIES_MAX = 32
const CALL_ROWS_MAX = 2_000
/**
 * A text is deflated from this length on if its rows have this average length, because most of it is not ids then.
 * Deflating costs memory that V8 counts as garbage, a quarter of a megabyte each time.
 */
const DEFLATED_FROM_CHARS = 4_096
const DEFLATED_FROM_ROW_CHARS = 64

/**
 * Runs `one` for each stream of a node. KEYS: the first one. ARGV: for each stream its key, the number of its values
 * and these. A stream that has moved to another node is left out alone. Returns the number of such streams and the
 * results of `one`.
 */
const eachStream = (one: string) => `#!lua flags=allow-cross-slot-keys
local time = redis.call('TIME')
local nowMs = time[1] * 1000
local function one(key, ...)
  local values = { ... }
  ${one}
end
local at, failed, results = 1, 0, {}
while at < #ARGV do
  local last = at + 1 + ARGV[at + 1]
  local isDone, result = pcall(one, ARGV[at], unpack(ARGV, at + 2, last))
  if not isDone then failed = failed + 1 end
  results[#results + 1] = isDone and result or ''
  at = last + 1
end
return { failed, unpack(results) }
`

/** Values: number of rows, field, text, life in ms. */
const APPEND = eachStream(`
  local kept = ${REQUESTS_KEPT_MAX}
  local last = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)[1]
  local count = tonumber(values[1])
  if last then count = count + tonumber(last[2][2]) end
  redis.call('XADD', key, '*', '${REQUESTS_FIELD}', string.format('%.0f', count), values[2], values[3])
  redis.call('XTRIM', key, 'MINID', string.format('%.0f', nowMs - tonumber(values[4])))
  for _ = 1, count > kept and ${REMOVED_MAX} or 0 do
    local first = redis.call('XRANGE', key, '-', '+', 'COUNT', 1)[1]
    if not first or tonumber(first[2][2]) > count - kept then break end
    redis.call('XDEL', key, first[1])
  end
  redis.call('PEXPIRE', key, values[4])
  return ''`)

/** Values: accounts with their texts. The result is the id of the entry. */
const ADD_NEW = eachStream(`
  local id = redis.call('XADD', key, 'MAXLEN', '~', ${SHARD_ENTRIES_MAX}, '*', ...)
  if redis.call('XLEN', key) == 1 then redis.call('PEXPIRE', key, ${SHARD_LIFE_MS}) end
  return id`)

/** Values: ids of entries whose rows have been moved. */
const REMOVE_MOVED = eachStream(`
  redis.call('XDEL', key, ...)
  redis.call('XTRIM', key, 'MINID', string.format('%.0f', nowMs - ${REQUEST_LIFE_MS.answered}))
  redis.call('PEXPIRE', key, ${SHARD_LIFE_MS})
  return ''`)

const deflate = promisify(deflateRaw)

/** A call of one script at one node. */
interface Call {
  readonly script: string
  readonly node: Redis
  readonly args: (string | number)[]
  readonly results: ((result: string) => unknown)[]
  rows: number
}

/** What is written of one stream. */
interface Write {
  readonly shard: number
  readonly key: string
  readonly values: readonly (string | number)[]
  readonly rows: number
  readonly done?: (result: string) => unknown
}

interface WritesLog {
  readonly failed: (fault: unknown) => void
  /** So many rows are no longer in memory. */
  readonly took: (rows: number) => void
}

/** Writes to many streams in calls of a bounded size. The first fault is reported. */
export class Writes {
  hasFailed = false
  private readonly open = new Map<Redis, Map<string, Call>>()

  private readonly nodes: Nodes
  private readonly log: WritesLog

  constructor(nodes: Nodes, log: WritesLog) {
    this.nodes = nodes
    this.log = log
  }

  /** Writes all rows of an account to its stream. */
  async append(stream: NotedStream): Promise<void> {
    const entries = stream.take()
    this.log.took(countOf(entries))
    for (const entry of lastOf(entries)) {
      const values = [entry.count, ...(await fieldOf(entry)), stream.lifeMs]
      await this.add(APPEND, { shard: stream.shard, key: stream.key, values, rows: entry.count })
    }
  }

  /** Writes the new rows of a shard to its stream. They stay in memory. */
  async addNew(of: ShardRows): Promise<void> {
    let values: string[] = []
    let rows = 0
    const done = (id: string) => of.ids.push(id)
    for (const { field, rows: own } of of.accounts.values()) {
      if (own.newCount === 0) continue
      of.began()
      rows += own.newCount
      values.push(field, own.takeNew())
      if (rows < ENTRY_ROWS_MAX) continue
      await this.add(ADD_NEW, { shard: of.shard, key: of.key, values, rows, done })
      values = []
      rows = 0
    }
    if (rows > 0) await this.add(ADD_NEW, { shard: of.shard, key: of.key, values, rows, done })
  }

  /** Removes entries of a shard's stream whose rows have been moved. */
  async removeMoved(of: ShardRows): Promise<void> {
    const { shard, key } = of
    const ids = of.takeMovedIds()
    for (let from = 0; from < ids.length; from += ENTRY_ROWS_MAX) {
      const values = ids.slice(from, from + ENTRY_ROWS_MAX)
      await this.add(REMOVE_MOVED, { shard, key, values, rows: values.length })
    }
  }

  /** Sends the calls that are not full. */
  async end(): Promise<void> {
    const calls = [...this.open.values()].flatMap((scripts) => [...scripts.values()])
    this.open.clear()
    for (const call of calls) await this.send(call)
  }

  private async add(script: string, { shard, key, values, rows, done = () => undefined }: Write): Promise<void> {
    let node: Redis
    try {
      node = this.nodes.nodeOf(shard)
    } catch (fault) {
      this.fail(fault)
      return
    }
    const scripts = this.open.get(node) ?? new Map<string, Call>()
    this.open.set(node, scripts)
    const call = scripts.get(script) ?? { script, node, args: [], results: [], rows: 0 }
    scripts.set(script, call)
    call.args.push(key, values.length, ...values)
    call.results.push(done)
    call.rows += rows
    if (call.results.length < CALL_ENTRIES_MAX && call.rows < CALL_ROWS_MAX) return
    scripts.delete(script)
    await this.send(call)
  }

  /** If a Redis is unreachable, only the rows of its shards are lost. */
  private async send({ script, node, args, results }: Call): Promise<void> {
    try {
      const [failed = 0, ...ids] = (await node.eval(script, 1, args[0] as string, ...args)) as [number, ...string[]]
      for (const [place, id] of ids.entries()) if (id !== '') results[place]?.(id)
      if (failed > 0) this.fail(new Error(`${failed} streams are at another node`))
    } catch (fault) {
      this.fail(fault)
    }
  }

  private fail(fault: unknown): void {
    if (!this.hasFailed) this.log.failed(fault)
    this.hasFailed = true
  }
}

function countOf(entries: readonly RowsEntry[]): number {
  return entries.reduce((sum, { count }) => sum + count, 0)
}

/** Entries that would be removed again at once need not be written. */
function lastOf(entries: readonly RowsEntry[]): readonly RowsEntry[] {
  let from = 0
  let rest = countOf(entries)
  for (const { count } of entries) {
    rest -= count
    if (rest < REQUESTS_KEPT_MAX) break
    from += 1
  }
  return entries.slice(from)
}

async function fieldOf({ count, text }: RowsEntry): Promise<[name: string, text: string]> {
  if (text.length < Math.max(DEFLATED_FROM_CHARS, count * DEFLATED_FROM_ROW_CHARS)) return [REQUEST_ROWS_FIELD, text]
  const deflated = await deflate(text, { level: constants.Z_BEST_SPEED }).catch(() => null)
  if (deflated === null) return [REQUEST_ROWS_FIELD, text]
  return [REQUEST_DEFLATED_FIELD, deflated.toString('base64')]
}
