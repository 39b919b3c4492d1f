/**
 * units - ceilings of an hour and a day for all processes together: messages are taken from a counter in the store,
 * some at a time
 *
 * A unit belongs to the hour or day in which it was taken and is void after it. A unit is given back only when it is
 * certain that nothing was sent; after a crash the units of the process stay counted. So a ceiling is never exceeded.
 * While the store does not answer, nothing is sent that has a ceiling.
 *
 * Spec egress.ceiling
 */

import { DAY_MS, dayName, HOUR_MS } from '../../state/calendar.ts'
import { placeField } from '../../state/egress.ts'

/** Units that are taken at once. */
const CHUNK_MAX = 100
/** Each process takes at most this part of what is left, so that a crash or an idle process costs little. */
const PART = 8
/** A used-up ceiling is asked for again after this, because others may have given units back. */
const EMPTY_MS = 5000
/** Ceilings of sources at sites with units in this process. */
const LEASES_MAX = 10_000
const TRIES_MAX = 3

/** Ceilings of a source at a site; null: none. */
export interface Ceilings {
  readonly hour: number | null
  readonly day: number | null
}

/** The counters of the store. Its methods reject if the store does not answer. */
export interface UnitCounts {
  /** Takes up to `want` units below the ceiling. */
  take(ask: UnitAsk): Promise<{ readonly granted: number; readonly used: number }>
  give(ask: Pick<UnitAsk, 'window' | 'source' | 'site'> & { readonly units: number }): Promise<void>
}

export interface UnitAsk {
  /** `yyyymmdd` or `yyyymmddhh`. */
  readonly window: string
  readonly source: string
  readonly site: string
  readonly want: number
  readonly ceiling: number
}

export interface UnitDeps {
  readonly counts: UnitCounts
  /** The store's time. */
  readonly nowMs: () => number
  /** Processes that deliver. */
  readonly sharers: () => number
}

/** The right to send one message. */
export interface Unit {
  /** Whether its hour and day are not over. */
  isCurrent(): boolean
  /** Nothing was sent. */
  release(): void
}

/** No unit: until when, and which ceiling. */
export interface NoUnit {
  readonly untilMs: number
  readonly why: string
}

interface Lease {
  readonly ask: Pick<UnitAsk, 'window' | 'source' | 'site'>
  readonly endMs: number
  ceiling: number
  left: number
  used: number
  emptyUntilMs: number
  fetching: Promise<void> | null
}

interface Window {
  readonly name: string
  readonly endMs: number
  readonly ceiling: number
  readonly kind: 'hour' | 'day'
}

export class Units {
  private readonly deps: UnitDeps
  private readonly leases = new Map<string, Lease>()
  private isClosed = false

  constructor(deps: UnitDeps) {
    this.deps = deps
  }

  /** Takes one message from the ceilings. Never rejects. */
  async take(source: string, site: string, ceilings: Ceilings): Promise<Unit | NoUnit> {
    const taken: Lease[] = []
    for (const window of windowsOf(ceilings, this.deps.nowMs())) {
      const lease = await this.takeOne(source, site, window)
      if ('why' in lease) {
        this.release(taken)
        return lease
      }
      taken.push(lease)
    }
    return {
      isCurrent: () => taken.every(({ endMs }) => endMs > this.deps.nowMs()),
      release: () => this.release(taken),
    }
  }

  /** Gives back the units that were not used, also those that attempts release later. From now on there are none. */
  async close(): Promise<void> {
    this.isClosed = true
    const unused = [...this.leases.values()].filter(({ left, endMs }) => left > 0 && endMs > this.deps.nowMs())
    this.leases.clear()
    for (const lease of unused) await this.giveBack(lease)
  }

  private release(taken: readonly Lease[]): void {
    for (const one of taken) {
      one.left += 1
      if (this.isClosed) void this.giveBack(one)
    }
  }

