/**
 * session-pool - SMTP sessions that are open with receiving servers, kept for the next message to the same site.
 *
 * Guarantees: a site never has more connections open than allowed, including those that are closing, nor more new ones
 * in a minute than allowed; a session is closed after a number of messages, a total time or an idle time; an
 * unverified session is never used if verification is required, nor one that was not checked by TLSA records if DANE
 * applies.
 *
 * Spec delivery.site.limits, delivery.reuse
 */

import type { SiteLimits } from '../../mail/site.ts'
import type { Session } from './converse.ts'
import type { DaneChecked } from './dane.ts'

const IDLE_MAX_MS = 5000
const LIFE_MAX_MS = 300_000
const MINUTE_MS = 60_000
/** How long a new connection waits for one that is closing. */
const CLOSING_MAX_MS = 5000
/** Sites whose counts are kept without open sessions. */
const SITES_MAX = 10_000

/** An open session and its data. */
export interface Held {
  readonly session: Session
  readonly host: string
  readonly address: string
  /** Whether the server has addresses of IPv4 and of IPv6. */
  readonly isDual: boolean
  readonly openedAtMs: number
  /** How its server was checked by TLSA records. */
  readonly checked: DaneChecked
  /** Messages that it has carried. */
  messages: number
}

/** Request of an attempt to the pool. */
export interface PoolAsk {
  readonly site: string
  readonly hosts: readonly string[]
  readonly isVerified: boolean
  /** The recipient's domain and its last alias, if DANE applies to the servers; otherwise null. */
  readonly secureNames: readonly string[] | null
  readonly limits: SiteLimits
  /** Connections that the site may have now. */
  readonly connections: number
}

interface PoolSite {
  readonly idle: Map<Held, NodeJS.Timeout>
  open: number
  /** When connections were opened within the last minute, oldest first. */
  openedAtMs: number[]
  readonly closing: Set<() => void>
}

export interface PoolOptions {
  readonly connectionsMax: number
  /** Monotonic clock in milliseconds. */
  readonly nowMs: () => number
}

/** A pool without sessions, to begin with. */
export class SessionPool {
  private readonly options: PoolOptions
  private readonly sites = new Map<string, PoolSite>()
  private openAll = 0
  private isClosed = false

  constructor(options: PoolOptions) {
    this.options = options
  }

  /** Connections open now. */
  get open(): number {
    return this.openAll
  }

  /** A session for the next message; null: open one. */
  take({ site, hosts, isVerified, secureNames }: PoolAsk): Held | null {
    const { idle } = this.siteOf(site)
    // The youngest first, so that the others reach their idle time and close.
    for (const [held, timer] of [...idle].reverse()) {
      if (!hosts.includes(held.host)) continue
      if (isVerified && !(held.session.facts().isVerified && held.checked.isPublic)) continue
      if (secureNames !== null && !['', secureNames[0]].includes(held.checked.checkedFor ?? undefined)) continue
      clearTimeout(timer)
      idle.delete(held)
      if (held.session.isOpen()) return held
    }
    return null
  }

  /**
   * Takes a place for a new connection, waiting for one. Returns the milliseconds until there may be one if this
   * minute's are used up, otherwise 0.
   */
  async admit({ site: name, limits, connections }: PoolAsk): Promise<number> {
    const { connectionsMax, nowMs } = this.options
    const site = this.siteOf(name)
    const sinceMs = nowMs() - MINUTE_MS
    site.openedAtMs = site.openedAtMs.filter((atMs) => atMs > sinceMs)
    if (site.openedAtMs.length >= limits.connectionsPerMinute)
      return Math.max(1, (site.openedAtMs[0] as number) - sinceMs)
    site.openedAtMs.push(nowMs())
    if (site.open >= connections) endIdle(site)
    if (site.open >= connections) await closed(site)
    if (this.openAll >= connectionsMax) for (const other of this.sites.values()) if (endIdle(other)) break
    site.open += 1
    this.openAll += 1
    return 0
  }

  /** The result for a place: an open session (which keeps it until it closes), or null. */
  placed({ site: name }: PoolAsk, session: Session | null): void {
    const site = this.siteOf(name)
    const leave = () => {
      site.open -= 1
      this.openAll -= 1
      for (const go of [...site.closing].slice(0, 1)) go()
    }
    if (session === null) leave()
    else session.onClose(leave)
  }

  /** Puts a session back after a message, or closes it if it has been used long enough. */
  keep({ site: name, limits }: PoolAsk, held: Held): void {
    const { idle } = this.siteOf(name)
    const isOld = this.options.nowMs() - held.openedAtMs >= LIFE_MAX_MS
    const isUsed = held.messages >= limits.messagesPerConnection || isOld
    if (this.isClosed || isUsed || !held.session.isOpen()) {
      held.session.quit()
      return
    }
    const expire = () => {
      idle.delete(held)
      held.session.quit()
    }
    idle.set(held, setTimeout(expire, IDLE_MAX_MS).unref())
  }

  /** Closes every idle session with QUIT. */
  close(): void {
    this.isClosed = true
    for (const site of this.sites.values()) while (endIdle(site));
  }

  private siteOf(name: string): PoolSite {
    const known = this.sites.get(name)
    if (known) return known
    if (this.sites.size >= SITES_MAX) forgetOne(this.sites)
    const made: PoolSite = { idle: new Map(), open: 0, openedAtMs: [], closing: new Set() }
    this.sites.set(name, made)
    return made
  }
}

/** Closes one idle session; false if there is none. */
function endIdle(site: PoolSite): boolean {
  const [first] = site.idle
  if (first === undefined) return false
  clearTimeout(first[1])
  site.idle.delete(first[0])
  first[0].session.quit()
  return true
}

/** Resolves when a connection of the site has closed, or after a while all the same. */
function closed(site: PoolSite): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      clearTimeout(timer)
      site.closing.delete(go)
      resolve()
    }
    const timer = setTimeout(go, CLOSING_MAX_MS)
    site.closing.add(go)
  })
}

function forgetOne(sites: Map<string, PoolSite>): void {
  for (const [name, site] of sites) {
    if (site.open > 0 || site.closing.size > 0) continue
    sites.delete(name)
    return
  }
}
