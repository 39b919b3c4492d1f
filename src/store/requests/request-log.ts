/**
 * request-log - the requests that this process answered, written every two seconds outside the commits
 *
 * A write costs the store the same for one row as for hundreds, and most accounts have few rows in two seconds. So the
 * answered requests of all accounts of a shard are written together, to one entry of the shard's stream, and stay in
 * memory as well. Within a minute the process moves each account's rows to the account's own stream with one entry, and
 * then removes its entries from the stream of the shard. Busy accounts, and refused requests, are written to the
 * account's stream at once.
 *
 * States of a row: recorded in memory; in the stream of the shard; in that of the account; removed by age or by the
 * bound. Rows that the store does not take are lost, and so are the last two seconds of a process that dies. Its rows
 * in the streams of shards stay there for a day. A row is in both streams for a while, so readers count a request id
 * once. No caller waits.
 *
 * Bounds: rows in memory, rows of an entry, entries of a call, rows and age of a stream.
 *
 * Keys: `requests:<account>:<r or a>`, `requests:new` (`src/state/request-row.ts`)
 *
 * Spec request.log, retention.requests
 */

import { homeShard } from '../../../cluster/id.ts'
import type { RequestRow } from '../../state/request-row.ts'
import type { Nodes } from '../nodes.ts'
import { dropIdle, type NotedStream, rowsOfShard, type ShardRows, streamOf } from './noted.ts'
import { Writes } from './request-writes.ts'

const FLUSH_MS = 2_000
/** Rows that wait, of all accounts: 15 MB. From half of them on every write moves them. */
const NOTED_MAX = 50_000

/** Takes rows of requests. */
export interface RequestLog {
  /** Never waits, never throws. */
  note(accountId: string, row: RequestRow): void
  /** Writes the recorded rows, and accepts no further ones. */
  close(): Promise<void>
}

/** Opens the log of this process. `failed` is called with the reason for lost rows. */
export function openRequestLog(nodes: Nodes, failed: (fault: unknown) => void): RequestLog {
  const refused = new Map<string, NotedStream>()
  const answered = new Map<number, ShardRows>()
  let waiting = 0
  let isClosing = false
  let writing: Promise<void> | null = null
  const flush = async (): Promise<void> => {
    if (writing !== null) return
    const movesAll = isClosing || waiting > NOTED_MAX / 2
    const writes = new Writes(nodes, { failed, took: (rows) => (waiting -= rows) })
    writing = writeAll(writes, { refused, answered, movesAll, isLast: isClosing })
    await writing
    writing = null
  }
  const timer = setInterval(() => void flush(), FLUSH_MS).unref()
  return {
    note(accountId, row) {
      if (waiting >= NOTED_MAX) return
      waiting += 1
      if (row.status >= 400) streamOf(refused, accountId, 'refused').add(row)
      else rowsOfShard(answered, homeShard(accountId)).stream(accountId).add(row)
    },
    async close() {
      clearInterval(timer)
      isClosing = true
      await writing
      await flush()
    },
  }
}

interface Waiting {
  readonly refused: Map<string, NotedStream>
  readonly answered: ReadonlyMap<number, ShardRows>
  /** Whether all rows move to the streams of their accounts, and whether this is the last write. */
  readonly movesAll: boolean
  readonly isLast: boolean
}

/** Rows are in the streams of their accounts for one period before they leave that of their shard. */
async function writeAll(writes: Writes, { refused, answered, movesAll, isLast }: Waiting): Promise<void> {
  for (const rows of answered.values()) await writes.removeMoved(rows)
  for (const stream of dropIdle(refused)) await writes.append(stream)
  const moved: ShardRows[] = []
  for (const rows of answered.values()) {
    const moves = movesAll || rows.isDue
    if (moves) moved.push(rows)
    for (const stream of dropIdle(rows.accounts)) if (moves || stream.isBusy) await writes.append(stream)
  }
  await writes.end()
  for (const rows of moved) {
    rows.moved(!writes.hasFailed)
    if (isLast) await writes.removeMoved(rows)
  }
  for (const rows of answered.values()) await writes.addNew(rows)
  await writes.end()
}
