/**
 * requests - the log of recent requests, as the account or the server sees it
 *
 * Entries are in the order of answers, ids in that of requests, so an entry may have requests from some minutes
 * earlier. So a page is read from the newest entry down until none below can hold one that belongs on it. Answered
 * requests of the last minutes are in the stream of their shard, in that of their account, or in both for a moment.
 *
 * Keys: `requests:<account>:<r or a>`, `requests:new`, `key:<sha256>`
 *
 * Spec request.log, list.page
 */

import { inflateRawSync } from 'node:zlib'
import type { Entry, FactOf } from '../../cluster/behaviour.ts'
import { homeShard, msOf, shortId } from '../../cluster/id.ts'
import type { RequestEntry, RequestList, RequestSearch } from '../../schemas/request-log.ts'
import {
  msOfRequest,
  newRequestsKey,
  REQUEST_DEFLATED_FIELD,
  REQUEST_LIFE_MS,
  REQUEST_ROWS_FIELD,
  type RequestResult,
  type RequestRow,
  requestsKey,
  unpackRequests,
} from '../state/request-row.ts'
import type { Unseen } from './entity.ts'
import { formatInstant } from './instant.ts'
import { type AccountKey, keyFact, ownerOfRow, type Reader, type ServerKey } from './key.ts'
import type { Page } from './newest.ts'

/** Entries of each stream that one round of reading takes. */
const ENTRIES_AT_ONCE = 20
/**
 * A request takes six minutes at most, one with a large body, and reaches the stream of its account within another
 * (`src/store/requests/request-log.ts`); clocks differ by less.
 */
const LONGEST_MS = 500_000
const SKEW_MS = 10_000
/** Bytes that the rows of an entry have, unpacked. */
const ENTRY_BYTES_MAX = 8 * 1024 * 1024

/** The caller: a server's key sees the requests of its server, an account's key all requests of the account. */
export type RequestsOwner = ServerKey | AccountKey

/** The filters of a search. */
export type RequestFilter = Omit<RequestSearch, 'limit' | 'after'>

interface Stretch {
  /** Requests that came at or after it, and before. */
  readonly fromMs: number
  readonly toMs: number
}

/** A page of requests, newest first. */
export async function searchRequests(
  read: Reader,
  owner: RequestsOwner,
  { filter, page, nowMs }: { readonly filter: RequestFilter; readonly page: Page; readonly nowMs: number },
): Promise<RequestList | Unseen> {
  const { result } = filter
  const results = result === undefined ? (['refused', 'answered'] as const) : [result]
  const stretch = chooseStretch(filter, page.after)
  const walk = new Walk(read, owner, { results, stretch, nowMs })
  const live = await walk.begin()
  if (live !== true) return live
  const found: RequestRow[] = []
  const known = new Set<string>()
  for (;;) {
    const entry = walk.newest()
    const last = found[page.limit]
    if (entry === null || (last !== undefined && msOfRequest(last.requestId) > entry.ms + SKEW_MS)) break
    for (const row of entry.rows()) {
      if (known.has(row.requestId) || !fits(row, { owner, filter, stretch, after: page.after })) continue
      known.add(row.requestId)
      found.push(row)
    }
    found.sort((one, other) => (one.requestId < other.requestId ? 1 : -1))
    if (!(await walk.next())) return 'unavailable'
  }
  const shown = found.slice(0, page.limit)
  const next = found.length > shown.length ? (shown.at(-1)?.requestId ?? null) : null
  return { requests: shown.map(formatRequest), next }
}

/** One request by its id. */
export async function readRequest(
  read: Reader,
  owner: RequestsOwner,
  { requestId, nowMs }: { readonly requestId: string; readonly nowMs: number },
): Promise<RequestEntry | Unseen | 'not_found'> {
  const id = requestId.toLowerCase()
  const ms = msOfRequest(id)
  const isTime = !Number.isNaN(ms) && ms >= 0
  const stretch = isTime ? { fromMs: ms, toMs: ms + 1 } : { fromMs: 0, toMs: 0 }
  const walk = new Walk(read, owner, { results: ['refused', 'answered'], stretch, nowMs })
  const live = await walk.begin()
  if (live !== true) return live
  for (let entry = walk.newest(); entry !== null; entry = walk.newest()) {
    const row = entry.rows().find((one) => one.requestId === id && isOf(one, owner))
    if (row !== undefined) return formatRequest(row)
    if (!(await walk.next())) return 'unavailable'
  }
  return 'not_found'
}

/** An entry with the time at which it was written, and the rows of the account in it. */
interface Timed {
  readonly ms: number
  readonly rows: () => RequestRow[]
}

/** Entries already read from one stream, and the position of the next ones. */
interface Lane {
  readonly key: string
  /** Unpacks the fields of an entry. */
  readonly unpack: (fields: readonly string[]) => RequestRow[]
  entries: Timed[]
  to: string
  isEnd: boolean
}

/** A walk over the streams of an account together, from the newest entry down. */
class Walk {
  readonly #read: Reader
  readonly #owner: RequestsOwner
  readonly #from: string
  readonly #lanes: Lane[]

