/**
 * warm-up - how many messages a new source may send to one site on each of its first days
 *
 * The published schedule grows by about half a day, as the postmaster pages of large receivers advise: from 50 to a
 * million in 30 days. After its last day there is no ceiling.
 *
 * Spec egress.warmup
 */

import { DAY_MS } from '../../state/calendar.ts'

/** Messages to each site on the first day, the second and so on. */
export const WARM_UP_SCHEDULE: readonly number[] = [
  50, 100, 150, 225, 350, 500, 750, 1_000, 1_500, 2_000, 2_500, 3_000, 4_000, 5_000, 7_500, 10_000, 15_000, 20_000,
  30_000, 40_000, 60_000, 80_000, 100_000, 150_000, 200_000, 300_000, 400_000, 500_000, 750_000, 1_000_000,
]

export interface WarmUp {
  readonly startMs: number
  readonly schedule: readonly number[]
}

/** The warm-up of a source; null: it has none. */
export function scheduleOf(
  warmUp: { readonly startDate: string; readonly schedule: readonly number[] | null } | null,
): WarmUp | null {
  if (warmUp === null) return null
  return { startMs: Date.parse(`${warmUp.startDate}T00:00:00Z`), schedule: warmUp.schedule ?? WARM_UP_SCHEDULE }
}

/** Messages of this day to one site: none before the first day; null after the last: any number. */
export function warmUpCeiling(warmUp: WarmUp | null, nowMs: number): number | null {
  if (warmUp === null) return null
  const day = Math.floor((nowMs - warmUp.startMs) / DAY_MS)
  return day < 0 ? 0 : (warmUp.schedule[day] ?? null)
}
