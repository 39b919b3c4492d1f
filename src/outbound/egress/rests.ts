/**
 * rests - the sources that send nothing to a site for a while, because it blocked them or could not be reached by them
 *
 * States of a source at a site: sending -> resting (until an instant) -> probing (one attempt) -> sending, or resting
 * again for twice as long. Each process has its own, and reads those of the others.
 *
 * Guarantees: a bounded number of entries; no rest is longer than four hours; after a rest one attempt is made before
 * the others. No clock: the time comes with the call.
 *
 * Spec egress.rest
 */

import { placeField, type StoredRest } from '../../state/egress.ts'

/** The first rest, and the longest; each is twice the one before it. */
export const REST_MS = 5 * 60_000
export const REST_MAX_MS = 4 * 3_600_000
/** Sources at sites, in this process and in the store. */
export const RESTS_MAX = 1000
/** A probe that never reports is over after this, longer than any attempt. */
const PROBE_MS = 25 * 60_000
/** After a rest its level is remembered for this long without another block. */
const MEMORY_MS = 24 * 3_600_000
const WHY_CHARS_MAX = 200

interface Rest extends StoredRest {
  /** When its probe began; null: none is under way. */
  probeAtMs: number | null
}

export class Rests {
  private readonly rests = new Map<string, Rest>()

  /** Null: it may send. Otherwise until when not, and why. */
  standing(source: string, site: string, nowMs: number): { readonly untilMs: number; readonly why: string } | null {
    const rest = this.rests.get(placeField(source, site))
    if (rest === undefined) return null
    if (rest.untilMs > nowMs) return rest
    const isProbed = rest.probeAtMs !== null && rest.probeAtMs > nowMs - PROBE_MS
    return isProbed ? { untilMs: nowMs + 1000, why: `one attempt is under way after: ${rest.why}` } : null
  }

  /** An attempt begins. After a rest it is the probe. */
  begun(source: string, site: string, nowMs: number): void {
    const rest = this.rests.get(placeField(source, site))
    if (rest !== undefined) rest.probeAtMs = nowMs
  }

  /** The source is blocked: it rests. Returns the rest, for the other processes; null if it rests already. */
  blocked(source: string, site: string, { nowMs, why }: { nowMs: number; why: string }): StoredRest | null {
    const field = placeField(source, site)
    const before = this.rests.get(field)
    // Attempts that were under way together are blocked together: that is one block.
    if (before !== undefined && before.untilMs > nowMs) return null
    const level = (before?.level ?? 0) + 1
    const untilMs = nowMs + Math.min(REST_MAX_MS, REST_MS * 2 ** Math.min(level - 1, 16))
    const rest: Rest = { untilMs, level, why: why.slice(0, WHY_CHARS_MAX), probeAtMs: null }
    this.set(field, rest, nowMs)
    return rest
  }

  /** The site answered an attempt of the source without a block. True if a rest is over with that. */
  answered(source: string, site: string, nowMs: number): boolean {
    const field = placeField(source, site)
    const rest = this.rests.get(field)
    // One that began before the block proves nothing about what follows it.
    return rest !== undefined && rest.untilMs <= nowMs && this.rests.delete(field)
  }

  /** An attempt ended without an answer of the site. */
  unknown(source: string, site: string): void {
    const rest = this.rests.get(placeField(source, site))
    if (rest !== undefined) rest.probeAtMs = null
  }

  /** Takes the rests of other processes over. Those that they ended before their time end here. */
  learn(stored: ReadonlyMap<string, StoredRest>, nowMs: number): void {
    for (const [field, rest] of stored) {
      const own = this.rests.get(field)
      if (rest.untilMs > nowMs && rest.untilMs > (own?.untilMs ?? 0))
        this.set(field, { ...rest, probeAtMs: null }, nowMs)
    }
    for (const [field, { untilMs }] of this.rests) if (untilMs < nowMs - MEMORY_MS) this.rests.delete(field)
  }

  /** Ends the rests at a site. Returns their fields. */
  wake(site: string): string[] {
    const woken = [...this.rests.keys()].filter((field) => field.slice(field.indexOf('|') + 1) === site)
    for (const field of woken) this.rests.delete(field)
    return woken
  }

  private set(field: string, rest: Rest, nowMs: number): void {
    this.rests.delete(field)
    if (this.rests.size >= RESTS_MAX) {
      const over = [...this.rests].find(([, { untilMs }]) => untilMs <= nowMs)
      this.rests.delete(over?.[0] ?? (this.rests.keys().next().value as string))
    }
    this.rests.set(field, rest)
  }
}
