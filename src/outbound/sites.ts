/**
 * sites - who may be served now: places at each receiving site, and in the whole process
 *
 * States of an attempt: routed -> waiting -> under way -> ended. A site that is paused sends those that wait for it
 * back to their lane (`returned`, no event); a site that cannot be reached ends them with the same failure as the one
 * that tried.
 *
 * Guarantees: no more attempts in flight at a site than its pace allows within this process's share of the site's
 * limits, and no more than 256 in the process; the last quarter of those is for sites that have answered before, and a
 * site that has not gets one place when they become few, so that dead destinations never take the places of working
 * ones; waiting attempts are bounded, for a site and in all.
 *
 * Spec delivery.site, delivery.site.share, delivery.fair, delivery.hold
 */

import type { MxRoute } from '../dns/mx-route.ts'
import { makeReturned, type Outcome } from '../mail/outcome.ts'
import { computeShare, type SiteLimits } from '../mail/site.ts'
import { begun, computePlaces, ended, makeSitePace, type SitePace, waitingMax, waitMs } from '../mail/site-pace.ts'
import { placeOfField } from '../state/egress.ts'
import { RELAY_LIMITS } from './relay-limits.ts'
import type { MailOutcome } from './thread/thread-job.ts'

/** Attempts in flight in this process, each of which has a connection, or is about to have one. */
export const UNDER_WAY_MAX = 256
/** From here on a site that has not answered yet has one place. */
const TIGHT_FROM = UNDER_WAY_MAX / 4
/** From here on places are only for sites that have answered. */
const PROVEN_FROM = (UNDER_WAY_MAX / 4) * 3
/** Attempts waiting for a place at all sites together; each keeps its message's head in memory. */
const WAITING_ALL_MAX = 4096
/** Attempts of a lane whose site is not known yet. */
const UNKNOWN_ROOM = 16
const SITES_MAX = 10_000
const DOMAINS_MAX = 65_536
/** Sites of a domain with several sources that are remembered. */
const SITES_OF_DOMAIN_MAX = 8
/** An attempt that finds no connection to spare this often goes back. */
const ROUNDS_MAX = 20

/** The grant of an attempt with its place. */
export interface Given {
  /** Connections that the site may have open now. */
  readonly connections: number
  /** This process's share of the site's limits. */
  readonly limits: SiteLimits
  /** Processes that deliver, this one with them. */
  readonly sharers: number
  readonly isProven: boolean
}

/** Performs an attempt on its way. */
export type RunAttempt = (given: Given) => Promise<MailOutcome>

export interface SiteDeps {
  /** Monotonic clock in milliseconds. */
  readonly nowMs: () => number
  /** A random number, 0 to 1. */
  readonly random: () => number
  /** Calls `run` after `ms` milliseconds. Returns a function that cancels the call. */
  readonly after: (ms: number, run: () => void) => () => void
  /** Number of processes that deliver now, including this one. They share each site's limits. */
  readonly sharers: () => number
  /** Whether mail may leave by several sources, each of which has a site of its own; absent: it does not. */
  readonly hasSources?: () => boolean
}

interface Waiter {
  /** Null: go. */
  settle(end: MailOutcome | null): void
}

interface Site {
  readonly name: string
  route: MxRoute
  pace: SitePace
  inUse: number
  readonly waiting: Set<Waiter>
  /** Its name in a list, for domains with this site alone. */
  readonly alone: readonly string[]
  /** No connection to spare until then. */
  spareAtMs: number
  cancelTimer: (() => void) | null
}

/** Sites that nothing is known of, to begin with. */
export class Sites {
  private readonly deps: SiteDeps
  private readonly sites = new Map<string, Site>()
  /** The sites of each domain, known from attempts: with several sources there is one for each, the newest last. */
  private readonly domains = new Map<string, readonly string[]>()
  /** Sites with something waiting that the process had no place for. */
  private readonly hungry = new Set<Site>()
  private inUse = 0
  private waiting = 0
  private isClosed = false

  constructor(deps: SiteDeps) {
    this.deps = deps
  }

  get figures(): { readonly underWay: number; readonly waiting: number; readonly paused: number } {
    const atMs = this.deps.nowMs()
    let paused = 0
    for (const { pace } of this.sites.values()) if (pace.pausedUntilMs > atMs) paused += 1
    return { underWay: this.inUse, waiting: this.waiting, paused }
  }

