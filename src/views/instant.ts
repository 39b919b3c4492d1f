/** instant - milliseconds inside, ISO 8601 in UTC outside. */

/** Milliseconds as the API writes instants. */
export function formatInstant(ms: number): string {
  return new Date(ms).toISOString()
}

/** Milliseconds or null as the API writes instants. */
export function formatInstantOrNull(ms: number | null): string | null {
  return ms === null ? null : formatInstant(ms)
}
