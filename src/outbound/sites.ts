/**
 * sites - who may be served now: places at each receiving site, and in the whole process
 *
 * States of an attempt: routed -> waiting -> under way -> ended. A site that is paused sends those that wait for it back to
 * their lane (`returned`, no event); a site that cannot be reached ends them with the same failure as the one that tried.
 *
 * Guarantees: no more attempts under way at a site than its pace allows within this process's share of the site's limits,
 * and no more than 256 in the process; the last
 * quarter of those is for sites that have answered before, and a site that has not gets one place when they become few,
 * so that no number of dead destinations takes the places of living ones; what waits is bounded, for a site and in all.
 *
 * Spec delivery.site, delivery.site.share, delivery.fair, delivery.hold
 */

import type { MxRoute } from '../dns/mx-route.ts'
import { makeReturned, type Outcome } from '../mail/outcome.ts'
import { type SiteLimits, shareOf } from '../mail/site.ts'
import { begun, ended, makeSitePace, placesOf, type SitePace, waitingMax, waitMs } from '../mail/site-pace.ts'
import type { MailOutcome } from './thread/thread-job.ts'

/** Attempts under way in this process: each has a connection, or is about to. */
export const UNDER_WAY_MAX = 256
/** From here on a site that has not answered yet has one place. */
const TIGHT_FROM = UNDER_WAY_MAX / 4
/** From here on places are only for sites that have answered. */
const PROVEN_FROM = (UNDER_WAY_MAX / 4) * 3
/** Attempts that wait for a place, all sites together: each holds its message's head. */
const WAITING_ALL_MAX = 4096
/** Attempts of a lane whose site is not known yet. */
const UNKNOWN_ROOM = 16
const SITES_MAX = 10_000
const DOMAINS_MAX = 65_536
/** An attempt that finds no connection to spare this often goes back. */
const ROUNDS_MAX = 20

/** What an attempt is given with its place. */
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
  /** Calls back after so many milliseconds. Out: takes it back. */
  readonly after: (ms: number, run: () => void) => () => void
  /** Processes that deliver now, this one with them: they share each site's limits. */
  readonly sharers: () => number
}

export interface Sites {
  /** Attempts that a domain's lane may begin now. */
  room(domain: string): number
  /** Waits for a place at the route's site and performs. Never rejects unless `run` does. */
  attempt(domain: string, input: { route: MxRoute; signal: AbortSignal; run: RunAttempt }): Promise<MailOutcome>
  /** The site of a domain, where an attempt has shown it; null = not known here. */
  siteOf(domain: string): string | null
  /** Forgets that a domain's site is to be left alone. */
  wake(domain: string): void
  /** Sends back all that waits, and whatever comes. */
  close(): void
  readonly figures: { readonly underWay: number; readonly waiting: number; readonly paused: number }
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
  /** No connection to spare until then. */
  spareAtMs: number
  cancelTimer: (() => void) | null
}

