/**
 * read-stats - the figures of a server by the hour or by the day, and what became of an account's mail of late
 *
 * What has ended lies in the rows of its month, what runs in two counters (`hour-count.ts`); a commit moves the one to
 * the other. So that no hour is told twice or left out, the counters are read together with every month that what
 * stands in them may have been moved to.
 *
 * Keys: `key:<sha256>`, `stream:<id>`, `streams:<server>`, `counters`, `stats:<server>:<yyyymm>`
 *
 * Spec stats.read, account.detail
 */

import type { FactOf } from '../../../cluster/behaviour.ts'
import { homeShard, idOfShort, shardOf, shortId } from '../../../cluster/id.ts'
import { STATS_ROWS_MAX } from '../../../schemas/limits.ts'
import type { StatsEntry } from '../../../schemas/stats.ts'
import { DAY_MS, HOUR_MS, monthName } from '../../state/calendar.ts'
import { statsKey, streamsKey } from '../../state/keys.ts'
import { addRows, DEFAULT_STREAM, hourOwner, MAIL_FIGURES, type MailRow } from '../../state/message/hour-count.ts'
import { ALL_STREAMS, statsField, unpackStatsDay } from '../../state/message/stats-rows.ts'
import { type HourCounters, type ServerCounters, type ServerState, serverOwner, serverRef } from '../../state/server.ts'
import { type StreamState, streamRef } from '../../state/stream.ts'
import { countersFact, entityFact, parseCounters, parseState, type Unseen } from '../entity.ts'
import { formatInstant } from '../instant.ts'
import { keyFact, ownerOfRow, type Reader, type ServerKey } from '../key.ts'
import { type BadSpan, parseStatsSpan, type SpanQuery, type StatsSpan } from './span.ts'

/** The running hour, and the 23 before it. */
const LAST_HOURS = 24
/** Servers whose last day is read in one step. */
const SERVERS_AT_ONCE = 100

interface Place {
  readonly shard: number
  readonly serverId: string
}

/** The period and the stream; null: all streams. */
export interface StatsQuery extends SpanQuery {
  readonly streamId: string | null
}

/** The figures of a server; or why none are told. */
export async function readStats(
  read: Reader,
  owner: ServerKey,
  { query, nowMs }: { readonly query: StatsQuery; readonly nowMs: number },
): Promise<{ stats: StatsEntry[]; groups: [] } | BadSpan | Unseen | 'stream_not_found'> {
  const { serverId, defaultStreamId } = owner
  const shard = homeShard(serverId)
  const { streamId } = query
  // A stream of another shard is another account's, and its key name would not lie on this shard.
  const isHere = streamId !== null && shardOf(streamId) === shard
  const place = { shard, serverId }
  const seen = await read(shard, [
    keyFact(shard, owner.hash),
    streamsFact(place),
    runningFact(place),
    ...(isHere ? [entityFact(shard, streamRef(streamId))] : []),
  ])
  if (seen === null) return 'unavailable'
  if (ownerOfRow(owner.hash, seen[0]) === null) return 'unauthorized'
  if (streamId !== null && parseState<StreamState>(seen[3])?.serverId !== serverId) return 'stream_not_found'
  const span = parseStatsSpan(query, nowMs)
  if ('path' in span) return span
  const ids = streamId === null ? seen[1].map(([id]) => id) : [streamId]
  if (ids.length * span.rows > STATS_ROWS_MAX) return TOO_MANY
  const streams = ids.map((id) => (id === defaultStreamId ? DEFAULT_STREAM : shortId(id)))
  const running = hoursOf(seen[2])
  const sums = await readSums(read, place, { span, streams, running, nowMs })
  if (sums === null) return 'unavailable'
  const idOf = (stream: string): string => (stream === DEFAULT_STREAM ? defaultStreamId : idOfShort(stream))
  return { stats: makeEntries(sums, idOf), groups: [] }
}

