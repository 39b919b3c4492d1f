/**
 * request-row - requests that were answered of late, packed
 *
 * Keys: `requests:<account>:<r or a>`, refused and answered: streams, an entry for each second of each process that
 * answered any; `c` how many requests the stream has ever had with this entry, `z` base64 of the deflated JSON of its
 * rows. They are written beside the commits: a crash loses a second of them, and no actor reads them. A row is
 * `[request id, server short or 0, method, path or 0, status, code or 0, issue or 0, prefix, ms, client or 0,
 * user agent or 0, [message ids]]`; zeros at the end are left off. No body and no address: what looks like one in a
 * user agent or in the name of a field is masked.
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
  /** Template of the route; null where none is. */
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

type Packed = readonly (string | number | readonly string[])[]

const DAY_MS = 86_400_000
/** How long the rows of a stream stay, in ms. Spec retention.requests */
export const REQUEST_LIFE_MS: Readonly<Record<RequestResult, number>> = { refused: 7 * DAY_MS, answered: DAY_MS }
/** Fields of an entry. */
export const REQUESTS_FIELD = 'c'
export const REQUEST_ROWS_FIELD = 'z'
const TIME_DIGITS = 12

/** Stream: requests of an account that were refused, or all others, by the second in which they were answered. */
export function requestsKey(shard: number, accountId: string, result: RequestResult): string {
  return `${shardTag(shard)}:requests:${accountId}:${result[0]}`
}

/** Time in a Request-Id, in ms; NaN where it is no uuid. */
export function msOfRequest(requestId: string): number {
  return Number.parseInt(requestId.replace('-', '').slice(0, TIME_DIGITS), 16)
}

/** Packs a row. */
export function packRequest(row: RequestRow): Packed {
  const { requestId, serverId, method, path, status, error, issue, prefix, ms, client, userAgent, messageIds } = row
  const server = serverId === null ? 0 : shortId(serverId)
  const packed = [requestId, server, method, path ?? 0, status, error ?? 0, issue ?? 0, prefix, ms]
  const rest = [client ?? 0, userAgent ?? 0, messageIds.length === 0 ? 0 : messageIds]
  while (rest.at(-1) === 0) rest.pop()
  return [...packed, ...rest]
}

/** Unpacks what `packRequest` made. */
export function unpackRequest(packed: Packed): RequestRow {
  const [requestId, server, method, path, status, error, issue, prefix, ms, client = 0, userAgent = 0, ids = 0] = packed
  const textOf = (value: Packed[number] | undefined) => (typeof value === 'string' ? value : null)
  return {
    requestId: requestId as string,
    serverId: typeof server === 'string' ? idOfShort(server) : null,
    method: method as string,
    path: textOf(path),
    status: status as number,
    error: textOf(error),
    issue: textOf(issue),
    prefix: prefix as string,
    ms: ms as number,
    client: textOf(client),
    userAgent: textOf(userAgent),
    messageIds: Array.isArray(ids) ? ids : [],
  }
}
