/**
 * plan - sources, pools and rules as attempts use them, made of the stored document and today's settings
 *
 * The default source is the machine's own address with SMTP_HOSTNAME, or RELAY_URL. The default pool is that source,
 * unless the document names another one.
 *
 * Spec egress.document, egress.rule
 */

import { DEFAULT_EGRESS } from '../../../schemas/operator/egress.ts'
import type { SiteLimits, SiteLimitTable } from '../../mail/site.ts'
import type { EgressDocument } from '../../state/egress.ts'
import { parseRelayUrl, type RelayTarget } from '../thread/relay-target.ts'
import type { Ceilings } from './units.ts'
import { scheduleOf, type WarmUp, warmUpCeiling } from './warm-up.ts'

/** Connections to a relay whose source names no number. */
const RELAY_CONNECTIONS = 10

/** One way out: an address of the machine, or a relay. */
export interface Source {
  readonly name: string
  /** Local address; null: the system chooses. */
  readonly address: string | null
  readonly ehlo: string | null
  /** Null: mail goes to the site itself. The default source has none of its own: see `isRelay`. */
  readonly relay: { readonly target: RelayTarget; readonly connections: number } | null
  readonly isRelay: boolean
  readonly limits: SiteLimitTable
  readonly warmUp: WarmUp | null
  /** Why it cannot send at all; null: it can. */
  readonly fault: string | null
}

export interface PoolMember {
  readonly source: Source
  readonly weight: number
}

export interface Pool {
  readonly name: string
  readonly members: readonly PoolMember[]
}

export type PoolRule = EgressDocument['rules'][number]

/** All that attempts need to choose a source. */
export interface EgressPlan {
  /** False: there is no document, and everything is as the settings say. */
  readonly hasDocument: boolean
  readonly pools: ReadonlyMap<string, Pool>
  readonly rules: readonly PoolRule[]
  readonly defaultPool: Pool
  readonly sources: ReadonlyMap<string, Source>
  /** Whether some mail may go to sites without a relay. */
  readonly isDirect: boolean
}

/** The mail of an attempt, as rules see it; null: unknown, or none. */
export interface MailOf {
  readonly accountId: string | null
  readonly serverId: string | null
  readonly streamId: string | null
  readonly streamKind: 'transactional' | 'broadcast' | null
  /** The recipient's domain in lower case. */
  readonly domain: string
}

export interface PlanInput {
  readonly document: EgressDocument
  /** The password of a source's relay in the clear; null: it has none; undefined: it cannot be opened. */
  readonly passwordOf: (source: string) => string | null | undefined
  /** Whether RELAY_URL is set. */
  readonly hasRelay: boolean
}

/** Makes the plan. A document that a later version wrote may name what this one does not know: that is left out. */
export function makePlan({ document, passwordOf, hasRelay }: PlanInput): EgressPlan {
  const own: Source = {
    name: DEFAULT_EGRESS,
    address: null,
    ehlo: null,
    relay: null,
    isRelay: hasRelay,
    limits: new Map(),
    warmUp: null,
    fault: null,
  }
  const sources = new Map([[own.name, own]])
  for (const one of document.sources) sources.set(one.name, makeSource(one, passwordOf))
  const fallback: Pool = { name: DEFAULT_EGRESS, members: [{ source: own, weight: 1 }] }
  const pools = new Map([[fallback.name, fallback]])
  for (const { name, sources: members } of document.pools) {
    const known = members.flatMap(({ source: named, weight }) => {
      const source = sources.get(named)
      return source === undefined ? [] : [{ source, weight }]
    })
    if (known.length > 0) pools.set(name, { name, members: known })
  }
  const defaultPool = pools.get(document.defaultPool ?? DEFAULT_EGRESS) ?? fallback
  const rules = document.rules.filter(({ pool }) => pools.has(pool))
  const used = [defaultPool, ...rules.map(({ pool }) => pools.get(pool) as Pool)]
  return {
    hasDocument: document.sources.length > 0 || document.pools.length > 0,
    pools,
    rules,
    defaultPool,
    sources,
    isDirect: used.some(({ members }) => members.some(({ source }) => !source.isRelay)),
  }
}