  /** Attempts that a domain's lane may begin now. */
  room(domain: string): number {
    if (this.isClosed || this.waiting >= WAITING_ALL_MAX) return 0
    const sites = this.sitesOf(domain)
    if (sites.length === 0) return UNKNOWN_ROOM
    const room = sites.reduce((sum, site) => sum + this.roomAt(site), 0)
    if (!this.deps.hasSources?.()) return room
    // A source that was not tried yet may send although all others are paused.
    return Math.max(room, UNKNOWN_ROOM - sites.reduce((sum, { waiting }) => sum + waiting.size, 0))
  }

  private roomAt(site: Site): number {
    if (site.pace.pausedUntilMs > this.deps.nowMs()) return 0
    const places = computePlaces(site.pace, this.limitsOf(site.route), this.isTight()) + waitingMax(site.pace)
    return Math.max(0, places - site.inUse - site.waiting.size)
  }

  /** Waits for a place at the route's site and performs. Never rejects unless `run` does. */
  async attempt(
    domain: string,
    { route, signal, run }: { route: MxRoute; signal: AbortSignal; run: RunAttempt },
  ): Promise<MailOutcome> {
    const site = this.siteFor(domain, route)
    for (let rounds = 0; rounds < ROUNDS_MAX; rounds += 1) {
      const end = await this.place(site, signal)
      if (end !== null) return end
      const outcome = await this.perform(site, run)
      if (outcome.result !== 'returned' || outcome.phase !== 'site') return outcome
      site.spareAtMs = this.deps.nowMs() + (outcome.afterMs ?? 0)
    }
    return this.sentBack(site, 'no connection to spare')
  }

  /** The site of a domain, if an attempt has shown it; null if it is not known here. */
  siteOf(domain: string): string | null {
    const name = this.domains.get(domain)?.at(-1)
    return name === undefined ? null : placeOfField(name).site
  }

  /** Ends the pause of a domain's site. */
  wake(domain: string): void {
    for (const site of this.sitesOf(domain)) {
      site.pace = { ...site.pace, pausedUntilMs: 0, failures: 0 }
      this.serve(site)
    }
  }

  private sitesOf(domain: string): Site[] {
    const names = this.domains.get(domain) ?? []
    return names.map((name) => this.sites.get(name)).filter((site) => site !== undefined)
  }

  /** Returns all waiting and later attempts. */
  close(): void {
    this.isClosed = true
    for (const site of this.sites.values()) {
      site.cancelTimer?.()
      for (const waiter of [...site.waiting]) waiter.settle(this.sentBack(site, 'the service is stopping', 'abort'))
    }
  }

  /** A relay is the operator's own, and its connections are already divided between processes. */
  private limitsOf({ limits, isRelay }: MxRoute): SiteLimits {
    const sharers = this.deps.sharers()
    if (!isRelay) return computeShare(limits, sharers)
    const hasRate = limits.messagesPerSecond < RELAY_LIMITS.messagesPerSecond
    return hasRate ? { ...limits, messagesPerSecond: limits.messagesPerSecond / sharers } : limits
  }

  private isTight(): boolean {
    return this.inUse >= TIGHT_FROM
  }

  private siteFor(domain: string, route: MxRoute): Site {
    const site = this.knownSite(route)
    const { domains } = this
    const before = domains.get(domain)
    domains.delete(domain)
    if (domains.size >= DOMAINS_MAX) domains.delete(domains.keys().next().value as string)
    const others = before?.filter((name) => name !== site.name) ?? []
    const isAlone = others.length === 0 || !this.deps.hasSources?.()
    domains.set(domain, isAlone ? site.alone : [...others.slice(1 - SITES_OF_DOMAIN_MAX), site.name])
    return site
  }

  private knownSite(route: MxRoute): Site {
    const { sites } = this
    const known = sites.get(route.site)
    if (known) {
      known.route = route
      return known
    }
    if (sites.size >= SITES_MAX) forgetOne(sites, this.deps.nowMs())
    const pace = makeSitePace(this.limitsOf(route))
    const empty = { inUse: 0, waiting: new Set<Waiter>(), spareAtMs: 0, cancelTimer: null }
    const site = { name: route.site, alone: [route.site], route, pace, ...empty }
    sites.set(route.site, site)
    return site
  }

