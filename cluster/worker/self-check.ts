/**
 * self-check - whether a worker can serve its shards, judged by its connections and by its own asks.
 *
 * A worker that cannot reach a part of the store still sends heartbeats but serves no caller, because its heartbeats
 * test only one connection. So every connection is tested end to end, and the results of asks to its shards are
 * observed. States: healthy, unhealthy. An unhealthy worker marks its record, and others take its shards.
 *
 * Guarantees: if every connection to a store is silent or slow, no worker is judged, because then the store is the
 * cause; nor while asks are refused at once, because then it is full.
 */
import type { Lag } from '../store.ts'

/** A connection that has owed an answer for this long is useless, because an ask lives for four seconds. */
export const LAG_MS_MAX = 2_500
/** A connection that has owed no answer for this long works. */
const WORKS_MS = 1_000
const LAGS_FOR_MS = 4_000
/**
 * A process that was stopped sees all its connections wait at once: for this long that proves nothing about one
 * connection.
 */
const BLUR_MS_MAX = 3_000
const FAILS_FOR_MS = 10_000
const FAILURES_MIN = 3
/** All must be well for this long again. */
const WELL_FOR_MS = 5_000
/** An ask that was refused sooner was refused for want of room. */
const WAITED_MS = 1_000
/** If the last heartbeat is older, the store may be the cause. */
const BEAT_AGE_MS_MAX = 9_000

export class SelfCheck {
  /** Since when one connection lags while another works, and when that was last seen. */
  private partial: { readonly sinceMs: number; readonly seenAtMs: number } | null = null
  private wellSinceMs: number | null = null
  private failsSinceMs: number | null = null
  private failures = 0
  private isAiling = false

  get ails(): boolean {
    return this.isAiling
  }

  /** An ask at a shard of this worker ended after `tookMs`. */
  asked(isAnswered: boolean, { atMs, tookMs }: { atMs: number; tookMs: number }): void {
    if (isAnswered) {
      this.failsSinceMs = null
      this.failures = 0
    } else if (tookMs >= WAITED_MS) {
      this.failsSinceMs ??= atMs - tookMs
      this.failures += 1
    }
  }

  /**
   * Checks all connections. Takes the time of the last answered heartbeat. Returns whether the worker has just become
   * unhealthy or healthy.
   */
  look(lags: readonly Lag[], { atMs, beatAtMs }: { atMs: number; beatAtMs: number }): boolean {
    const lagging = lags.some(({ ms }) => ms > LAG_MS_MAX)
    const works = (of: string | undefined): boolean => lags.some(({ ms, store }) => store === of && ms < WORKS_MS)
    const isPartial = lags.some(({ ms, store }) => ms > LAG_MS_MAX && works(store))
    if (!lagging || (this.partial !== null && atMs - this.partial.seenAtMs > BLUR_MS_MAX)) this.partial = null
    if (isPartial) this.partial = { sinceMs: this.partial?.sinceMs ?? atMs, seenAtMs: atMs }
    const isCutOff = isPartial && this.partial !== null && atMs - this.partial.sinceMs >= LAGS_FOR_MS
    const fails = this.failsSinceMs !== null && this.failures >= FAILURES_MIN
    const isUseless = fails && atMs - (this.failsSinceMs ?? atMs) >= FAILS_FOR_MS && atMs - beatAtMs <= BEAT_AGE_MS_MAX
    if (!this.isAiling && (isCutOff || isUseless)) return this.turn(true)
    if (!this.isAiling) return false
    this.wellSinceMs = lagging ? null : (this.wellSinceMs ?? atMs)
    return this.wellSinceMs !== null && atMs - this.wellSinceMs >= WELL_FOR_MS && this.turn(false)
  }

  private turn(ails: boolean): true {
    this.isAiling = ails
    this.wellSinceMs = null
    this.partial = null
    this.failsSinceMs = null
    this.failures = 0
    return true
  }
}
