/** count-outcomes - statistics computed from the events of messages, apart from the code of the product */
import type { FromSchema } from 'json-schema-to-ts'
import type { MESSAGE_EVENT } from '../../../schemas/message.ts'
import type { StatsGroup, StatsGroupBy } from '../../../schemas/stats.ts'

type Event = FromSchema<typeof MESSAGE_EVENT>

/** A message as the API shows it. */
export interface LoggedMessage {
  readonly streamId: string
  readonly tag: string | null
  readonly submittedAt: string
  readonly recipients: readonly { readonly recipient: string; readonly status: string }[]
  readonly events: readonly Event[]
}

/** Data of the world that the log does not have. */
export interface WorldOf {
  site(recipient: string): string
  /** Class of the deferral that a recipient got. */
  deferral(recipient: string): string
}

type Counts = Omit<StatsGroup, 'at' | 'other' | 'group' | 'handOver'>
type Figure = keyof Counts

/** Below it there is no percentile. */
const TIMES_LEAST = 20
const FASTEST_MS = 100

/** One group: counts and the times from acceptance to hand-over. */
export interface Group {
  readonly counts: Record<Figure, number>
  readonly times: number[]
}

/** The groups of each kind. */
export type Groups = Record<StatsGroupBy, Map<string, Group>>

/** Counts the events of messages by site, class, stream and tag. */
export function countOutcomes(messages: Iterable<LoggedMessage>, world: WorldOf): Groups {
  const groups: Groups = { site: new Map(), class: new Map(), stream: new Map(), tag: new Map() }
  for (const message of messages)
    for (const { recipient } of message.recipients) {
      const own = message.events.filter((event) => event.recipient === recipient)
      for (const [place, event] of own.entries())
        countEvent(groups, { message, event, before: own.slice(0, place) }, world)
    }
  return groups
}

interface Seen {
  readonly message: LoggedMessage
  readonly event: Event
  readonly before: readonly Event[]
}

function countEvent(groups: Groups, { message, event, before }: Seen, world: WorldOf): void {
  const figure = figureOf(event, before)
  if (figure === null) return
  const site = [...before, event].some(({ route }) => route !== null) ? world.site(event.recipient) : 'none'
  const { classification = null } = event.details
  const reason =
    event.event === 'bounced' ? classification : figure === 'deferred' ? world.deferral(event.recipient) : null
  const ms = figure === 'delivered' ? Date.parse(event.occurredAt) - Date.parse(message.submittedAt) : null
  add(groups.site, site, { figure, ms })
  add(groups.stream, message.streamId, { figure, ms })
  if (message.tag !== null) add(groups.tag, message.tag, { figure, ms })
  if (reason !== null) add(groups.class, reason, { figure, ms: null })
}

function figureOf({ event, details }: Event, before: readonly Event[]): Figure | null {
  if (event === 'deferred') return before.some((one) => one.event === 'deferred') ? null : 'deferred'
  if (event === 'bounced') return details.hard === true ? 'hardBounced' : 'softBounced'
  return event === 'spam_complaint' ? 'complained' : event
}

function add(groups: Map<string, Group>, name: string, { figure, ms }: { figure: Figure; ms: number | null }): void {
  const none = { delivered: 0, deferred: 0, hardBounced: 0, softBounced: 0, complained: 0, unsubscribed: 0 }
  const group = groups.get(name) ?? { counts: none, times: [] }
  group.counts[figure] += 1
  if (ms !== null) group.times.push(ms)
  groups.set(name, group)
}

/** A group in the form of the API. */
export function sumOf({ counts, times }: Group): Counts & Pick<StatsGroup, 'handOver'> {
  return { ...counts, handOver: { p50Ms: percentileOf(times, 0.5), p95Ms: percentileOf(times, 0.95) } }
}

/** A percentile as the documents define it: the upper bound of a bucket, each 41 % wider than the one before. */
function percentileOf(times: readonly number[], share: number): number | null {
  if (times.length < TIMES_LEAST) return null
  const sorted = [...times].sort((one, other) => one - other)
  const exact = sorted[Math.ceil(sorted.length * share) - 1] as number
  let bound = FASTEST_MS
  while (bound < exact - 1e-6) bound *= Math.SQRT2
  return Math.round(bound)
}
