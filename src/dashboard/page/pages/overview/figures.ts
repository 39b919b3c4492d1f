/** figures - groups rows of a server's statistics into columns of time, and computes rates */
import type { StatsEntry } from '../../../../../schemas/stats.ts'

export type RangeName = '24h' | '7d' | '30d' | '90d'

export interface Range {
  readonly name: RangeName
  readonly word: string
  readonly by: 'hour' | 'day'
  readonly columns: number
  /** The name of the previous period. */
  readonly before: string
}

export const RANGES: readonly Range[] = [
  { name: '24h', word: '24 h', by: 'hour', columns: 24, before: 'the day before' },
  { name: '7d', word: '7 days', by: 'day', columns: 7, before: 'the week before' },
  { name: '30d', word: '30 days', by: 'day', columns: 30, before: 'the 30 days before' },
  { name: '90d', word: '90 days', by: 'day', columns: 90, before: 'the 90 days before' },
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
  readonly at: string
}

const STEPS_MS = { hour: 3_600_000, day: 86_400_000 } as const
const NONE: Figures = { accepted: 0, delivered: 0, bounced: 0, deferred: 0, complained: 0 }

/** The requested instants of a range: twice its length, to include the previous period. */
export function spanOf({ by, columns }: Range, nowMs: number): { from: string; to: string; startMs: number } {
  const step = STEPS_MS[by]
  const endMs = (Math.floor(nowMs / step) + 1) * step
  const startMs = endMs - columns * step
  return { from: new Date(startMs - columns * step).toISOString(), to: new Date(endMs).toISOString(), startMs }
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

/** The columns of a range, empty ones included, with its sums and those of the previous period. */
export function columnsOf(rows: readonly StatsEntry[], range: Range, startMs: number) {
  const step = STEPS_MS[range.by]
  const columns = Array.from({ length: range.columns }, (_, n): FigureColumn => {
    const fromMs = startMs + n * step
    const inside = rows.filter(({ at }) => Date.parse(at) >= fromMs && Date.parse(at) < fromMs + step)
    return { at: new Date(fromMs).toISOString(), ...inside.reduce(add, NONE) }
  })
  const sumOf = (isIn: (ms: number) => boolean) => rows.filter(({ at }) => isIn(Date.parse(at))).reduce(add, NONE)
  return { columns, now: sumOf((ms) => ms >= startMs), before: sumOf((ms) => ms < startMs) }
}

/** Rates by the time of the event; null if no message reached a final state. */
export function ratesOf({ delivered, bounced, complained }: Figures) {
  const ended = delivered + bounced
  return {
    delivered: ended === 0 ? null : delivered / ended,
    bounced: ended === 0 ? null : bounced / ended,
    complained: delivered === 0 ? null : complained / delivered,
  }
}
