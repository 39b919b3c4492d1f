/** ratio - the results of `accept` side by side, and against their bars */

import type { Contestant } from '../contestants/contestant.ts'
import type { Measured } from '../load/measured.ts'
import { formatNumber, formatTable, median } from '../table.ts'

/** One contestant in one round. */
export interface Result {
  readonly contestant: Contestant
  readonly measured: Measured
  /** Share of one core; null if it cannot be read. */
  readonly hostPercent: number | null
  readonly storePercent: number | null
  /** The part of the processor time wanted by this machine that others had; null if the kernel does not report it. */
  readonly stolenPercent: number | null
}

type Id = Contestant['id']

/** Minimum ratios of messages a second within one run. */
const RATIOS: readonly { readonly of: Id; readonly to: Id; readonly min: number; readonly what: string }[] = [
  { of: 'c', to: 'a', min: 0.5, what: 'effects held, against the floor' },
  { of: 'c', to: 'b', min: 1.6, what: 'effects held, against BullMQ' },
  { of: 'c2', to: 'a', min: 0.25, what: 'simulator runs, against the floor' },
  { of: 'd', to: 'a', min: 0.25, what: 'http and actors apart, against the floor' },
  { of: 'c1', to: 'c', min: 0.8, what: 'one account, against 1,000' },
  { of: 'cn', to: 'c', min: 0.5, what: 'node:http, against uWebSockets.js' },
]
const HALF_RATE_P99_MS_MAX = 10

/** Loads at half of (c)'s maximum: of (c) itself, and of the floor. */
export interface HalfRate {
  a?: Measured
  c?: Measured
}

/** Medians of each contestant, with the head of the table. */
export function rowsOf(results: readonly Result[]): string[][] {
  const head = ['', 'messages/s', 'least', 'most', 'p50 ms', 'p99 ms', 'host µs', 'redis µs', 'stolen %']
  const ids = [...new Set(results.map(({ contestant }) => contestant.id))].sort()
  return [head, ...ids.map((id) => rowOf(results.filter(({ contestant }) => contestant.id === id)))]
}

/** Each ratio with its target, and the p99 at half the rate. */
export function formatVerdicts(results: readonly Result[], { a, c }: HalfRate): string {
  const rows = [['', 'is', 'target', '']]
  for (const { of, to, min, what } of RATIOS) {
    const ratio = perSecondOf(results, of) / perSecondOf(results, to)
    if (Number.isNaN(ratio)) continue
    rows.push([`(${of})/(${to}) ${what}`, formatNumber(ratio, 2), `>= ${min}`, ratio >= min ? 'reached' : 'missed'])
  }
  if (c !== undefined) {
    const what = `p99 of (c) at half its rate, ${formatNumber(c.perSecond)}/s, ms`
    const verdict = c.p99Ms <= HALF_RATE_P99_MS_MAX ? 'reached' : 'missed'
    rows.push([what, formatNumber(c.p99Ms, 1), `<= ${HALF_RATE_P99_MS_MAX}`, verdict])
  }
  if (a !== undefined) rows.push(['p99 of (a) at the same rate, ms', formatNumber(a.p99Ms, 1), '', ''])
  return formatTable(rows)
}

function perSecondOf(results: readonly Result[], id: Id): number {
  return median(results.filter(({ contestant }) => contestant.id === id).map(({ measured }) => measured.perSecond))
}

function rowOf(results: readonly Result[]): string[] {
  const { contestant } = results[0] as Result
  const all = (read: (result: Result) => number): number[] => results.map(read)
  const rates = all(({ measured }) => measured.perSecond)
  return [
    `(${contestant.id}) ${contestant.label}`,
    formatNumber(median(rates)),
    formatNumber(Math.min(...rates)),
    formatNumber(Math.max(...rates)),
    formatNumber(median(all(({ measured }) => measured.p50Ms)), 1),
    formatNumber(median(all(({ measured }) => measured.p99Ms)), 1),
    formatNumber(median(all(({ hostPercent, measured }) => microsecondsEach(hostPercent, measured)))),
    formatNumber(median(all(({ storePercent, measured }) => microsecondsEach(storePercent, measured)))),
    formatNumber(median(all(({ stolenPercent }) => stolenPercent ?? Number.NaN)), 1),
  ]
}

/** Processor time of one message, in microseconds, which depends far less on other load than the rate. */
function microsecondsEach(percent: number | null, { perSecond }: Measured): number {
  return percent === null ? Number.NaN : (percent * 10_000) / perSecond
}