  constructor(
    read: Reader,
    owner: RequestsOwner,
    of: { readonly results: readonly RequestResult[]; readonly stretch: Stretch; readonly nowMs: number },
  ) {
    this.#read = read
    this.#owner = owner
    const { results, stretch, nowMs } = of
    const shard = homeShard(owner.accountId)
    const oldestMs = nowMs - Math.max(...results.map((result) => REQUEST_LIFE_MS[result]))
    this.#from = String(Math.max(0, oldestMs, stretch.fromMs - SKEW_MS))
    const until = Math.max(0, stretch.toMs + LONGEST_MS)
    const to = Number.isFinite(until) ? String(until) : '+'
    const own = results.map((result) => ({ key: requestsKey(shard, owner.accountId, result), unpack: unpackRows }))
    const field = shortId(owner.accountId)
    const ofShard = { key: newRequestsKey(shard), unpack: (fields: readonly string[]) => unpackOwn(fields, field) }
    const places = results.includes('answered') ? [...own, ofShard] : own
    this.#lanes = places.map((place) => ({ ...place, entries: [], to, isEnd: false }))
  }

  /** Reads the first entries, with the key. True: it may be gone on. */
  async begin(): Promise<true | Unseen> {
    const { hash, accountId } = this.#owner
    const seen = await this.#read(homeShard(accountId), [
      keyFact(homeShard(accountId), hash),
      ...this.#lanes.map((lane) => this.#fact(lane)),
    ])
    if (seen === null) return 'unavailable'
    const [key, ...values] = seen
    if (ownerOfRow(hash, key) === null) return 'unauthorized'
    for (const [index, lane] of this.#lanes.entries()) take(lane, values[index] ?? [])
    return true
  }

  /** The newest entry that was not passed yet; null if there is none. */
  newest(): Timed | null {
    return this.#lane()?.entries[0] ?? null
  }

  /** Passes it. Returns false if the store did not answer. */
  async next(): Promise<boolean> {
    const lane = this.#lane()
    if (lane === undefined) return true
    lane.entries.shift()
    if (lane.entries.length > 0 || lane.isEnd) return true
    const seen = await this.#read(homeShard(this.#owner.accountId), [this.#fact(lane)])
    if (seen !== null) take(lane, seen[0])
    return seen !== null
  }

  #lane(): Lane | undefined {
    const open = this.#lanes.filter(({ entries }) => entries.length > 0)
    return open.sort((one, other) => (other.entries[0]?.ms ?? 0) - (one.entries[0]?.ms ?? 0))[0]
  }

  #fact({ key, to }: Lane): FactOf<'newest'> {
    return { read: 'newest', key, from: this.#from, to, count: ENTRIES_AT_ONCE }
  }
}

function take(lane: Lane, entries: readonly Entry[]): void {
  lane.entries = entries.map(({ id, fields }) => ({ ms: Number.parseInt(id, 10), rows: () => lane.unpack(fields) }))
  lane.isEnd = entries.length < ENTRIES_AT_ONCE
  const last = entries.at(-1)
  if (last !== undefined) lane.to = `(${last.id}`
}

function unpackRows(fields: readonly string[]): RequestRow[] {
  const deflated = fields.indexOf(REQUEST_DEFLATED_FIELD)
  if (deflated < 0) return unpackRequests(fields[fields.indexOf(REQUEST_ROWS_FIELD) + 1] ?? '')
  const bytes = Buffer.from(fields[deflated + 1] ?? '', 'base64')
  return unpackRequests(inflateRawSync(bytes, { maxOutputLength: ENTRY_BYTES_MAX }).toString())
}

/** The rows of one account in an entry of its shard. */
function unpackOwn(fields: readonly string[], field: string): RequestRow[] {
  const rows: RequestRow[] = []
  for (let at = 0; at < fields.length; at += 2)
    if (fields[at] === field) rows.push(...unpackRequests(fields[at + 1] ?? ''))
  return rows
}

/** The time range of the search; a message id narrows it, because its request has about the same time. */
function chooseStretch({ receivedFrom, receivedTo, messageId }: RequestFilter, after: string | null): Stretch {
  const madeMs = messageId === undefined ? null : msOf(messageId.toLowerCase())
  const from = receivedFrom === undefined ? 0 : Date.parse(receivedFrom)
  const to = receivedTo === undefined ? Number.POSITIVE_INFINITY : Date.parse(receivedTo)
  return {
    fromMs: Math.max(0, from, madeMs === null ? 0 : madeMs - LONGEST_MS),
    toMs: Math.min(
      to,
      after === null ? Number.POSITIVE_INFINITY : msOfRequest(after) + 1,
      madeMs === null ? Number.POSITIVE_INFINITY : madeMs + SKEW_MS,
    ),
  }
}

function fits(
  row: RequestRow,
  of: {
    readonly owner: RequestsOwner
    readonly filter: RequestFilter
    readonly stretch: Stretch
    readonly after: string | null
  },
): boolean {
  const { filter, stretch, after } = of
  const { status, error, messageId } = filter
  const ms = msOfRequest(row.requestId)
  if (!isOf(row, of.owner) || ms < stretch.fromMs || ms >= stretch.toMs) return false
  if (after !== null && row.requestId >= after) return false
  if (status !== undefined && row.status !== status) return false
  if (error !== undefined && row.error !== error) return false
  return messageId === undefined || row.messageIds.includes(messageId.toLowerCase())
}

function isOf({ serverId }: RequestRow, owner: RequestsOwner): boolean {
  return owner.kind === 'account' || serverId === owner.serverId
}

function formatRequest(row: RequestRow): RequestEntry {
  return {
    requestId: row.requestId,
    receivedAt: formatInstant(msOfRequest(row.requestId)),
    serverId: row.serverId,
    method: row.method,
    path: row.path,
    status: row.status,
    error: row.error,
    issue: row.issue,
    prefix: row.prefix,
    milliseconds: row.ms,
    client: row.client,
    userAgent: row.userAgent,
    messageIds: [...row.messageIds],
  }
}
