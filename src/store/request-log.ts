/**
 * request-log - what this process answered, written once a second beside the commits
 *
 * States of a row: noted in memory, written within a second or so, gone with its age or with what came after it. What
 * the store does not take at once is lost, and so is the last second of a process that dies: nobody waits for it.
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
  packRequests,
  REQUEST_DEFLATED_FIELD,
  REQUEST_LIFE_MS,
  REQUEST_ROWS_FIELD,
  REQUESTS_FIELD,
  type RequestResult,
  type RequestRow,
  requestsKey,
} from '../state/request-row.ts'
import type { Nodes } from './nodes.ts'

const FLUSH_MS = 1_000
/** Rows that wait for the next second, of all accounts: 15 MB. */
const NOTED_MAX = 50_000
/** Rows of one entry: whoever looks for one unpacks them all. */
const ENTRY_ROWS_MAX = 500
/** Entries over the bound that one write removes. */
const REMOVED_MAX = 100
/** Entries that one call writes, and rows in them: the store does nothing else meanwhile. */
const CALL_ENTRIES_MAX = 32
const CALL_ROWS_MAX = 2_000
/**
 * A text is deflated from so many characters on, where rows have so many on average: most of them are not ids then. To
 * deflate costs memory that V8 counts as garbage, a quarter of a megabyte each time.
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
  /** Writes what was noted, and takes no more. */
  close(): Promise<void>
}

/** Opens the log of this process. `failed` hears why rows were lost. */
export function openRequestLog(nodes: Nodes, failed: (fault: unknown) => void): RequestLog {
  let noted = new Map<string, RequestRow[]>()
  let waiting = 0
  let writing: Promise<void> | null = null
  const flush = async (): Promise<void> => {
    if (writing !== null || waiting === 0) return
    const taken = noted
    noted = new Map()
    waiting = 0
    writing = writeAll(nodes, taken, failed)
    await writing
    writing = null
  }
  const timer = setInterval(() => void flush(), FLUSH_MS).unref()
  return {
    note(accountId, row) {
      if (waiting >= NOTED_MAX) return
      waiting += 1
      const rows = noted.get(accountId)
      if (rows === undefined) noted.set(accountId, [row])
      else rows.push(row)
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
  readonly accountId: string
  readonly result: RequestResult
  readonly rows: readonly RequestRow[]
}

/** A shard whose Redis is away loses its own rows, and no other; the first fault is told. */
async function writeAll(
  nodes: Nodes,
  noted: ReadonlyMap<string, readonly RequestRow[]>,
  failed: (error: Error) => void,
): Promise<void> {
  let isTold = false
  for (const [shard, entries] of entriesOf(noted)) {
    for (let from = 0; from < entries.length; ) {
      const to = endOfCall(entries, from)
      await append(nodes, shard, entries.slice(from, to)).catch((error: Error) => {
        if (!isTold) failed(error)
        isTold = true
      })
      from = to
    }
  }
}

/** Entries by their shard: those of one may be written by one call. */
function entriesOf(noted: ReadonlyMap<string, readonly RequestRow[]>): ReadonlyMap<number, readonly Entry[]> {
  const found = new Map<number, Entry[]>()
  for (const [accountId, rows] of noted) {
    const shard = homeShard(accountId)
    const entries = found.get(shard) ?? []
    found.set(shard, entries)
    for (const result of ['refused', 'answered'] as const) {
      const own = rows.filter(({ status }) => status >= 400 === (result === 'refused'))
      // What would be removed again at once need not be written.
      const kept = own.slice(-REQUESTS_KEPT_MAX)
      for (let from = 0; from < kept.length; from += ENTRY_ROWS_MAX)
        entries.push({ accountId, result, rows: kept.slice(from, from + ENTRY_ROWS_MAX) })
    }
  }
  return found
}

function endOfCall(entries: readonly Entry[], from: number): number {
  let to = from
  let rows = 0
  while (to < entries.length && to - from < CALL_ENTRIES_MAX && rows < CALL_ROWS_MAX)
    rows += entries[to++]?.rows.length ?? 0
  return to
}

async function append(nodes: Nodes, shard: number, entries: readonly Entry[]): Promise<void> {
  const keys: string[] = []
  const args: (string | number)[] = [REQUESTS_KEPT_MAX]
  for (const { accountId, result, rows } of entries) {
    const text = packRequests(rows)
    keys.push(requestsKey(shard, accountId, result))
    args.push(rows.length)
    if (text.length < Math.max(DEFLATED_FROM_CHARS, rows.length * DEFLATED_FROM_ROW_CHARS))
      args.push(REQUEST_ROWS_FIELD, text)
    else {
      const deflated = await deflate(text, { level: constants.Z_BEST_SPEED })
      args.push(REQUEST_DEFLATED_FIELD, deflated.toString('base64'))
    }
    args.push(REQUEST_LIFE_MS[result])
  }
  await nodes.nodeOf(shard).eval(APPEND, keys.length, ...keys, ...args)
}
