/**
 * request-log - the requests that this process answered, written once a second outside the commits
 *
 * States of a row: recorded in memory, written within about a second, removed by age or by the bound. Rows that the
 * store does not take at once are lost, and so is the last second of a process that dies. No caller waits for them.
 *
 * Bounds: rows in memory, rows of an entry, rows and age of a stream.
 *
 * Keys: `requests:<account>:<r or a>` (`src/state/request-row.ts`)
 *
 * Spec request.log, retention.requests
 */

import { promisify } from 'node:util'
import { constants, deflateRaw } from 'node:zlib'
import { homeShard } from '../../cluster/id.ts'
import { REQUESTS_KEPT_MAX } from '../../schemas/limits.ts'
import {
  REQUEST_DEFLATED_FIELD,
  REQUEST_LIFE_MS,
  REQUEST_ROWS_FIELD,
  REQUESTS_FIELD,
  type RequestResult,
  type RequestRow,
  RequestRows,
  requestsKey,
} from '../state/request-row.ts'
import type { Nodes } from './nodes.ts'

const FLUSH_MS = 1_000
/** Rows that wait for the next second, of all accounts: 15 MB. */
const NOTED_MAX = 50_000
/** Maximum rows of one entry, because a search for one unpacks them all. */
const ENTRY_ROWS_MAX = 500
/** Entries over the bound that one write removes. */
const REMOVED_MAX = 100
/** Entries that one call writes, and rows in them: the store does nothing else in the meantime. */
const CALL_ENTRIES_MAX = 32
const CALL_ROWS_MAX = 2_000
/**
 * A text is deflated from this length on if its rows have this average length, because most of it is not ids then.
 * Deflating costs memory that V8 counts as garbage, a quarter of a megabyte each time.
 */
const DEFLATED_FROM_CHARS = 4_096
const DEFLATED_FROM_ROW_CHARS = 64

/** KEYS: streams of one shard. ARGV: rows kept; of each stream how many rows it gets, field, text, life in ms. */
const APPEND = `#!lua
local time = redis.call('TIME')
for i = 1, #KEYS do
  local key, at, kept = KEYS[i], 4 * i - 2, tonumber(ARGV[1])
  local last = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)[1]
  local count = tonumber(ARGV[at])
  if last then count = count + tonumber(last[2][2]) end
  redis.call('XADD', key, '*', '${REQUESTS_FIELD}', string.format('%.0f', count), ARGV[at + 1], ARGV[at + 2])
  redis.call('XTRIM', key, 'MINID', string.format('%.0f', time[1] * 1000 - tonumber(ARGV[at + 3])))
  for _ = 1, count > kept and ${REMOVED_MAX} or 0 do
    local first = redis.call('XRANGE', key, '-', '+', 'COUNT', 1)[1]
    if not first or tonumber(first[2][2]) > count - kept then break end
    redis.call('XDEL', key, first[1])
  end
  redis.call('PEXPIRE', key, ARGV[at + 3])
end
return #KEYS
`

const deflate = promisify(deflateRaw)

/** Takes rows of requests. */
export interface RequestLog {
  /** Never waits, never throws. */
  note(accountId: string, row: RequestRow): void
  /** Writes the recorded rows, and accepts no further ones. */
  close(): Promise<void>
}

/** Opens the log of this process. `failed` is called with the reason for lost rows. */
export function openRequestLog(nodes: Nodes, failed: (fault: unknown) => void): RequestLog {
  const streams = { refused: new Map<string, NotedStream>(), answered: new Map<string, NotedStream>() }
  let waiting = 0
  let writing: Promise<void> | null = null
  const flush = async (): Promise<void> => {
    if (writing !== null) return
    const taken = [...dropIdle(streams.refused), ...dropIdle(streams.answered)]
    if (taken.length === 0) return
    writing = writeAll(nodes, taken, { failed, took: (rows) => (waiting -= rows) })
    await writing
    writing = null
  }
  const timer = setInterval(() => void flush(), FLUSH_MS).unref()
  return {
    note(accountId, row) {
      if (waiting >= NOTED_MAX) return
      waiting += 1
      const result = row.status >= 400 ? 'refused' : 'answered'
      let stream = streams[result].get(accountId)
      if (stream === undefined) {
        stream = new NotedStream(accountId, result)
        streams[result].set(accountId, stream)
      }
      stream.add(row)
    },
    async close() {
      clearInterval(timer)
      await writing
      await flush()
    },
  }
}

