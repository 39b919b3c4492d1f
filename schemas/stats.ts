/**
 * stats - what became of a server's mail, by the hour or by the day, as GET /v1/stats answers it
 *
 * Spec stats.read, stats.count
 */

import type { FromSchema } from 'json-schema-to-ts'

import { STATS_ROWS_MAX } from './limits.ts'
import { INSTANT, objectOf, UUID } from './shape.ts'

const COUNT = { type: 'integer', minimum: 0 } as const

/** Lengths of time that figures are added up over. */
const STATS_BY = ['hour', 'day'] as const

/** Query of GET /v1/stats. */
export const STATS_QUERY = {
  type: 'object',
  properties: { from: INSTANT, to: INSTANT, by: { enum: STATS_BY, default: 'day' }, streamId: UUID },
  additionalProperties: false,
} as const

/** Recipients of one stream in one hour or day: each event is counted at its own time. */
export const STATS_ENTRY = objectOf({
  at: INSTANT,
  streamId: UUID,
  accepted: COUNT,
  delivered: COUNT,
  deferred: COUNT,
  hardBounced: COUNT,
  softBounced: COUNT,
  complained: COUNT,
  unsubscribed: COUNT,
  suppressed: COUNT,
})

/** Answer of GET /v1/stats, the earliest first; an hour or day in which nothing happened is left out. */
export const STATS = objectOf({ stats: { type: 'array', maxItems: STATS_ROWS_MAX, items: STATS_ENTRY } })

export type StatsBy = (typeof STATS_BY)[number]
export type StatsEntry = FromSchema<typeof STATS_ENTRY>
export type Stats = FromSchema<typeof STATS>