  private async takeOne(source: string, site: string, window: Window): Promise<Lease | NoUnit> {
    const { ceiling, endMs, kind } = window
    const lease = this.leaseFor(source, site, window)
    if (ceiling < lease.ceiling) void this.giveBack(lease)
    if (ceiling > lease.ceiling) lease.emptyUntilMs = 0
    lease.ceiling = ceiling
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      if (this.isClosed) {
        void this.giveBack(lease)
        return { untilMs: this.deps.nowMs(), why: 'the service is stopping' }
      }
      if (lease.left > 0) {
        lease.left -= 1
        return lease
      }
      const nowMs = this.deps.nowMs()
      if (endMs <= nowMs) return { untilMs: nowMs, why: `the ${kind} ended` }
      if (lease.emptyUntilMs > nowMs) break
      lease.fetching ??= this.fetch(lease)
      const hasFailed = await lease.fetching.then(
        () => false,
        () => true,
      )
      if (hasFailed) return { untilMs: this.deps.nowMs() + 1000, why: 'the store did not answer for a ceiling' }
    }
    return { untilMs: endMs, why: `${ceiling} messages ${kind === 'hour' ? 'an hour' : 'a day'} to this site` }
  }

  private async fetch(lease: Lease): Promise<void> {
    const { ask, ceiling, used } = lease
    const share = Math.ceil(Math.max(0, ceiling - used) / (PART * Math.max(1, this.deps.sharers())))
    const want = Math.min(CHUNK_MAX, Math.max(1, share))
    try {
      const taken = await this.deps.counts.take({ ...ask, want, ceiling })
      lease.used = taken.used
      lease.left += taken.granted
      if (taken.granted === 0) lease.emptyUntilMs = this.deps.nowMs() + EMPTY_MS
    } finally {
      lease.fetching = null
    }
  }

  private async giveBack(lease: Lease): Promise<void> {
    const units = lease.left
    lease.left = 0
    // Units that cannot be given back stay counted.
    if (units > 0 && lease.endMs > this.deps.nowMs())
      await this.deps.counts.give({ ...lease.ask, units }).catch(() => undefined)
  }

  private leaseFor(source: string, site: string, { name, endMs, ceiling }: Window): Lease {
    const key = `${name}|${placeField(source, site)}`
    const known = this.leases.get(key)
    if (known !== undefined) return known
    if (this.leases.size >= LEASES_MAX) this.forgetOne()
    const ask = { window: name, source, site }
    const lease: Lease = { ask, endMs, ceiling, left: 0, used: 0, emptyUntilMs: 0, fetching: null }
    this.leases.set(key, lease)
    return lease
  }

  /** Drops the leases of windows that are over, otherwise the oldest, whose units stay counted. */
  private forgetOne(): void {
    const nowMs = this.deps.nowMs()
    for (const [key, { endMs }] of this.leases) if (endMs <= nowMs) this.leases.delete(key)
    if (this.leases.size >= LEASES_MAX) this.leases.delete(this.leases.keys().next().value as string)
  }
}

/** The names of the hour and the day of an instant. */
export function windowNames(nowMs: number): { readonly hour: string; readonly day: string } {
  const day = dayName(nowMs)
  const hour = Math.floor((nowMs % DAY_MS) / HOUR_MS)
  return { hour: `${day}${String(hour).padStart(2, '0')}`, day }
}

function windowsOf({ hour, day }: Ceilings, nowMs: number): Window[] {
  const names = windowNames(nowMs)
  const windows: Window[] = []
  const endOf = (spanMs: number) => (Math.floor(nowMs / spanMs) + 1) * spanMs
  if (day !== null) windows.push({ name: names.day, endMs: endOf(DAY_MS), ceiling: day, kind: 'day' })
  if (hour !== null) windows.push({ name: names.hour, endMs: endOf(HOUR_MS), ceiling: hour, kind: 'hour' })
  return windows
}