function makeSource(one: EgressDocument['sources'][number], passwordOf: PlanInput['passwordOf']): Source {
  const { name, address, ehlo } = one
  const parsed = one.relay === null ? null : parseRelayUrl(one.relay)
  const password = one.relay === null ? null : passwordOf(name)
  const auth = parsed?.auth ? { ...parsed.auth, pass: password ?? parsed.auth.pass } : null
  const target = parsed && { ...parsed, auth, isVerified: one.tls === 'verified' }
  const limits = new Map(one.limits.map(({ site, ...limits }) => [site.toLowerCase(), givenLimits(limits)]))
  const fault = password === undefined ? 'the stored password of its relay cannot be opened' : null
  return {
    name,
    address,
    ehlo,
    relay: target && { target, connections: one.connections ?? RELAY_CONNECTIONS },
    isRelay: one.relay !== null,
    limits,
    warmUp: scheduleOf(one.warmup),
    fault: one.relay !== null && parsed === null ? 'its relay is no URL that this version knows' : fault,
  }
}

function givenLimits(
  limits: Readonly<
    Partial<Record<Exclude<keyof SiteLimits, 'connectionsStart' | 'throttledPerSecond'>, number | null>>
  >,
): Partial<SiteLimits> {
  const given = Object.entries(limits).filter(([, value]) => value !== null)
  const { connections } = limits
  return { ...Object.fromEntries(given), ...(connections && { connectionsStart: connections }) }
}

/** The first rule that matches, by its place, and its pool. `hosts` are the mail servers; null: not known. */
export function choosePool(
  { rules, pools, defaultPool }: EgressPlan,
  mail: MailOf,
  hosts: readonly string[] | null,
): { readonly rule: number | null; readonly pool: Pool } {
  const rule = rules.findIndex((one) => matches(one, mail, hosts))
  return rule < 0
    ? { rule: null, pool: defaultPool }
    : { rule, pool: pools.get((rules[rule] as PoolRule).pool) as Pool }
}

/** Whether mail needs the names of its mail servers: a rule asks for them, or the pool sends to them. */
export function needsHosts(plan: EgressPlan, mail: MailOf): boolean {
  const mayMatch = plan.rules.some((rule) => rule.site !== null && matches({ ...rule, site: null }, mail, null))
  return mayMatch || choosePool(plan, mail, null).pool.members.some(({ source }) => !source.isRelay)
}

function matches(rule: PoolRule, mail: MailOf, hosts: readonly string[] | null): boolean {
  const { accountId, serverId, streamId, streamKind, site } = rule
  if (accountId !== null && accountId !== mail.accountId) return false
  if (serverId !== null && serverId !== mail.serverId) return false
  if (streamId !== null && streamId !== mail.streamId) return false
  if (streamKind !== null && streamKind !== mail.streamKind) return false
  return site === null || isBelow(mail.domain, site) || (hosts?.some((host) => isBelow(host, site)) ?? false)
}

function isBelow(host: string, site: string): boolean {
  return host === site || host.endsWith(`.${site}`)
}

/** The ceilings of a source at a site with these limits: a warm-up lowers that of the day. */
export function ceilingsOf({ warmUp }: Source, limits: SiteLimits, nowMs: number): Ceilings {
  const { messagesPerHour: hour = null, messagesPerDay: day = null } = limits
  const warm = warmUpCeiling(warmUp, nowMs)
  return { hour, day: warm === null ? day : Math.min(warm, day ?? warm) }
}

/** Picks a source by weight among those that may send. `unit` is random, from 0 up to 1. */
export function pickMember(members: readonly PoolMember[], unit: number): PoolMember | null {
  const weighted = members.filter(({ weight }) => weight > 0)
  const able = weighted.length > 0 ? weighted : members
  const all = able.reduce((sum, { weight }) => sum + Math.max(1, weight), 0)
  let left = unit * all
  for (const member of able) {
    left -= Math.max(1, member.weight)
    if (left < 0) return member
  }
  return able.at(-1) ?? null
}
