/**
 * stats - the figures of a server
 *
 * Spec stats.read
 */

import type { StatsBy } from '../../schemas/stats.ts'
import type { HandlerOf } from '../http/request.ts'
import { refuse } from '../http/respond.ts'
import type { Reader } from '../views/key.ts'
import { readStats, type StatsQuery } from '../views/stats.ts'

/** What reading figures needs. */
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

function queryOf({ from, to, by = 'day', streamId }: Readonly<Record<string, string>>): StatsQuery {
  const instantOf = (text: string | undefined) => (text === undefined ? null : Date.parse(text))
  return {
    fromMs: instantOf(from),
    toMs: instantOf(to),
    by: by as StatsBy,
    streamId: streamId?.toLowerCase() ?? null,
  }
}