/** Rows of one entry. */
interface Entry {
  readonly count: number
  readonly text: string
}

/** Recorded rows of one stream; kept while each second has new ones. */
class NotedStream {
  readonly shard: number
  readonly key: string
  readonly lifeMs: number
  private full: Entry[] = []
  private readonly rows = new RequestRows()

  constructor(accountId: string, result: RequestResult) {
    this.shard = homeShard(accountId)
    this.key = requestsKey(this.shard, accountId, result)
    this.lifeMs = REQUEST_LIFE_MS[result]
  }

  get isEmpty(): boolean {
    return this.rows.count === 0 && this.full.length === 0
  }

  add(row: RequestRow): void {
    this.rows.add(row)
    if (this.rows.count === ENTRY_ROWS_MAX) this.full.push(this.takeRows())
  }

  take(): Entry[] {
    const entries = this.full
    this.full = []
    if (this.rows.count > 0) entries.push(this.takeRows())
    return entries
  }

  private takeRows(): Entry {
    const { count } = this.rows
    return { count, text: this.rows.take() }
  }
}

/** Streams that have rows; the others go. */
function dropIdle(streams: Map<string, NotedStream>): NotedStream[] {
  for (const [accountId, stream] of streams) if (stream.isEmpty) streams.delete(accountId)
  return [...streams.values()]
}

/** The writes of one call. */
interface Call {
  readonly keys: string[]
  readonly args: (string | number)[]
  rows: number
}

/** If the Redis of a shard is unreachable, only that shard's rows are lost; the first fault is reported. */
async function writeAll(
  nodes: Nodes,
  streams: readonly NotedStream[],
  { failed, took }: { readonly failed: (fault: unknown) => void; readonly took: (rows: number) => void },
): Promise<void> {
  let isTold = false
  const send = async (shard: number, { keys, args }: Call): Promise<void> => {
    try {
      await nodes.nodeOf(shard).eval(APPEND, keys.length, ...keys, REQUESTS_KEPT_MAX, ...args)
    } catch (fault) {
      if (!isTold) failed(fault)
      isTold = true
    }
  }
  for (const [shard, own] of byShard(streams)) {
    let call: Call = { keys: [], args: [], rows: 0 }
    for (const stream of own) {
      const entries = stream.take()
      took(countOf(entries))
      for (const entry of lastOf(entries)) {
        call.keys.push(stream.key)
        call.args.push(entry.count, ...(await fieldOf(entry)), stream.lifeMs)
        call.rows += entry.count
        if (call.keys.length < CALL_ENTRIES_MAX && call.rows < CALL_ROWS_MAX) continue
        await send(shard, call)
        call = { keys: [], args: [], rows: 0 }
      }
    }
    if (call.keys.length > 0) await send(shard, call)
  }
}

/** Streams of one shard may be written by one call. */
function byShard(streams: readonly NotedStream[]): ReadonlyMap<number, readonly NotedStream[]> {
  const found = new Map<number, NotedStream[]>()
  for (const stream of streams) {
    const own = found.get(stream.shard)
    if (own === undefined) found.set(stream.shard, [stream])
    else own.push(stream)
  }
  return found
}

function countOf(entries: readonly Entry[]): number {
  return entries.reduce((sum, { count }) => sum + count, 0)
}

/** Entries that would be removed again at once need not be written. */
function lastOf(entries: readonly Entry[]): readonly Entry[] {
  let from = 0
  let rest = countOf(entries)
  for (const { count } of entries) {
    rest -= count
    if (rest < REQUESTS_KEPT_MAX) break
    from += 1
  }
  return entries.slice(from)
}

async function fieldOf({ count, text }: Entry): Promise<[name: string, text: string]> {
  if (text.length < Math.max(DEFLATED_FROM_CHARS, count * DEFLATED_FROM_ROW_CHARS)) return [REQUEST_ROWS_FIELD, text]
  const deflated = await deflate(text, { level: constants.Z_BEST_SPEED }).catch(() => null)
  if (deflated === null) return [REQUEST_ROWS_FIELD, text]
  return [REQUEST_DEFLATED_FIELD, deflated.toString('base64')]
}
