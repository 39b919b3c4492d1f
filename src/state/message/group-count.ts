/**
 * group-count - the outcomes of a server's mail by receiving site, class, stream and tag in the current hour
 *
 * Counters `groups:<server>` hold `[hour, {group: row}]`, written by the commits of the outcomes themselves. A
 * group is `s.<site>`, `c.<class>`, `m.<short stream id, or 0 for the default stream>` or `t.<hash of the tag>`. A tag
 * is text that may name a person, so only its keyed hash is stored. A row is the counts in the order of
 * `GROUP_FIGURES`, then pairs of a bucket and a count: how many deliveries took so long from acceptance to hand-over.
 * The bounds of the buckets grow by the square root of two, from 100 ms to 48 hours.
 *
 * Spec stats.groups
 */

import { hostOfRoute } from '../../mail/attempt-route.ts'
import { NO_SITE, receivingSite, SIMULATED_SITE } from '../../mail/receiving-sites.ts'
import { DAY_MS } from '../calendar.ts'
import { memoize } from '../memoize.ts'
import { type Counted, type CounterKind, classifyEvent, type Figure, type MailRow } from './hour-count.ts'
import type { StatusEvent } from './status.ts'

/** What messages are grouped by, with the letter of each kind. */
export const GROUP_KINDS = { site: 's', class: 'c', stream: 'm', tag: 't' } as const
export type GroupKind = keyof typeof GROUP_KINDS

/** The counts of a group, by their place in a row. */
export const GROUP_FIGURES = [
  'delivered',
  'deferred',
  'hardBounced',
  'softBounced',
  'complained',
  'unsubscribed',
] as const

/** The name of everything beyond the bounds of `group-rows.ts`, and of servers without a registrable domain. */
export const REST = ''

/** Counts of a row; pairs of times follow. */
const FIGURES = GROUP_FIGURES.length

/** Groups that the counter holds: it is written with every commit, and moved when more come. */
const GROUPS_RUNNING_MAX = 40

const FASTEST_MS = 100
const SLOWEST_BUCKET = Math.ceil(2 * Math.log2((2 * DAY_MS) / FASTEST_MS))

/** Owner of the counter. */
export function groupOwner(serverId: string): string {
  return `groups:${serverId}`
}

/** What is known of an outcome. */
export interface GroupInput {
  readonly told: readonly StatusEvent[]
  /** The events before these. */
  readonly before: readonly StatusEvent[]
  /** As in `HourCounters`. */
  readonly stream: string
  /** Null for a message without a tag, which is in no group of tags. */
  readonly tagHash: string | null
  /** The recipient is simulated. */
  readonly test: boolean
  /** Class of a deferral. */
  readonly deferralClass: string | null
  readonly acceptedAtMs: number
}

/** The rows that events add, by group. */
export function computeGroups({ told, before, ...of }: GroupInput): Counted[] {
  const { stream, tagHash, test, deferralClass, acceptedAtMs } = of
  const site = siteOfEvents([...before, ...told], test)
  return told.flatMap((event) => {
    const figure = classifyEvent(event, before)
    const place = figure === null ? -1 : placeOf(figure)
    if (place < 0) return []
    const counts = new Array<number>(place).fill(0)
    counts.push(1)
    const timed = event.event === 'delivered' ? withTime(counts, event.occurredAtMs - acceptedAtMs) : counts
    const bounceClass = event.event === 'bounced' ? event.classification : null
    const name = event.event === 'deferred' ? deferralClass : bounceClass
    return [
      { stream: `s.${site}`, figures: timed },
      { stream: `m.${stream}`, figures: timed },
      ...(tagHash === null ? [] : [{ stream: `t.${tagHash}`, figures: timed }]),
      ...(name === null ? [] : [{ stream: `c.${name}`, figures: counts }]),
    ]
  })
}

function placeOf(figure: Figure): number {
  return (GROUP_FIGURES as readonly string[]).indexOf(figure)
}

/** Few servers take most of the mail. */
const siteOfHost = memoize((host) => receivingSite(host) ?? REST)

/** The site of the last server that a recipient's events name. `test`: the recipient is simulated. */
export function siteOfEvents(events: readonly StatusEvent[], test: boolean): string {
  if (test) return SIMULATED_SITE
  const last = events.findLast((event) => 'route' in event && event.route !== undefined)
  return last !== undefined && 'route' in last ? siteOfHost(hostOfRoute(last.route as string)) : NO_SITE
}

function withTime(counts: MailRow, ms: number): MailRow {
  return [...GROUP_FIGURES.map((_, place) => counts[place] ?? 0), bucketOf(ms), 1]
}

/** The bucket of a time: the first whose bound is not below it. */
function bucketOf(ms: number): number {
  if (ms <= FASTEST_MS) return 0
  return Math.min(Math.ceil(2 * Math.log2(ms / FASTEST_MS) - 1e-9), SLOWEST_BUCKET)
}

/** The bound of a bucket in ms. */
export function boundMs(bucket: number): number {
  return Math.round(FASTEST_MS * 2 ** (bucket / 2))
}

/** The sum of two rows, the pairs by bucket. Called for each outcome: it allocates nothing but the sum. */
export function addGroupRows(one: MailRow | undefined, other: MailRow): MailRow {
  if (one === undefined) return other
  const sum = one.slice()
  const counts = Math.min(other.length, FIGURES)
  for (let place = 0; place < counts; place += 1) sum[place] = (sum[place] ?? 0) + (other[place] as number)
  if (other.length <= FIGURES) return sum
  for (let from = FIGURES, at = FIGURES; from < other.length; from += 2) {
    const bucket = other[from] as number
    while (at < sum.length && (sum[at] as number) < bucket) at += 2
    if (sum[at] === bucket) sum[at + 1] = (sum[at + 1] as number) + (other[from + 1] as number)
    else sum.splice(at, 0, bucket, other[from + 1] as number)
  }
  return sum
}

/** The counter of the groups. */
export const BY_GROUP: CounterKind = { max: GROUPS_RUNNING_MAX, add: addGroupRows }

/** The time within which a share of the deliveries of a row were handed over; null: fewer than `least`. */
export function percentileMs(row: MailRow, share: number, least: number): number | null {
  let all = 0
  for (let at = FIGURES; at < row.length; at += 2) all += row[at + 1] as number
  if (all < least) return null
  let seen = 0
  for (let at = FIGURES; at < row.length; at += 2) {
    seen += row[at + 1] as number
    if (seen >= all * share) return boundMs(row[at] as number)
  }
  return null
}