const TOO_MANY: BadSpan = {
  path: 'streamId',
  message: `Must name a stream, or the time be shorter: the answer would have more than ${STATS_ROWS_MAX} rows`,
}

/** Reads the streams of a server, up to one more than an answer can have rows. */
function streamsFact({ shard, serverId }: Place): FactOf<'sorted'> {
  const count = STATS_ROWS_MAX + 1
  return { read: 'sorted', key: streamsKey(shard, serverId), min: 0, max: Number.MAX_SAFE_INTEGER, count }
}

function runningFact({ shard, serverId }: Place): FactOf<'fields'> {
  return countersFact(shard, [serverOwner(serverId), hourOwner(serverId)])
}

/** Statistics of the current hour: from the server's counters and from the counters of attempts. */
function hoursOf(values: readonly (string | null)[] | undefined): HourCounters[] {
  const [server, hour] = parseCounters<unknown>(values)
  return [(server as ServerCounters | null)?.hour, hour as HourCounters | null].filter((one) => one != null)
}

interface SumsInput {
  readonly span: StatsSpan
  readonly streams: readonly string[]
  /** Statistics of the current hour at the first read. */
  readonly running: readonly HourCounters[]
  readonly nowMs: number
}

/** Sums by the start of their hour or day, then by stream. */
type Sums = Map<number, Map<string, MailRow>>

async function readSums(
  read: Reader,
  place: Place,
  { span, streams, running, nowMs }: SumsInput,
): Promise<Sums | null> {
  const sums: Sums = new Map()
  const wanted = new Set(streams)
  const add = (stream: string, atMs: number, figures: MailRow): void => {
    if (atMs < span.fromMs || atMs >= span.toMs || !wanted.has(stream)) return
    const unit = span.rowOf(atMs)
    const row = sums.get(unit) ?? new Map<string, MailRow>()
    row.set(stream, addRows(row.get(stream), figures))
    sums.set(unit, row)
  }
  const addMonth = (days: readonly Day[], values: readonly (string | null)[]): void => {
    for (const [index, { stream, atMs }] of days.entries())
      for (const [hour, figures] of unpackStatsDay(values[index] ?? null)) add(stream, atMs + hour * HOUR_MS, figures)
  }
  // Months to which the statistics of the current hour may move during the read.
  const late = new Set([monthName(nowMs), ...running.map(([hour]) => monthName(hour * HOUR_MS))])
  const months = monthsOf(span, streams)
  for (const { month, days } of months.filter((one) => !late.has(one.month))) {
    const seen = await read(place.shard, [monthFact(place, month, days)])
    if (seen === null) return null
    addMonth(days, seen[0])
  }
  const last = months.filter(({ month }) => late.has(month))
  const facts = last.map(({ month, days }) => monthFact(place, month, days))
  const seen = await read(place.shard, [runningFact(place), ...facts])
  if (seen === null) return null
  const [counters, ...values] = seen
  for (const [index, { days }] of last.entries()) addMonth(days, values[index] ?? [])
  for (const [hour, rows] of hoursOf(counters))
    for (const [stream, figures] of Object.entries(rows)) add(stream, hour * HOUR_MS, figures)
  return sums
}

/** A day of a stream, in the order of the fields that are read. */
interface Day {
  readonly stream: string
  /** When it begins. */
  readonly atMs: number
}

/** The months of a span, each with the days that are read of it. */
function monthsOf({ fromMs, toMs }: StatsSpan, streams: readonly string[]): { month: string; days: Day[] }[] {
  const months: { month: string; days: Day[] }[] = []
  for (let atMs = Math.floor(fromMs / DAY_MS) * DAY_MS; atMs < toMs; atMs += DAY_MS) {
    const month = monthName(atMs)
    if (months.at(-1)?.month !== month) months.push({ month, days: [] })
    months.at(-1)?.days.push(...streams.map((stream) => ({ stream, atMs })))
  }
  return months
}

