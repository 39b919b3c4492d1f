/** chart-words - the labels of columns of time, in the reader's zone or in UTC */
import { type FigureColumn, type Range, shownZone, type Zone } from './figures.ts'

/** Spec stream.brake: the share of complaints above which a broadcast stream is paused. */
export const BRAKE = 0.001

const LOCALE = 'en-GB'
const CLOCK = { hour: '2-digit', minute: '2-digit', hour12: false } as const
const DAY = { day: 'numeric', month: 'short' } as const
const forms = (timeZone?: string) => ({
  hour: new Intl.DateTimeFormat(LOCALE, { ...CLOCK, ...(timeZone && { timeZone }) }),
  day: new Intl.DateTimeFormat(LOCALE, { ...DAY, ...(timeZone && { timeZone }) }),
  long: new Intl.DateTimeFormat(LOCALE, { weekday: 'short', ...DAY, ...(timeZone && { timeZone }) }),
})
const FORMS = { local: forms(), utc: forms('UTC') }

/** The name of the reader's zone, such as `Europe/Berlin`. */
export const LOCAL_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone

/** 14:00, or 24 Nov. */
export function labelOf(at: string, range: Range, zone: Zone): string {
  return FORMS[shownZone(range, zone)][range.by].format(new Date(at))
}

/** Tue, 24 Nov, or with the hours: Tue, 24 Nov, 14:00 to 15:00. */
export function longLabelOf({ at, until }: FigureColumn, range: Range, zone: Zone): string {
  const { hour, long } = FORMS[shownZone(range, zone)]
  const day = long.format(new Date(at))
  return range.by === 'day' ? day : `${day}, ${hour.format(new Date(at))} to ${hour.format(new Date(until))}`
}
