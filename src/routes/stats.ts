/**
 * stats - a server's statistics, and the log of its recent requests
 *
 * Spec stats.read, request.log
 */

import type { StatsBy, StatsGroupBy } from '../../schemas/stats.ts'
import type { HandlerOf } from '../http/request.ts'
import { refusalReply } from '../http/respond.ts'
import type { Scans } from '../http/scans.ts'
import type { SearchDeps } from '../views/message/search.ts'
import { readRequest, searchRequests } from '../views/requests.ts'
import { readGroups } from '../views/stats/read-groups.ts'
import { readStats } from '../views/stats/read-stats.ts'
import type { SpanQuery } from '../views/stats/span.ts'

/** Dependencies of the routes. */
export interface StatsDeps extends SearchDeps {
  readonly scans: Scans
}

const ONE_QUESTION = { path: 'streamId', message: 'Must be left out with groupBy' }

/** GET /v1/stats. Counts by tag are a search too, because the names of tags come from the log. */
export function makeReadStats(deps: StatsDeps): HandlerOf<'readStats'> {
  const count = readingStats(deps)
  const search = deps.scans.limit(readingStats, deps)
  return async (request) => (request.query.groupBy === 'tag' ? search(request) : count(request))
}

function readingStats(deps: SearchDeps): HandlerOf<'readStats'> {
  return async ({ key, query }) => {
    const { groupBy, streamId = null } = query
    if (groupBy !== undefined && streamId !== null) return refusalReply('invalid_request', { issues: [ONE_QUESTION] })
    const span = queriedSpan(query)
    const seen =
      groupBy === undefined
        ? await readStats(deps.read, key, {
            query: { ...span, streamId: streamId?.toLowerCase() ?? null },
            nowMs: deps.nowMs(),
          })
        : await readGroups(deps, key, { ...span, groupBy: groupBy as StatsGroupBy })
    if (typeof seen === 'string') return refusalReply(seen)
    return 'path' in seen ? refusalReply('invalid_request', { issues: [seen] }) : { status: 200, json: seen }
  }
}

/** POST /v1/requests/search */
export function makeSearchRequests({ read, nowMs }: StatsDeps): HandlerOf<'searchRequests'> {
  return async ({ key, body }) => {
    const { limit, after, ...filter } = body
    const page = { limit, after: after?.toLowerCase() ?? null }
    const seen = await searchRequests(read, key, { filter, page, nowMs: nowMs() })
    return typeof seen === 'string' ? refusalReply(seen) : { status: 200, json: seen }
  }
}

/** GET /v1/requests/{requestId} */
export function makeReadRequest({ read, nowMs }: StatsDeps): HandlerOf<'readRequest'> {
  return async ({ key, params }) => {
    const seen = await readRequest(read, key, { requestId: params.requestId ?? '', nowMs: nowMs() })
    return typeof seen === 'string' ? refusalReply(seen) : { status: 200, json: seen }
  }
}

function queriedSpan({ from, to, by = 'day' }: Readonly<Record<string, string>>): SpanQuery {
  const instantOf = (text: string | undefined) => (text === undefined ? null : Date.parse(text))
  return { fromMs: instantOf(from), toMs: instantOf(to), by: by as StatsBy }
}
