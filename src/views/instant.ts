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
