/**
 * calendar - UTC days and months of an instant, in integers.
 *
 * Proleptic Gregorian, years 1970 to 9999. The arithmetic is Howard Hinnant's `civil_from_days`; a decision may not use
 * the platform's calendar object, which also reads clocks and zones.
 */

export const MINUTE_MS = 60_000
export const HOUR_MS = 3_600_000
export const DAY_MS = 86_400_000

/** Days of the 400-year cycle of the calendar, and those from 0000-03-01 to 1970-01-01. */
const CYCLE_DAYS = 146_097
const EPOCH_DAYS = 719_468

/** A UTC date; `month` is 1 to 12. */
export interface CivilDate {
  readonly year: number
  readonly month: number
  readonly day: number
}

/** A day with its names, worked out once: nearly every question is about the same one. */
interface NamedDay extends CivilDate {
  readonly number: number
  readonly monthName: string
  readonly dayName: string
}

let lastDay: NamedDay = { number: Number.NaN, year: 0, month: 0, day: 0, monthName: '', dayName: '' }

/** The UTC date of an instant in milliseconds. */
export function computeCivilDate(ms: number): CivilDate {
  return computeDay(ms)
}

function computeDay(ms: number): NamedDay {
  const number = Math.floor(ms / DAY_MS)
  if (number === lastDay.number) return lastDay
  const date = civilOfDay(number)
  const { year, month, day } = date
  const names = { monthName: String(year * 100 + month), dayName: String(year * 10_000 + month * 100 + day) }
  lastDay = { number, ...date, ...names }
  return lastDay
}

function civilOfDay(number: number): CivilDate {
  const days = number + EPOCH_DAYS
  const cycle = Math.floor(days / CYCLE_DAYS)
  const ofCycle = days - cycle * CYCLE_DAYS
  const leapDays = Math.floor(ofCycle / 1460) - Math.floor(ofCycle / 36_524) + Math.floor(ofCycle / 146_096)
  const yearOfCycle = Math.floor((ofCycle - leapDays) / 365)
  const dayOfYear = ofCycle - (365 * yearOfCycle + Math.floor(yearOfCycle / 4) - Math.floor(yearOfCycle / 100))
  const monthFromMarch = Math.floor((5 * dayOfYear + 2) / 153)
  const day = dayOfYear - Math.floor((153 * monthFromMarch + 2) / 5) + 1
  const month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
  return { year: yearOfCycle + cycle * 400 + (month <= 2 ? 1 : 0), month, day }
}

/** Milliseconds at which a UTC date begins; `month` is 1 to 12. */
export function msOfCivil({ year, month, day }: CivilDate): number {
  const fromMarch = month <= 2 ? year - 1 : year
  const cycle = Math.floor(fromMarch / 400)
  const yearOfCycle = fromMarch - cycle * 400
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1
  const ofCycle = yearOfCycle * 365 + Math.floor(yearOfCycle / 4) - Math.floor(yearOfCycle / 100) + dayOfYear
  return (cycle * CYCLE_DAYS + ofCycle - EPOCH_DAYS) * DAY_MS
}

/** Number of the UTC month of an instant: months rise by one, over years too. */
export function computeMonth(ms: number): number {
  const { year, month } = computeCivilDate(ms)
  return year * 12 + month - 1
}

/** Milliseconds at which the month of a number begins. */
export function monthStartMs(month: number): number {
  return msOfCivil({ year: Math.floor(month / 12), month: (month % 12) + 1, day: 1 })
}

/** `yyyymm` of an instant. */
export function monthName(ms: number): string {
  return computeDay(ms).monthName
}

/** `yyyymmdd` of an instant. */
export function dayName(ms: number): string {
  return computeDay(ms).dayName
}

/** Number of the month that `yyyymm` names. */
export function monthOfName(name: string): number {
  return Number(name.slice(0, 4)) * 12 + Number(name.slice(4, 6)) - 1
}

/** First millisecond after the month `yyyymm` or the day `yyyymmdd`. */
export function endOfNameMs(name: string): number {
  if (name.length === 6) return monthStartMs(monthOfName(name) + 1)
  const day = { year: Number(name.slice(0, 4)), month: Number(name.slice(4, 6)), day: Number(name.slice(6, 8)) }
  return msOfCivil(day) + DAY_MS
}
