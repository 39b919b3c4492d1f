/** instant - milliseconds inside, ISO 8601 in UTC outside. */

/** The last instant that was written: messages that are accepted together share theirs. */
let last = { ms: Number.NaN, text: '' }

/** Milliseconds as the API writes instants. */
export function formatInstant(ms: number): string {
  if (last.ms !== ms) last = { ms, text: new Date(ms).toISOString() }
  return last.text
}

/** Milliseconds or null as the API writes instants. */
export function formatInstantOrNull(ms: number | null): string | null {
  return ms === null ? null : formatInstant(ms)
}

const INSTANT = /^(\d{4}-\d\d-\d\d)T(?!24)\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/

/**
 * Whether the text names a moment that exists: `Date.parse` alone takes 30 February for a day in March, and 24:00 for
 * the next day. Never throws. Spec time.instant
 */
export function isInstant(text: string): boolean {
  const day = INSTANT.exec(text)?.[1]
  if (day === undefined || Number.isNaN(Date.parse(text))) return false
  return new Date(`${day}T00:00:00Z`).toISOString().startsWith(day)
}
