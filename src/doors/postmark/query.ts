/**
 * query - the parameters of Postmark's lists: names in any case, dates with or without a time, count and offset
 */

import type { Issue } from '../../../schemas/error.ts'
import type { EdgeRequest } from '../../http/request.ts'

/** The schema of a query whose names are read in any case: handlers check them. */
export const ANY_QUERY = {
  type: 'object',
  maxProperties: 40,
  additionalProperties: { type: 'string', maxLength: 1_000 },
} as const

const COUNT_DEFAULT = 100
/** Postmark's own bounds. */
const COUNT_MAX = 500
const REACH_MAX = 10_000
const DAY_MS = 86_400_000
const DATE = /^\d{4}-\d{2}-\d{2}$/
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,7})?)?(Z|[+-]\d{2}:\d{2})?$/

/** Parameters by name in lower case. */
export type Parameters = Readonly<Record<string, string>>

/** Reads the parameters of a request. Returns them, and an issue for each unknown one. */
export function readParameters(
  { query }: Pick<EdgeRequest, 'query'>,
  known: readonly string[],
): { readonly parameters: Parameters; readonly issues: Issue[] } {
  const entries = Object.entries(query).map(([name, value]) => [name.toLowerCase(), value] as const)
  const issues = entries
    .filter(([name]) => !known.includes(name) && !name.startsWith('metadata_'))
    .map(([path]) => ({ path, message: 'Unknown parameter' }))
  return { parameters: Object.fromEntries(entries.filter(([, value]) => value !== '')), issues }
}

/** A part of a list. */
export interface Part {
  readonly count: number
  readonly offset: number
}

/** Reads count and offset. */
export function parseListPart({ count, offset }: Parameters, issues: Issue[]): Part {
  const part = { count: Number(count ?? COUNT_DEFAULT), offset: Number(offset ?? 0) }
  if (!Number.isInteger(part.count) || part.count < 1 || part.count > COUNT_MAX)
    issues.push({ path: 'count', message: `Must be 1 to ${COUNT_MAX}` })
  else if (!Number.isInteger(part.offset) || part.offset < 0 || part.count + part.offset > REACH_MAX)
    issues.push({ path: 'offset', message: `Must be 0 or more, and with count at most ${REACH_MAX}` })
  return part
}

/** A span of time; null: open. Times without an offset are UTC; a day of `todate` is part of the span. */
export function parseSpan(
  { fromdate, todate }: Parameters,
  issues: Issue[],
): { readonly fromMs: number | null; readonly toMs: number | null } {
  const read = (path: string, text: string | undefined, days: number): number | null => {
    if (text === undefined) return null
    const ms = Date.parse(DATE.test(text) || /(Z|[+-]\d{2}:\d{2})$/.test(text) ? text : `${text}Z`)
    if ((DATE.test(text) || TIME.test(text)) && !Number.isNaN(ms)) return DATE.test(text) ? ms + days * DAY_MS : ms
    issues.push({ path, message: 'Must be a date such as 2026-01-31, or a date and time' })
    return null
  }
  return { fromMs: read('fromdate', fromdate, 0), toMs: read('todate', todate, 1) }
}

/** An instant of a search. */
export function instant(ms: number): string {
  return new Date(ms).toISOString()
}