  private async perform(site: Site, run: RunAttempt): Promise<MailOutcome> {
    let outcome: MailOutcome | null = null
    try {
      const limits = this.limitsOf(site.route)
      const connections = computePlaces(site.pace, limits, false)
      outcome = await run({ connections, limits, sharers: this.deps.sharers(), isProven: site.pace.isProven })
      return outcome
    } finally {
      site.inUse -= 1
      this.inUse -= 1
      if (outcome !== null) this.learn(site, outcome)
      this.serve(site)
      this.serveHungry()
    }
  }

  /** Learns about a site from an attempt. */
  private learn(site: Site, outcome: MailOutcome): void {
    const contact = outcome.contact ?? 'none'
    const { isRelay } = site.route
    // The operator's own relay is never throttled by its replies; only its availability counts.
    const heard: Outcome = isRelay ? { ...outcome, result: 'delivered', code: 250, response: null } : outcome
    const said = { outcome: heard, contact, nowMs: this.deps.nowMs(), unit: this.deps.random() }
    site.pace = ended(site.pace, this.limitsOf(site.route), said)
    if (contact !== 'refused' && contact !== 'silent') return
    for (const waiter of [...site.waiting]) waiter.settle({ ...outcome, contact: 'none', isShared: true })
  }

  /** Null with a place at the site, otherwise the outcome of the attempt without one. */
  private place(site: Site, signal: AbortSignal): Promise<MailOutcome | null> {
    if (this.isClosed || signal.aborted) return Promise.resolve(this.sentBack(site, 'attempt was cut off', 'abort'))
    if (site.pace.pausedUntilMs > this.deps.nowMs()) return Promise.resolve(this.sentBack(site, 'site is paused'))
    return new Promise((resolve) => {
      const onAbort = () => waiter.settle(this.sentBack(site, 'attempt was cut off', 'abort'))
      const waiter: Waiter = {
        settle: (end) => {
          if (!site.waiting.delete(waiter)) return
          this.waiting -= 1
          signal.removeEventListener('abort', onAbort)
          resolve(end)
        },
      }
      signal.addEventListener('abort', onAbort, { once: true })
      site.waiting.add(waiter)
      this.waiting += 1
      this.serve(site)
    })
  }

  /** Gives free places to attempts waiting for a site. */
  private serve(site: Site): void {
    this.hungry.delete(site)
    const limits = this.limitsOf(site.route)
    for (const waiter of site.waiting) {
      const atMs = this.deps.nowMs()
      if (site.pace.pausedUntilMs > atMs) return void this.sendAllBack(site)
      const laterMs = Math.max(site.spareAtMs - atMs, waitMs(site.pace, limits, atMs))
      if (laterMs > 0) return void this.serveLater(site, laterMs)
      if (site.inUse >= computePlaces(site.pace, limits, this.isTight())) return
      if (this.inUse >= (site.pace.isProven ? UNDER_WAY_MAX : PROVEN_FROM)) return void this.hungry.add(site)
      site.inUse += 1
      this.inUse += 1
      site.pace = begun(site.pace, limits, atMs)
      waiter.settle(null)
    }
  }

  private serveLater(site: Site, ms: number): void {
    site.cancelTimer?.()
    site.cancelTimer = this.deps.after(Math.ceil(ms), () => {
      site.cancelTimer = null
      this.serve(site)
    })
  }

  /** One place became free, so the sites that found none are served in turn. */
  private serveHungry(): void {
    for (const site of [...this.hungry]) {
      if (this.inUse >= UNDER_WAY_MAX) return
      this.serve(site)
    }
  }

  private sendAllBack(site: Site): void {
    for (const waiter of [...site.waiting]) waiter.settle(this.sentBack(site, 'site is paused'))
  }

  private sentBack(site: Site, text: string, phase: 'site' | 'abort' = 'site'): MailOutcome {
    const afterMs = Math.max(0, site.pace.pausedUntilMs - this.deps.nowMs())
    return { ...makeReturned(phase, text), sizeBytes: null, afterMs }
  }
}

/** Drops the oldest site without state, otherwise the oldest without attempts in progress. */
function forgetOne(sites: Map<string, Site>, nowMs: number): void {
  const idle = [...sites.values()].filter((site) => site.inUse === 0 && site.waiting.size === 0)
  const gone = idle.find(({ pace }) => pace.pausedUntilMs <= nowMs && !pace.isThrottled) ?? idle[0]
  if (gone !== undefined) sites.delete(gone.name)
}
