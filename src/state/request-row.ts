/**
 * request-row - recent requests, packed
 *
 * Keys: `requests:<account>:<r or a>`, refused and answered: streams; `c` the total number of requests of the stream
 * up to this entry, and the text of its rows: `p` plain, or `z` deflated in base64 if it is long and mostly not ids.
 * `requests:new`, one of each shard: answered requests that are not in the stream of their account yet; an entry for
 * each write of each process, its fields accounts (short) and the texts of their rows. A row may be in both. Rows are
 * written outside of commits, so a crash loses the last seconds, and no actor reads them.
 *
 * The text is JSON, `{k: [kind], r: [row]}`. The common fields of a client's requests are a kind, stored once: `[server
 * short or 0, method, path or 0, status, code or 0, issue or 0, prefix, client or 0, user agent or 0]`, zeros at the
 * end left off. A row is `[request id, ms, place of its kind, message ids short]`; the place is left off if it is 0 and
 * no message id follows. A request id that differs from the first only in the end of its time and its count is stored
 * as these; a text that does not begin with the first row has that row's id as `f`. An older text is a list of
 * `[request id, server short or 0, method, path or 0, status, code or 0, issue or 0, prefix, ms, client or 0, user
 * agent or 0, [message ids]]`. No body and no address: texts like addresses in a user agent or a field name are masked.
 *
 * Spec request.log
 */

import { idOfShort, shortId } from '../../cluster/id.ts'
import { shardTag } from '../../cluster/keyspace.ts'

/** Requests that were refused (4xx, 5xx), and all others. */
export type RequestResult = 'refused' | 'answered'

/** One request. */
export interface RequestRow {
  readonly requestId: string
  /** Null of an account's key. */
  readonly serverId: string | null
  readonly method: string
  /** Template of the route; null if there is no route. */
  readonly path: string | null
  readonly status: number
  readonly error: string | null
  readonly issue: string | null
  readonly prefix: string
  readonly ms: number
  readonly client: string | null
  readonly userAgent: string | null
  readonly messageIds: readonly string[]
}

type Part = string | number
type Kind = readonly Part[]
interface Packed {
  readonly k: readonly Kind[]
  readonly f?: string
  readonly r: readonly Kind[]
}
type Before = readonly (Part | readonly string[])[]

const DAY_MS = 86_400_000
/** How long the rows of a stream stay, in ms. Spec retention.requests */
export const REQUEST_LIFE_MS: Readonly<Record<RequestResult, number>> = { refused: 7 * DAY_MS, answered: DAY_MS }
/** Fields of an entry. */
export const REQUESTS_FIELD = 'c'
export const REQUEST_ROWS_FIELD = 'p'
export const REQUEST_DEFLATED_FIELD = 'z'
const TIME_DIGITS = 12
/** The part of a request id that differs between those of one process within a minute: `xxxx-7ccc`. */
const ID_FROM = 9
const ID_TO = 18
const ID_CHARS = 36
/** For the rows of an entry, about a dozen. */
const BYTES_AT_FIRST = 512
/** Memory that is kept for the next entry. */
const BYTES_KEPT_MAX = 32_768

/** Stream of the refused requests of an account, or of all others, by the second of their answer. */
export function requestsKey(shard: number, accountId: string, result: RequestResult): string {
  return `${shardTag(shard)}:requests:${accountId}:${result[0]}`
}

/** Stream of the answered requests of all accounts of a shard that wait for the stream of their account. */
export function newRequestsKey(shard: number): string {
  return `${shardTag(shard)}:requests:new`
}

/** Time in a Request-Id, in ms; NaN if it is not a uuid. */
export function msOfRequest(requestId: string): number {
  return Number.parseInt(requestId.replace('-', '').slice(0, TIME_DIGITS), 16)
}

/**
 * Rows for the text of an entry, packed at once, because as objects they would outlive the young generation, and
 * collecting them would cost more than packing.
 */
export class RequestRows {
  /** Rows that wait. */
  count = 0
  /** Those of them that `takeNew` did not return yet. */
  newCount = 0
  private newFrom = 0
  private readonly kinds = new Map<string, number>()
  private bytes = Buffer.allocUnsafe(BYTES_AT_FIRST)
  private length = 0
  private first = ''
  private before: RequestRow | null = null
  private kind = 0

  /** Kinds of requests among them. */
  get kindCount(): number {
    return this.kinds.size
  }

  add(row: RequestRow): void {
    const { requestId, ms, messageIds } = row
    const { before } = this
    if (before === null) this.first = requestId
    if (before === null || !isAlike(before, row)) this.kind = placeOf(this.kinds, row)
    const id = before !== null && isNear(this.first, requestId) ? requestId.slice(ID_FROM, ID_TO) : requestId
    let line = `${before === null ? '' : ','}["${id}",${ms}`
    if (this.kind > 0 || messageIds.length > 0) line += `,${this.kind}`
    for (const messageId of messageIds) line += `,"${shortId(messageId)}"`
    this.write(`${line}]`)
    this.before = row
    this.count += 1
    this.newCount += 1
  }

