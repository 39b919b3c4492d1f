/** figures - groups rows of a server's statistics into columns of time, and computes rates */
import type { StatsEntry } from '../../../../../schemas/stats.ts'

export type RangeName = '24h' | '7d' | '30d' | '90d'
/** Whose days and hours are shown. Statistics of more than a week are by days in UTC. */
export type Zone = 'local' | 'utc'

export interface Range {
  readonly name: RangeName
  readonly word: string
  /** Length of a column. */
  readonly by: 'hour' | 'day'
  /** Length of the rows that it is made of, which hold days of another zone if they are hours. */
  readonly rows: 'hour' | 'day'
  readonly columns: number
}

export const RANGES: readonly Range[] = [
  { name: '24h', word: '24 hours', by: 'hour', rows: 'hour', columns: 24 },
  { name: '7d', word: '7 days', by: 'day', rows: 'hour', columns: 7 },
  { name: '30d', word: '30 days', by: 'day', rows: 'day', columns: 30 },
  { name: '90d', word: '90 days', by: 'day', rows: 'day', columns: 90 },
]

/** Statistics of recipients in a period. */
export interface Figures {
  readonly accepted: number
  readonly delivered: number
  readonly bounced: number
  readonly deferred: number
  readonly complained: number
}

export interface FigureColumn extends Figures {
  /** Begin, and the begin of the next one. */
  readonly at: string
  readonly until: string
}

const NONE: Figures = { accepted: 0, delivered: 0, bounced: 0, deferred: 0, complained: 0 }

/** The zone that a range is shown in. */
export function shownZone({ rows }: Range, zone: Zone): Zone {
  return rows === 'day' ? 'utc' : zone
}

/** The begins of twice the columns of a range up to now, and the end: the first half is the period before. */
export function bordersOf(range: Range, zone: Zone, nowMs: number): number[] {
  const steps = 2 * range.columns
  return Array.from({ length: steps + 1 }, (_, n) => borderAt(range, zone, { nowMs, ahead: n - steps + 1 }))
}

/** A begin of an hour or day, so many after the present one. Days of a zone have 23 to 25 hours. */
function borderAt(
  range: Range,
  zone: Zone,
  { nowMs, ahead }: { readonly nowMs: number; readonly ahead: number },
): number {
  const at = new Date(nowMs)
  if (range.by === 'hour') return at.setUTCMinutes(0, 0, 0) + ahead * 3_600_000
  if (shownZone(range, zone) === 'utc') return at.setUTCHours(0, 0, 0, 0) + ahead * 86_400_000
  at.setHours(0, 0, 0, 0)
  return at.setDate(at.getDate() + ahead)
}

function add(sum: Figures, row: StatsEntry): Figures {
  return {
    accepted: sum.accepted + row.accepted,
    delivered: sum.delivered + row.delivered,
    bounced: sum.bounced + row.hardBounced + row.softBounced,
    deferred: sum.deferred + row.deferred,
    complained: sum.complained + row.complained,
  }
}

/** Splits the rows at the borders, empty columns included. The first half of the columns is the period before. */
export function columnsOf(rows: readonly StatsEntry[], borders: readonly number[]) {
  const all = borders.slice(0, -1).map((fromMs, n): FigureColumn => {
    const toMs = borders[n + 1] ?? fromMs
    const inside = rows.filter(({ at }) => Date.parse(at) >= fromMs && Date.parse(at) < toMs)
    const span = { at: new Date(fromMs).toISOString(), until: new Date(toMs).toISOString() }
    return { ...span, ...inside.reduce(add, NONE) }
  })
  const half = all.length / 2
  const [before, columns] = [all.slice(0, half), all.slice(half)]
  return { columns, before, now: sumOf(columns), earlier: sumOf(before) }
}

function sumOf(columns: readonly FigureColumn[]): Figures {
  const sum = (of: (column: Figures) => number) => columns.reduce((total, column) => total + of(column), 0)
  return {
    accepted: sum(({ accepted }) => accepted),
    delivered: sum(({ delivered }) => delivered),
    bounced: sum(({ bounced }) => bounced),
    deferred: sum(({ deferred }) => deferred),
    complained: sum(({ complained }) => complained),
  }
}

export type Rate = 'delivered' | 'deferred' | 'bounced' | 'complained'

/**
 * Rates by the time of the event; null without anything to divide by. Deferred are attempts, the others recipients that
 * reached a final state, or were delivered to.
 */
export function ratesOf({ delivered, bounced, deferred, complained }: Figures): Readonly<Record<Rate, number | null>> {
  const share = (part: number, whole: number) => (whole === 0 ? null : part / whole)
  return {
    delivered: share(delivered, delivered + bounced),
    deferred: share(deferred, delivered + bounced + deferred),
    bounced: share(bounced, delivered + bounced),
    complained: share(complained, delivered),
  }
}
