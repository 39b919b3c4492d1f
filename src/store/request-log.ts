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
  packRequest,
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

/** KEYS: the stream. ARGV: rows, their text, rows kept, life in ms. */
const APPEND = `#!lua
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
local count = tonumber(ARGV[1])
if last then count = count + tonumber(last[2][2]) end
redis.call('XADD', KEYS[1], '*', '${REQUESTS_FIELD}', string.format('%.0f', count), '${REQUEST_ROWS_FIELD}', ARGV[2])
local time = redis.call('TIME')
redis.call('XTRIM', KEYS[1], 'MINID', string.format('%.0f', time[1] * 1000 - tonumber(ARGV[4])))
for i = 1, ${REMOVED_MAX} do
  local first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
  if not first or tonumber(first[2][2]) > count - tonumber(ARGV[3]) then break end
  redis.call('XDEL', KEYS[1], first[1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return count
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

/** An account whose Redis is away loses its own rows, and nobody else's; the first fault is told. */
async function writeAll(
  nodes: Nodes,
  noted: ReadonlyMap<string, readonly RequestRow[]>,
  failed: (error: Error) => void,
): Promise<void> {
  let isTold = false
  for (const [accountId, rows] of noted) {
    await writeAccount(nodes, accountId, rows).catch((error: Error) => {
      if (!isTold) failed(error)
      isTold = true
    })
  }
}

async function writeAccount(nodes: Nodes, accountId: string, rows: readonly RequestRow[]): Promise<void> {
  for (const result of ['refused', 'answered'] as const) {
    const own = rows.filter(({ status }) => status >= 400 === (result === 'refused'))
    // What would be removed again at once need not be written.
    const kept = own.slice(-REQUESTS_KEPT_MAX)
    for (let from = 0; from < kept.length; from += ENTRY_ROWS_MAX)
      await append(nodes, { accountId, result, rows: kept.slice(from, from + ENTRY_ROWS_MAX) })
  }
}

async function append(
  nodes: Nodes,
  of: { readonly accountId: string; readonly result: RequestResult; readonly rows: readonly RequestRow[] },
): Promise<void> {
  const { accountId, result, rows } = of
  const shard = homeShard(accountId)
  const text = await deflate(JSON.stringify(rows.map(packRequest)), { level: constants.Z_BEST_SPEED })
  const args = [rows.length, text.toString('base64'), REQUESTS_KEPT_MAX, REQUEST_LIFE_MS[result]]
  await nodes.nodeOf(shard).eval(APPEND, 1, requestsKey(shard, accountId, result), ...args)
}