  /** Returns the text of the rows since the last call, and keeps all of them for `take`. */
  takeNew(): string {
    const first = this.newFrom === 0 ? '' : `"f":"${this.first}",`
    const rows = this.bytes.toString('latin1', this.newFrom === 0 ? 0 : this.newFrom + 1, this.length)
    this.newFrom = this.length
    this.newCount = 0
    return `{"k":[${this.kindsText()}],${first}"r":[${rows}]}`
  }

  /** Returns the text of all rows, and clears them. */
  take(): string {
    const text = `{"k":[${this.kindsText()}],"r":[${this.bytes.toString('latin1', 0, this.length)}]}`
    this.kinds.clear()
    this.before = null
    if (this.bytes.length > BYTES_KEPT_MAX) this.bytes = Buffer.allocUnsafe(BYTES_AT_FIRST)
    this.length = 0
    this.count = 0
    this.newFrom = 0
    this.newCount = 0
    return text
  }

  private kindsText(): string {
    return [...this.kinds.keys()].join(',')
  }

  /** In: ASCII. */
  private write(line: string): void {
    const length = this.length + line.length
    if (length > this.bytes.length) {
      const larger = Buffer.allocUnsafe(2 * length)
      this.bytes.copy(larger, 0, 0, this.length)
      this.bytes = larger
    }
    this.bytes.write(line, this.length, 'latin1')
    this.length = length
  }
}

/** Packs rows to the text of an entry. */
export function packRequests(rows: readonly RequestRow[]): string {
  const packed = new RequestRows()
  for (const row of rows) packed.add(row)
  return packed.take()
}

/** Whether two ids differ in nothing but the end of their time and their count. */
function isNear(one: string, other: string): boolean {
  if (one.length !== ID_CHARS || other.length !== ID_CHARS) return false
  for (let at = 0; at < ID_FROM; at += 1) if (one.charCodeAt(at) !== other.charCodeAt(at)) return false
  for (let at = ID_TO; at < ID_CHARS; at += 1) if (one.charCodeAt(at) !== other.charCodeAt(at)) return false
  return true
}

function isAlike(one: RequestRow, other: RequestRow): boolean {
  return (
    one.prefix === other.prefix &&
    one.status === other.status &&
    one.path === other.path &&
    one.method === other.method &&
    one.serverId === other.serverId &&
    one.error === other.error &&
    one.issue === other.issue &&
    one.client === other.client &&
    one.userAgent === other.userAgent
  )
}

function placeOf(kinds: Map<string, number>, row: RequestRow): number {
  const { serverId, method, path, status, error, issue, prefix, client, userAgent } = row
  const server = serverId === null ? 0 : shortId(serverId)
  const kind = [server, method, path ?? 0, status, error ?? 0, issue ?? 0, prefix, client ?? 0, userAgent ?? 0]
  while (kind.at(-1) === 0) kind.pop()
  const text = JSON.stringify(kind)
  const known = kinds.get(text)
  if (known !== undefined) return known
  kinds.set(text, kinds.size)
  return kinds.size - 1
}

/** Unpacks rows of `packRequests`, and of earlier releases. Throws SyntaxError for any other text. */
export function unpackRequests(text: string): RequestRow[] {
  const entry = JSON.parse(text) as Packed | readonly Before[]
  if (!('k' in entry)) return entry.map(rowOfBefore)
  const first = entry.f ?? String(entry.r[0]?.[0] ?? '')
  return entry.r.map(([id, ms, kind = 0, ...shorts]) => {
    const requestId = String(id)
    return {
      requestId: requestId.length === ID_CHARS ? requestId : first.slice(0, ID_FROM) + requestId + first.slice(ID_TO),
      ms: ms as number,
      ...kindOf(entry.k[kind as number] ?? []),
      messageIds: shorts.map((short) => idOfShort(String(short))),
    }
  })
}

function kindOf(kind: Kind): Omit<RequestRow, 'requestId' | 'ms' | 'messageIds'> {
  const [server, method, path, status, error, issue, prefix, client, userAgent] = kind
  return {
    serverId: typeof server === 'string' ? idOfShort(server) : null,
    method: method as string,
    path: textOf(path),
    status: status as number,
    error: textOf(error),
    issue: textOf(issue),
    prefix: prefix as string,
    client: textOf(client),
    userAgent: textOf(userAgent),
  }
}

function rowOfBefore(row: Before): RequestRow {
  const [requestId, server, method, path, status, error, issue, prefix, ms, client, userAgent, ids] = row
  const kind = [server, method, path, status, error, issue, prefix, client, userAgent] as Kind
  const messageIds = Array.isArray(ids) ? (ids as readonly string[]) : []
  return { requestId: requestId as string, ms: ms as number, ...kindOf(kind), messageIds }
}

function textOf(value: Part | undefined): string | null {
  return typeof value === 'string' ? value : null
}
