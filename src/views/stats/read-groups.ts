/**
 * read-groups - the outcomes of a server's mail by receiving site, class, stream or tag
 *
 * The current hour is in a counter, and a commit of a later one moves it to the rows of its day and hour. So that
 * nothing is counted twice or left out, the counter and all rows are read in one step. Counts of tags have only hashes;
 * their names come from the log (`tag-names.ts`).
 *
 * Keys: `key:<sha256>`, `counters`, `group-days:<server>:<yyyymm>`, `group-hours:<server>:<yyyymmdd>`
 *
 * Spec stats.groups
 */

import type { FactOf } from '../../../cluster/behaviour.ts'
import { homeShard, idOfShort } from '../../../cluster/id.ts'
import { GROUP_HOURS_DAYS, HAND_OVER_LEAST, STATS_ROWS_MAX } from '../../../schemas/limits.ts'
import type { StatsGroup, StatsGroupBy } from '../../../schemas/stats.ts'
import { DAY_MS, dayName, HOUR_MS, monthName } from '../../state/calendar.ts'
import { groupDaysKey, groupHoursKey } from '../../state/keys.ts'
import {
  addGroupRows,
  GROUP_FIGURES,
  GROUP_KINDS,
  groupOwner,
  percentileMs,
  REST,
} from '../../state/message/group-count.ts'
import { dayField, hourField, unpackGroups } from '../../state/message/group-rows.ts'
import { DEFAULT_STREAM, type MailRow } from '../../state/message/hour-count.ts'
import type { HourCounters } from '../../state/server.ts'
import { countersFact, parseCounters, type Unseen } from '../entity.ts'
import { formatInstant } from '../instant.ts'
import { keyFact, ownerOfRow, type ServerKey } from '../key.ts'
import type { SearchDeps } from '../message/search.ts'
import { type BadSpan, isHourly, parseStatsSpan, type SpanQuery, type StatsSpan } from './span.ts'
import { type CountedTag, readTagNames, type TagNames } from './tag-names.ts'

/** Name of everything beyond the bounds. */
const OTHER = 'other'

const TOO_EARLY: BadSpan = {
  path: 'from',
  message: `Must be at most ${GROUP_HOURS_DAYS} days ago when groups are counted by hour`,
}
const TOO_MANY: BadSpan = {
  path: 'from',
  message: `Must be later: the answer would have more than ${STATS_ROWS_MAX} rows`,
}

export interface GroupsQuery extends SpanQuery {
  readonly groupBy: StatsGroupBy
}

/** The groups of a server; or why there are none. */
export async function readGroups(
  deps: SearchDeps,
  owner: ServerKey,
  query: GroupsQuery,
): Promise<{ stats: []; groups: StatsGroup[] } | BadSpan | Unseen> {
  const { read } = deps
  const nowMs = deps.nowMs()
  const { serverId, defaultStreamId } = owner
  const shard = homeShard(serverId)
  const span = parseStatsSpan(query, nowMs)
  if ('path' in span) return span
  if (query.by === 'hour' && !isHourly(span.fromMs, nowMs)) return TOO_EARLY
  const letter = GROUP_KINDS[query.groupBy]
  const parts = makeParts(span, { shard, serverId, letter })
  const seen = await read(shard, [
    keyFact(shard, owner.hash),
    countersFact(shard, [groupOwner(serverId)]),
    ...parts.map(({ fact }) => fact),
  ])
  if (seen === null) return 'unavailable'
  const [key, counters, ...values] = seen
  if (ownerOfRow(owner.hash, key) === null) return 'unauthorized'
  const sums = new Sums(span)
  for (const [index, { begins }] of parts.entries())
    for (const [place, atMs] of begins.entries())
      for (const [name, row] of unpackGroups(values[index]?.[place] ?? null)) sums.add(atMs, name, row)
  sums.addRunning(letter, parseCounters<HourCounters>(counters)[0] ?? null)
  if (sums.size > STATS_ROWS_MAX) return TOO_MANY
  const names = query.groupBy === 'tag' ? await readTagNames(deps, owner, sums.names()) : NO_NAMES
  if (typeof names === 'string') return names
  return { stats: [], groups: sums.entries((name) => nameOf(query.groupBy, name, { defaultStreamId, names })) }
}

const NO_NAMES: TagNames = new Map()