/** Sites that nothing is known of. */
export function makeSites({ nowMs, random, after, sharers }: SiteDeps): Sites {
  const sites = new Map<string, Site>()
  const domains = new Map<string, string>()
  /** Sites with something waiting that the process had no place for. */
  const hungry = new Set<Site>()
  let inUse = 0
  let waiting = 0
  let isClosed = false

  function room(domain: string): number {
    if (isClosed || waiting >= WAITING_ALL_MAX) return 0
    const site = sites.get(domains.get(domain) ?? '')
    if (site === undefined) return UNKNOWN_ROOM
    if (site.pace.pausedUntilMs > nowMs()) return 0
    return Math.max(
      0,
      placesOf(site.pace, limitsOf(site.route), isTight()) + waitingMax(site.pace) - site.inUse - site.waiting.size,
    )
  }

  /** The relay is the operator's own: what it is given is shared where its connections are. */
  const limitsOf = ({ limits, isRelay }: MxRoute): SiteLimits => (isRelay ? limits : shareOf(limits, sharers()))

  const isTight = (): boolean => inUse >= TIGHT_FROM

  function siteFor(domain: string, route: MxRoute): Site {
    domains.delete(domain)
    if (domains.size >= DOMAINS_MAX) domains.delete(domains.keys().next().value as string)
    domains.set(domain, route.site)
    const known = sites.get(route.site)
    if (known) {
      known.route = route
      return known
    }
    if (sites.size >= SITES_MAX) forgetOne(sites, nowMs())
    const pace = makeSitePace(limitsOf(route))
    const site = {
      name: route.site,
      route,
      pace,
      inUse: 0,
      waiting: new Set<Waiter>(),
      spareAtMs: 0,
      cancelTimer: null,
    }
    sites.set(route.site, site)
    return site
  }

  async function attempt(
    domain: string,
    { route, signal, run }: { route: MxRoute; signal: AbortSignal; run: RunAttempt },
  ): Promise<MailOutcome> {
    const site = siteFor(domain, route)
    for (let rounds = 0; rounds < ROUNDS_MAX; rounds += 1) {
      const end = await place(site, signal)
      if (end !== null) return end
      const outcome = await perform(site, run)
      if (outcome.result !== 'returned' || outcome.phase !== 'site') return outcome
      site.spareAtMs = nowMs() + (outcome.afterMs ?? 0)
    }
    return sentBack(site, 'no connection to spare')
  }

  async function perform(site: Site, run: RunAttempt): Promise<MailOutcome> {
    let outcome: MailOutcome | null = null
    try {
      const limits = limitsOf(site.route)
      const connections = placesOf(site.pace, limits, false)
      outcome = await run({ connections, limits, sharers: sharers(), isProven: site.pace.isProven })
      return outcome
    } finally {
      site.inUse -= 1
      inUse -= 1
      if (outcome !== null) learn(site, outcome)
      serve(site)
      serveHungry()
    }
  }

  /** What an attempt says about its site. */
  function learn(site: Site, outcome: MailOutcome): void {
    const contact = outcome.contact ?? 'none'
    const { isRelay } = site.route
    // The operator's own relay is not asked for less, whatever it says: only for whether it is there.
    const heard: Outcome = isRelay ? { ...outcome, result: 'delivered', code: 250, response: null } : outcome
    site.pace = ended(site.pace, limitsOf(site.route), { outcome: heard, contact, nowMs: nowMs(), unit: random() })
    if (contact !== 'refused' && contact !== 'silent') return
    for (const waiter of [...site.waiting]) waiter.settle({ ...outcome, contact: 'none' })
  }

  /** Null with a place at the site, else how the attempt ends without one. */
  function place(site: Site, signal: AbortSignal): Promise<MailOutcome | null> {
    if (isClosed || signal.aborted) return Promise.resolve(sentBack(site, 'attempt was cut off', 'abort'))
    if (site.pace.pausedUntilMs > nowMs()) return Promise.resolve(sentBack(site, 'site is paused'))
    return new Promise((resolve) => {
      const onAbort = () => waiter.settle(sentBack(site, 'attempt was cut off', 'abort'))
      const waiter: Waiter = {
        settle(end) {
          if (!site.waiting.delete(waiter)) return
          waiting -= 1
          signal.removeEventListener('abort', onAbort)
          resolve(end)
        },
      }
      signal.addEventListener('abort', onAbort, { once: true })
      site.waiting.add(waiter)
      waiting += 1
      serve(site)
    })
  }

  /** Gives places to what waits for a site, as many as there are. */
  function serve(site: Site): void {
    hungry.delete(site)
    const limits = limitsOf(site.route)
    for (const waiter of site.waiting) {
      const atMs = nowMs()
      if (site.pace.pausedUntilMs > atMs) {
        sendAllBack(site)
        return
      }
      const laterMs = Math.max(site.spareAtMs - atMs, waitMs(site.pace, limits, atMs))
      if (laterMs > 0) {
        serveLater(site, laterMs)
        return
      }
      if (site.inUse >= placesOf(site.pace, limits, isTight())) return
      if (inUse >= (site.pace.isProven ? UNDER_WAY_MAX : PROVEN_FROM)) return void hungry.add(site)
      site.inUse += 1
      inUse += 1
      site.pace = begun(site.pace, limits, atMs)
      waiter.settle(null)
    }
  }

  function serveLater(site: Site, ms: number): void {
    site.cancelTimer?.()
    site.cancelTimer = after(Math.ceil(ms), () => {
      site.cancelTimer = null
      serve(site)
    })
  }

  /** One place became free: the sites that found none are served in turn. */
  function serveHungry(): void {
    for (const site of [...hungry]) {
      if (inUse >= UNDER_WAY_MAX) return
      serve(site)
    }
  }

  function sendAllBack(site: Site): void {
    for (const waiter of [...site.waiting]) waiter.settle(sentBack(site, 'site is paused'))
  }

  function sentBack(site: Site, text: string, phase: 'site' | 'abort' = 'site'): MailOutcome {
    const afterMs = Math.max(0, site.pace.pausedUntilMs - nowMs())
    return { ...makeReturned(phase, text), sizeBytes: null, afterMs }
  }

  return {
    room,
    attempt,
    siteOf: (domain) => domains.get(domain) ?? null,
    wake(domain) {
      const site = sites.get(domains.get(domain) ?? '')
      if (site === undefined) return
      site.pace = { ...site.pace, pausedUntilMs: 0, failures: 0 }
      serve(site)
    },
    close() {
      isClosed = true
      for (const site of sites.values()) {
        site.cancelTimer?.()
        for (const waiter of [...site.waiting]) waiter.settle(sentBack(site, 'the service is stopping', 'abort'))
      }
    },
    get figures() {
      const atMs = nowMs()
      let paused = 0
      for (const { pace } of sites.values()) if (pace.pausedUntilMs > atMs) paused += 1
      return { underWay: inUse, waiting, paused }
    },
  }
}

/** Forgets the oldest site of which nothing is to be remembered, else the oldest that nothing is under way at. */
function forgetOne(sites: Map<string, Site>, nowMs: number): void {
  const idle = [...sites.values()].filter((site) => site.inUse === 0 && site.waiting.size === 0)
  const gone = idle.find(({ pace }) => pace.pausedUntilMs <= nowMs && !pace.isThrottled) ?? idle[0]
  if (gone !== undefined) sites.delete(gone.name)
}
