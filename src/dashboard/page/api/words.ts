/** words - figures, sizes, instants and states as people read them */

/** The pages' own language; the zone is the reader's. */
const LOCALE = 'en-GB'

const CLOCK = new Intl.DateTimeFormat(LOCALE, { hour: '2-digit', minute: '2-digit', hour12: false })
const CLOCK_S = new Intl.DateTimeFormat(LOCALE, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
  hour12: false,
})
const DAY = new Intl.DateTimeFormat(LOCALE, { day: 'numeric', month: 'short' })
const DAY_YEAR = new Intl.DateTimeFormat(LOCALE, { day: 'numeric', month: 'short', year: 'numeric' })
const NUMBER = new Intl.NumberFormat('en')

/** 10,482 */
export function formatNumber(value: number): string {
  return NUMBER.format(value)
}

/** A share of 1: 98.1 %, small ones with two digits. */
export function formatShare(value: number | null): string {
  if (value === null) return '–'
  const percent = value * 100
  return `${percent.toFixed(percent !== 0 && percent < 1 ? 2 : 1)} %`
}

/** 1.6 KB */
export function formatSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} bytes`
  const kib = bytes / 1024
  return kib < 1024 ? `${kib.toFixed(1)} KB` : `${(kib / 1024).toFixed(1)} MB`
}

/** Today's instants by the clock, others with their day. */
export function formatInstantShort(at: string, nowMs = Date.now()): string {
  const when = new Date(at)
  const now = new Date(nowMs)
  if (when.toDateString() === now.toDateString()) return CLOCK.format(when)
  return when.getFullYear() === now.getFullYear()
    ? `${DAY.format(when)}, ${CLOCK.format(when)}`
    : `${DAY_YEAR.format(when)}, ${CLOCK.format(when)}`
}

/** With day, year and clock. */
export function formatInstantLong(at: string): string {
  const when = new Date(at)
  return `${DAY_YEAR.format(when)} ${CLOCK.format(when)}`
}

/** The day alone. */
export function formatDay(at: string): string {
  return DAY_YEAR.format(new Date(at))
}

/** By the clock to the millisecond, as a line of time has it. */
export function formatMoment(at: string): string {
  return CLOCK_S.format(new Date(at))
}

/** In UTC, for tooltips. */
export function formatUtc(at: string): string {
  return `${new Date(at).toISOString().replace('T', ' ').replace('Z', '')} UTC`
}

const STEPS: readonly (readonly [ms: number, unit: string])[] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1000, 's'],
]

/** A length of time in its two largest units at most: 78 ms, 1.3 s, 2 min 5 s, 3 h. */
export function formatGap(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(1).replace(/\.0$/, '')} s`
  const at = STEPS.findIndex(([step]) => ms >= step)
  const [step, unit] = STEPS[at] as readonly [number, string]
  const whole = Math.floor(ms / step)
  const [nextStep, nextUnit] = STEPS[at + 1] ?? [1, '']
  const rest = Math.floor((ms - whole * step) / nextStep)
  return rest === 0 || nextUnit === '' ? `${whole} ${unit}` : `${whole} ${unit} ${rest} ${nextUnit}`
}

/** How long ago, or in how long. */
export function formatAgo(at: string, nowMs = Date.now()): string {
  const ms = Date.parse(at) - nowMs
  if (Math.abs(ms) < 5000) return 'now'
  const gap = formatGap(Math.abs(ms))
    .replace(/^(\d+)(?:\.\d+)? s$/, '$1 s')
    .replace(/^(\d+ (?:d|h|min)).*/, '$1')
  return ms < 0 ? `${gap} ago` : `in ${gap}`
}

/** The first letter as a capital. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** One recipient, two recipients. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${formatNumber(number)} ${number === 1 ? one : many}`
}

const STATUS_WORDS: Readonly<Record<string, string>> = {
  spam_complaint: 'Complained',
  cap_warning: 'Cap warning',
  cap_reached: 'Cap reached',
  hard_bounce: 'Hard bounce',
  manual: 'Added by hand',
  dns_error: 'DNS error',
}

/** A status, an event or a reason in a word. */
export function formatStatus(status: string): string {
  return STATUS_WORDS[status] ?? capital(status.replaceAll('_', ' '))
}

/** A name of the code as words: `createServerToken` as `Create server token`. */
export function wordsOfName(name: string): string {
  return capital(name.replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase())
}