/** A group as it is shown; null for a tag without a name. */
function nameOf(
  groupBy: StatsGroupBy,
  name: string,
  { defaultStreamId, names }: { readonly defaultStreamId: string; readonly names: TagNames },
): string | null {
  if (groupBy === 'tag') return names.get(name) ?? null
  if (groupBy !== 'stream') return name
  return name === DEFAULT_STREAM ? defaultStreamId : idOfShort(name)
}

/** A key that is read, and the instants at which the units of its fields begin. */
interface Part {
  readonly fact: FactOf<'fields'>
  readonly begins: readonly number[]
}

/** The keys of a period: one for each month of days, or for each day of hours. */
function makeParts(
  { fromMs, toMs, unitMs }: StatsSpan,
  { shard, serverId, letter }: { readonly shard: number; readonly serverId: string; readonly letter: string },
): Part[] {
  const isByHour = unitMs === HOUR_MS
  const keyOf = (ms: number) =>
    isByHour ? groupHoursKey(shard, serverId, dayName(ms)) : groupDaysKey(shard, serverId, monthName(ms))
  const fieldOf = (ms: number) =>
    isByHour ? hourField(letter, Math.floor((ms % DAY_MS) / HOUR_MS)) : dayField(letter, ms)
  const parts = new Map<string, { fields: string[]; begins: number[] }>()
  for (let atMs = fromMs; atMs < toMs; atMs += unitMs) {
    const part = parts.get(keyOf(atMs)) ?? { fields: [], begins: [] }
    part.fields.push(fieldOf(atMs))
    part.begins.push(atMs)
    parts.set(keyOf(atMs), part)
  }
  return [...parts].map(([key, { fields, begins }]) => ({ fact: { read: 'fields', key, fields }, begins }))
}

/** Rows by the begin of their unit, then by name. */
class Sums {
  private readonly span: StatsSpan
  private readonly rows = new Map<number, Map<string, MailRow>>()
  /** End of the latest unit of each name. */
  private readonly lasts = new Map<string, number>()

  constructor(span: StatsSpan) {
    this.span = span
  }

  add(atMs: number, name: string, row: MailRow): void {
    const { fromMs, toMs, unitMs, rowOf } = this.span
    if (atMs < fromMs || atMs >= toMs) return
    const unit = this.rows.get(rowOf(atMs)) ?? new Map<string, MailRow>()
    unit.set(name, addGroupRows(unit.get(name), row))
    this.rows.set(rowOf(atMs), unit)
    const endMs = Math.floor(atMs / unitMs) * unitMs + unitMs
    this.lasts.set(name, Math.max(this.lasts.get(name) ?? 0, endMs))
  }

  /** Adds the current hour, if there is one. */
  addRunning(letter: string, running: HourCounters | null): void {
    const [hour, groups] = running ?? [0, {}]
    for (const [group, row] of Object.entries(groups))
      if (group.startsWith(letter)) this.add(hour * HOUR_MS, group.slice(2), row)
  }

  get size(): number {
    return [...this.rows.values()].reduce((sum, { size }) => sum + size, 0)
  }

  /** The names that have counts, without the rest. */
  names(): CountedTag[] {
    return [...this.lasts].flatMap(([hash, lastMs]) => (hash === REST ? [] : [{ hash, lastMs }]))
  }

  /** The earliest unit first, and in it the group with the most outcomes. Groups that are shown alike are one. */
  entries(shownOf: (name: string) => string | null): StatsGroup[] {
    return [...this.rows]
      .sort(([one], [other]) => one - other)
      .flatMap(([atMs, named]) => {
        const shown = new Map<string | null, MailRow>()
        for (const [name, row] of named) {
          const group = name === REST ? REST : shownOf(name)
          shown.set(group, addGroupRows(shown.get(group), row))
        }
        return [...shown]
          .sort(([, one], [, next]) => outcomes(next) - outcomes(one))
          .map(([group, row]) => {
            const other = group === REST
            return { at: formatInstant(atMs), group: other ? OTHER : group, other, ...countsOf(row) }
          })
      })
  }
}

type Counts = Omit<StatsGroup, 'at' | 'group' | 'other'>

function outcomes(row: MailRow): number {
  return GROUP_FIGURES.reduce((sum, _, place) => sum + (row[place] ?? 0), 0)
}

function countsOf(row: MailRow): Counts {
  const counts = Object.fromEntries(GROUP_FIGURES.map((name, place) => [name, row[place] ?? 0]))
  const handOver = {
    p50Ms: percentileMs(row, 0.5, HAND_OVER_LEAST),
    p95Ms: percentileMs(row, 0.95, HAND_OVER_LEAST),
  }
  return { ...counts, handOver } as Counts
}
