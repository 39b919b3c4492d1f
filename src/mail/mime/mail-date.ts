/**
 * mail-date - the Date field (RFC 5322 3.3, the old forms of 4.3 too) as an instant, if valid.
 *
 * `Date.parse` reads "1" and makes the 31st of February a day of March, so it is not used.
 */

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const FORM =
  /^(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]* ?, ?)?(\d{1,2}) ([a-z]{3}) (\d{2,5}) (\d{1,2}) ?: ?(\d{2})(?: ?: ?(\d{2}))? ?([+-]\d{4}|[a-z]{1,5})$/
/** RFC 5322 4.3: minutes east of Greenwich; unknown zones, military ones too, count as -0000. */
const ZONES: Readonly<Record<string, number>> = {
  edt: -240,
  est: -300,
  cdt: -300,
  cst: -360,
  mdt: -360,
  mst: -420,
  pdt: -420,
  pst: -480,
}
const DATE_CHARS_MAX = 500
const YEAR_MIN = 1900
const YEAR_MAX = 9999

/** The instant as an ISO string in UTC; null if the value is not a date or its day does not exist. */
export function parseMailDate(value: string): string | null {
  if (value.length > DATE_CHARS_MAX) return null
  const text = withoutComments(value).replace(/\s+/g, ' ').trim().toLowerCase()
  const match = FORM.exec(text)
  if (match === null) return null
  const [, day = '', monthName = '', yearText = '', hour = '', minute = '', second = '0', zone = ''] = match
  const month = MONTHS.indexOf(monthName)
  const year = fullYear(yearText)
  const offset = parseOffset(zone)
  if (month < 0 || year < YEAR_MIN || offset === null) return null
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 60) return null
  const midnight = new Date(Date.UTC(year, month, Number(day)))
  if (midnight.getUTCMonth() !== month || midnight.getUTCDate() !== Number(day)) return null
  const minutes = Number(hour) * 60 + Number(minute) - offset
  const moment = new Date(midnight.getTime() + (minutes * 60 + Number(second)) * 1000)
  return moment.getUTCFullYear() > YEAR_MAX ? null : moment.toISOString()
}

/** Two digits below 50 mean this century, other short years the last one (RFC 5322 4.3). */
function fullYear(text: string): number {
  const year = Number(text)
  if (text.length === 2) return year < 50 ? year + 2000 : year + 1900
  return text.length === 3 ? year + 1900 : year
}

function parseOffset(zone: string): number | null {
  if (!/^[+-]/.test(zone)) return ZONES[zone] ?? 0
  const minutes = Number(zone.slice(3))
  const east = Number(zone.slice(1, 3)) * 60 + minutes
  return minutes > 59 ? null : zone.startsWith('-') ? -east : east
}

/** Comments may nest (RFC 5322 3.2.2). */
function withoutComments(text: string): string {
  let out = ''
  let depth = 0
  for (const char of text) {
    if (char === '(') depth += 1
    else if (char === ')' && depth > 0) depth -= 1
    else if (depth === 0) out += char
  }
  return out
}
