/**
 * stats - a server's statistics, and the log of its recent requests
 *
 * Spec stats.read, request.log
 */

import type { StatsBy } from '../../schemas/stats.ts'
import type { HandlerOf } from '../http/request.ts'
import { refuse } from '../http/respond.ts'
import type { Reader } from '../views/key.ts'
import { readRequest, searchRequests } from '../views/requests.ts'
import { readStats, type StatsQuery } from '../views/stats.ts'

/** Dependencies of the routes. */
export interface StatsDeps {
  readonly read: Reader
  /** The store's time in ms. */
  readonly nowMs: () => number
}

/** GET /v1/stats */
export function makeReadStats({ read, nowMs }: StatsDeps): HandlerOf<'readStats'> {
  return async ({ key, query }) => {
    const seen = await readStats(read, key, { query: queryOf(query), nowMs: nowMs() })
    if (typeof seen === 'string') return refuse(seen)
    return 'path' in seen ? refuse('invalid_request', { issues: [seen] }) : { status: 200, json: seen }
  }
}

/** POST /v1/requests/search */
export function makeSearchRequests({ read, nowMs }: StatsDeps): HandlerOf<'searchRequests'> {
  return async ({ key, body }) => {
    const { limit, after, ...filter } = body
    const page = { limit, after: after?.toLowerCase() ?? null }
    const seen = await searchRequests(read, key, { filter, page, nowMs: nowMs() })
    return typeof seen === 'string' ? refuse(seen) : { status: 200, json: seen }
  }
}

/** GET /v1/requests/{requestId} */
export function makeReadRequest({ read, nowMs }: StatsDeps): HandlerOf<'readRequest'> {
  return async ({ key, params }) => {
    const seen = await readRequest(read, key, { requestId: params.requestId ?? '', nowMs: nowMs() })
    return typeof seen === 'string' ? refuse(seen) : { status: 200, json: seen }
  }
}

function queryOf({ from, to, by = 'day', streamId }: Readonly<Record<string, string>>): StatsQuery {
  const instantOf = (text: string | undefined) => (text === undefined ? null : Date.parse(text))
  return {
    fromMs: instantOf(from),
    toMs: instantOf(to),
    by: by as StatsBy,
    streamId: streamId?.toLowerCase() ?? null,
  }
}
