/**
 * bound - the first and the last entry of a walk over a log from the newest entry down, in the form of XREVRANGE
 *
 * Instants before 1970 become 0, because an entry id has no sign.
 *
 * Spec list.page
 */

import { entryIdOf, msOf } from '../../cluster/id.ts'

const SMALLEST = '0-0'

/** The entry id to begin at: below the object `after` (null: none), before the instant `toMs` (null: none). */
export function upperBound({ after, toMs }: { after: string | null; toMs: number | null }): string {
  if (after !== null && (toMs === null || msOf(after) < toMs)) return below(entryIdOf(after))
  return toMs === null ? '+' : below(`${Math.max(0, toMs)}-0`)
}

/** No entry has the smallest id of all, and Redis refuses to look below it. */
function below(entryId: string): string {
  return entryId === SMALLEST ? SMALLEST : `(${entryId}`
}

/** The entry id to end at: not before the instant `fromMs` (null: none). */
export function lowerBound(fromMs: number | null): string {
  return fromMs === null ? '-' : String(Math.max(0, fromMs))
}

/** Milliseconds of an upper bound; Infinity if there is no bound. */
export function msOfBound(upper: string): number {
  return upper === '+' ? Number.POSITIVE_INFINITY : Number.parseInt(upper.replace('(', ''), 10)
}
