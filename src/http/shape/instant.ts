/**
 * instant - the grammar of a moment: an ISO 8601 date-time with an offset, of a day and an hour that exist
 *
 * `Date.parse` alone takes 30 February for a day in March, and 24:00 for the next day.
 *
 * Spec time.instant
 */

const INSTANT = /^(\d{4}-\d\d-\d\d)T(?!24)\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/

/** Whether the text names a moment that exists. Never throws. */
export function isInstant(text: string): boolean {
  const day = INSTANT.exec(text)?.[1]
  if (day === undefined || Number.isNaN(Date.parse(text))) return false
  return new Date(`${day}T00:00:00Z`).toISOString().startsWith(day)
}