function monthFact({ shard, serverId }: Place, month: string, days: readonly Day[]): FactOf<'fields'> {
  const fields = days.map(({ stream, atMs }) => statsField(stream, atMs))
  return { read: 'fields', key: statsKey(shard, serverId, month), fields }
}

function makeEntries(sums: Sums, idOf: (stream: string) => string): StatsEntry[] {
  const entries: StatsEntry[] = []
  for (const [atMs, rows] of [...sums].sort(([one], [other]) => one - other)) {
    const named = [...rows].map(([stream, figures]) => ({ streamId: idOf(stream), figures }))
    for (const { streamId, figures } of named.sort((one, other) => (one.streamId < other.streamId ? -1 : 1)))
      entries.push({ at: formatInstant(atMs), streamId, ...countsOf(figures) })
  }
  return entries
}

type Counts = Omit<StatsEntry, 'at' | 'streamId'>

function countsOf(figures: MailRow): Counts {
  return Object.fromEntries(MAIL_FIGURES.map((name, place) => [name, figures[place] ?? 0])) as unknown as Counts
}

/** Outcomes of the mail of several servers, added up. */
export interface LastDay {
  readonly delivered: number
  readonly bounced: number
  readonly complained: number
}

/** The last 24 hours of those servers that are live; null when the store did not answer. */
export async function readLastDay(
  read: Reader,
  {
    shard,
    serverIds,
    nowMs,
  }: { readonly shard: number; readonly serverIds: readonly string[]; readonly nowMs: number },
): Promise<LastDay | null> {
  const firstMs = (Math.floor(nowMs / HOUR_MS) - LAST_HOURS + 1) * HOUR_MS
  const days = [...new Set([firstMs, nowMs].map((ms) => Math.floor(ms / DAY_MS) * DAY_MS))]
  let sum: MailRow = []
  for (let from = 0; from < serverIds.length; from += SERVERS_AT_ONCE) {
    const hours = await readHours(read, { shard, serverIds: serverIds.slice(from, from + SERVERS_AT_ONCE), days })
    if (hours === null) return null
    for (const { atMs, figures } of hours) if (atMs >= firstMs) sum = addRows(sum, figures)
  }
  const { delivered, hardBounced, softBounced, complained } = countsOf(sum)
  return { delivered, bounced: hardBounced + softBounced, complained }
}

interface HourFigures {
  readonly atMs: number
  readonly figures: MailRow
}

/** The hours of those days, and the running ones, of those servers that are live; null: the store did not answer. */
async function readHours(
  read: Reader,
  { shard, serverIds, days }: { shard: number; serverIds: readonly string[]; days: readonly number[] },
): Promise<HourFigures[] | null> {
  const dayFacts = serverIds.flatMap((serverId) =>
    days.map((atMs) => monthFact({ shard, serverId }, monthName(atMs), [{ stream: ALL_STREAMS, atMs }])),
  )
  const states = await read(
    shard,
    serverIds.map((id) => entityFact(shard, serverRef(id))),
  )
  const seen = await read(shard, [countersFact(shard, serverIds.map(hourOwner)), ...dayFacts])
  if (states === null || seen === null) return null
  const [counters, ...rows] = seen
  return parseCounters<HourCounters>(counters).flatMap((running, index) => {
    if (parseState<ServerState>(states[index])?.mode !== 'live') return []
    const [hour = 0, byStream = {}] = running ?? []
    const runningHour = Object.values(byStream).map((figures) => ({ atMs: hour * HOUR_MS, figures }))
    const pastHours = days.flatMap((atMs, place) =>
      [...unpackStatsDay(rows[index * days.length + place]?.[0] ?? null)].map(([hour, figures]) => {
        return { atMs: atMs + hour * HOUR_MS, figures }
      }),
    )
    return [...runningHour, ...pastHours]
  })
}
