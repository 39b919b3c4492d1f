/**
 * explain - which pool, source and limits mail has now, which of the limits is the ceiling, and why the mail waits
 *
 * It reads what all processes share: the document, the rests, the counters. The pauses of single processes are not
 * among them.
 *
 * Spec egress.explain
 */

import type { EgressExplained, EgressLimitName } from '../../../schemas/operator/egress.ts'
import { type SiteLimits, sourceLimits } from '../../mail/site.ts'
import { DAY_MS, HOUR_MS } from '../../state/calendar.ts'
import type { StoredRest } from '../../state/egress.ts'
import { ceilingsOf, choosePool, type EgressPlan, type MailOf, type Source } from './plan.ts'
import { warmUpCeiling } from './warm-up.ts'

const SECONDS_AN_HOUR = 3600
const HOURS_A_DAY = 24

/** The site of mail, if it goes to its own servers. */
export interface SiteOf {
  readonly site: string
  readonly hosts: readonly string[]
  readonly limits: SiteLimits
}

/** What the store has about a source at a site. */
export interface PlaceFacts {
  readonly usedHour: number
  readonly usedDay: number
  readonly rest: Pick<StoredRest, 'untilMs' | 'why'> | null
  readonly today: { readonly delivered: number; readonly deferred: number; readonly bounced: number }
}

export interface ExplainInput {
  readonly plan: EgressPlan
  readonly mail: MailOf
  /** Null: the DNS did not answer, or there is no site. */
  readonly route: SiteOf | null
  readonly relayLimits: SiteLimits
  readonly nowMs: number
  readonly factsOf: (source: string, site: string) => PlaceFacts
}

type Explanation = EgressExplained['sources'][number]

/** Explains it. Times are in milliseconds, and null without one. */
export function explainMail(input: ExplainInput) {
  const { plan, mail, route } = input
  const { rule, pool } = choosePool(plan, mail, route?.hosts ?? null)
  const sources = pool.members.map(({ source, weight }) => ({ weight, ...explainSource(input, source) }))
  const waiting = sources.every(({ state }) => state !== 'ready')
  const first = sources.reduce((best, one) => ((one.untilMs ?? Infinity) < (best.untilMs ?? Infinity) ? one : best))
  const needsSite = pool.members.every(({ source }) => !source.isRelay)
  const noSite = needsSite && route === null ? 'the mail servers of the domain were not found' : null
  return {
    rule,
    pool: pool.name,
    sources,
    waits: noSite ?? (waiting ? `${first.source}: ${first.why}` : null),
    untilMs: noSite === null && waiting ? first.untilMs : null,
  }
}

function explainSource(input: ExplainInput, source: Source) {
  const { route, nowMs } = input
  const site = source.isRelay || route === null ? 'relay' : route.site
  const base = source.isRelay || route === null ? input.relayLimits : route.limits
  const limits = sourceLimits(base, source.isRelay ? [] : (route?.hosts ?? []), source.limits)
  const facts = input.factsOf(source.name, site)
  const { hour, day } = ceilingsOf(source, limits, nowMs)
  const isHourOver = hour !== null && facts.usedHour >= hour
  const isDayOver = day !== null && facts.usedDay >= day
  const standing = standingOf({ source, facts, nowMs, isHourOver, isDayOver })
  const shown = limitRows({ source, limits, facts, nowMs })
  return { source: source.name, ...standing, limits: shown, today: facts.today }
}

interface Standing {
  readonly source: Source
  readonly facts: PlaceFacts
  readonly nowMs: number
  readonly isHourOver: boolean
  readonly isDayOver: boolean
}

function standingOf({ source, facts, nowMs, isHourOver, isDayOver }: Standing): {
  state: Explanation['state']
  why: string | null
  untilMs: number | null
} {
  const endOf = (spanMs: number) => (Math.floor(nowMs / spanMs) + 1) * spanMs
  if (source.fault !== null) return { state: 'unusable', why: source.fault, untilMs: null }
  if (facts.rest !== null && facts.rest.untilMs > nowMs)
    return { state: 'resting', why: `the site blocked it: ${facts.rest.why}`, untilMs: facts.rest.untilMs }
  if (isDayOver) return { state: 'ceiling', why: 'the messages of this day are used up', untilMs: endOf(DAY_MS) }
  if (isHourOver) return { state: 'ceiling', why: 'the messages of this hour are used up', untilMs: endOf(HOUR_MS) }
  return { state: 'ready', why: null, untilMs: null }
}

/** The limits that apply, and the one that allows the fewest messages of an hour. */
function limitRows({
  source,
  limits,
  facts,
  nowMs,
}: {
  source: Source
  limits: SiteLimits
  facts: PlaceFacts
  nowMs: number
}): Explanation['limits'] {
  const warm = warmUpCeiling(source.warmUp, nowMs)
  const rows: { limit: EgressLimitName; value: number; used: number | null; anHour: number }[] = []
  const add = (
    limit: EgressLimitName,
    value: number | undefined | null,
    anHour: number,
    used: number | null = null,
  ) => {
    if (value !== undefined && value !== null) rows.push({ limit, value, used, anHour })
  }
  const left = (ceiling: number | undefined | null, used: number) => Math.max(0, (ceiling ?? 0) - used)
  add('connections', source.relay?.connections ?? limits.connections, Infinity)
  if (!source.isRelay) {
    add('connectionsPerMinute', limits.connectionsPerMinute, Infinity)
    add('messagesPerConnection', limits.messagesPerConnection, Infinity)
  }
  const perSecond = Math.round(limits.messagesPerSecond)
  if (!source.isRelay || source.limits.get('default')?.messagesPerSecond !== undefined)
    add('messagesPerSecond', perSecond, perSecond * SECONDS_AN_HOUR)
  add('messagesPerHour', limits.messagesPerHour, left(limits.messagesPerHour, facts.usedHour), facts.usedHour)
  const hoursLeft = HOURS_A_DAY - Math.floor((nowMs % DAY_MS) / HOUR_MS)
  const dayRate = (ceiling: number | undefined | null) => left(ceiling, facts.usedDay) / hoursLeft
  add('messagesPerDay', limits.messagesPerDay, dayRate(limits.messagesPerDay), facts.usedDay)
  add('warmupPerDay', warm, dayRate(warm), facts.usedDay)
  const least = Math.min(...rows.map(({ anHour }) => anHour))
  return rows.map(({ anHour, ...row }) => ({ ...row, isCeiling: anHour === least && Number.isFinite(least) }))
}
