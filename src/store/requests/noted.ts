/**
 * noted - the recorded requests of accounts and shards that wait in memory
 *
 * Bounds: rows of an entry; the log bounds all rows (`request-log.ts`).
 *
 * Keys: `requests:<account>:<r or a>`, `requests:new`
 */

import { homeShard, shortId } from '../../../cluster/id.ts'
import {
  newRequestsKey,
  REQUEST_LIFE_MS,
  type RequestResult,
  type RequestRow,
  RequestRows,
  requestsKey,
} from '../../state/request-row.ts'

/** Maximum rows of one entry, because a search for one unpacks them all. */
export const ENTRY_ROWS_MAX = 500
/** Rows move to the streams of their accounts between half of this and all of it, each shard at its own time. */
const MOVE_MS = 60_000
/** Shards over which the moves of a period are spread. */
const MOVE_STEPS = 32
/** An account with as many new rows, or as many kinds of rows, is written to its own stream at once. */
const BUSY_ROWS = 16
const BUSY_KINDS = 4

/** Rows of one entry. */
export interface RowsEntry {
  readonly count: number
  readonly text: string
}

/** Recorded rows of one stream; kept while each write has new ones. */
export class NotedStream {
  readonly shard: number
  readonly key: string
  readonly field: string
  readonly lifeMs: number
  readonly rows = new RequestRows()
  private full: RowsEntry[] = []

  constructor(accountId: string, result: RequestResult) {
    this.shard = homeShard(accountId)
    this.key = requestsKey(this.shard, accountId, result)
    this.field = shortId(accountId)
    this.lifeMs = REQUEST_LIFE_MS[result]
  }

  get isEmpty(): boolean {
    return this.rows.count === 0 && this.full.length === 0
  }

  get isBusy(): boolean {
    return this.full.length > 0 || this.rows.newCount >= BUSY_ROWS || this.rows.kindCount >= BUSY_KINDS
  }

  add(row: RequestRow): void {
    this.rows.add(row)
    if (this.rows.count === ENTRY_ROWS_MAX) this.full.push(this.takeRows())
  }

  take(): RowsEntry[] {
    const entries = this.full
    this.full = []
    if (this.rows.count > 0) entries.push(this.takeRows())
    return entries
  }

  private takeRows(): RowsEntry {
    const { count } = this.rows
    return { count, text: this.rows.take() }
  }
}

/** Answered requests of the accounts of one shard. */
export class ShardRows {
  readonly accounts = new Map<string, NotedStream>()
  readonly key: string
  readonly shard: number
  /** Entries of the shard's stream: with rows that are still in memory, and with rows that have been moved. */
  ids: string[] = []
  private movedIds: string[] = []
  private moveAtMs = 0

  constructor(shard: number) {
    this.shard = shard
    this.key = newRequestsKey(shard)
  }

  get isDue(): boolean {
    return this.moveAtMs > 0 && performance.now() >= this.moveAtMs
  }

  stream(accountId: string): NotedStream {
    return streamOf(this.accounts, accountId, 'answered')
  }

  /** Rows have been written to the stream of the shard for the first time since the last move. */
  began(): void {
    if (this.moveAtMs > 0) return
    const share = 0.5 + (this.shard % MOVE_STEPS) / (2 * MOVE_STEPS)
    this.moveAtMs = performance.now() + MOVE_MS * share
  }

  /** After a failure rows that were not moved may be in these entries only, so they stay. */
  moved(isWhole: boolean): void {
    if (isWhole) this.movedIds.push(...this.ids)
    this.ids = []
    this.moveAtMs = 0
  }

  takeMovedIds(): readonly string[] {
    const ids = this.movedIds
    this.movedIds = []
    return ids
  }
}

/** The stream of an account, made with its first row. */
export function streamOf(streams: Map<string, NotedStream>, accountId: string, result: RequestResult): NotedStream {
  let stream = streams.get(accountId)
  if (stream === undefined) {
    stream = new NotedStream(accountId, result)
    streams.set(accountId, stream)
  }
  return stream
}

/** The rows of a shard, made with its first row. */
export function rowsOfShard(shards: Map<number, ShardRows>, shard: number): ShardRows {
  let rows = shards.get(shard)
  if (rows === undefined) {
    rows = new ShardRows(shard)
    shards.set(shard, rows)
  }
  return rows
}

/** The streams that have rows; the others are removed. */
export function dropIdle(streams: Map<string, NotedStream>): NotedStream[] {
  for (const [accountId, stream] of streams) if (stream.isEmpty) streams.delete(accountId)
  return [...streams.values()]
}
