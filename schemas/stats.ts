/**
 * stats - the outcomes of a server's mail, by the hour or by the day, in the answer of GET /v1/stats
 *
 * Spec stats.read, stats.count
 */

import type { FromSchema } from 'json-schema-to-ts'

import { STATS_ROWS_MAX } from './limits.ts'
import { INSTANT, INTEGER_OR_NULL, strictObject, UUID } from './shape.ts'

const COUNT = { type: 'integer', minimum: 0 } as const

/** Lengths of time that figures are added up over; `total` is the whole period. */
const STATS_BY = ['hour', 'day', 'total'] as const
/** Spec stats.groups */
const STATS_GROUPS = ['site', 'class', 'stream', 'tag'] as const

/** Query of GET /v1/stats. */
export const STATS_QUERY = {
  type: 'object',
  properties: {
    from: INSTANT,
    to: INSTANT,
    by: { enum: STATS_BY, default: 'day' },
    streamId: UUID,
    groupBy: { enum: STATS_GROUPS, description: 'Counts by receiving site, class, stream or tag in `groups`' },
  },
  additionalProperties: false,
} as const

/** Recipients of one stream in one hour or day, with each event counted at its own time. */
export const STATS_ENTRY = strictObject({
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

/** Outcomes of one group in one hour, day or period: each event is counted at its own time. */
export const STATS_GROUP = strictObject({
  at: INSTANT,
  group: {
    type: ['string', 'null'],
    description: 'Site, class, stream id or tag; null for tags that no message of the log names any more',
  },
  other: { type: 'boolean', description: 'Sum of all groups beyond the bounds, whose `group` is `other`' },
  delivered: COUNT,
  deferred: COUNT,
  hardBounced: COUNT,
  softBounced: COUNT,
  complained: COUNT,
  unsubscribed: COUNT,
  handOver: {
    ...strictObject({
      p50Ms: { ...INTEGER_OR_NULL, description: 'Half of the deliveries took at most this long' },
      p95Ms: { ...INTEGER_OR_NULL, description: '95 % of the deliveries took at most this long' },
    }),
    description: 'Milliseconds from acceptance to hand-over; null with fewer than 20 deliveries',
  },
})

/**
 * Answer of GET /v1/stats, the earliest first; an hour or day in which nothing happened is left out. With `groupBy` the
 * counts are in `groups`, otherwise in `stats`.
 */
export const STATS = strictObject({
  stats: { type: 'array', maxItems: STATS_ROWS_MAX, items: STATS_ENTRY },
  groups: {
    type: 'array',
    maxItems: STATS_ROWS_MAX,
    items: STATS_GROUP,
    description: 'Counts of each group; empty without `groupBy`',
  },
})

export type StatsBy = (typeof STATS_BY)[number]
export type StatsGroupBy = (typeof STATS_GROUPS)[number]
export type StatsGroup = FromSchema<typeof STATS_GROUP>
export type StatsEntry = FromSchema<typeof STATS_ENTRY>
export type Stats = FromSchema<typeof STATS>
