/**
 * read-reports - DMARC reports about a domain: rows, or sums by day or source
 *
 * Spec reports.read
 */

import { REPORT_GROUPS_MAX } from '../../../schemas/limits.ts'
import type { ReportGroup, ReportRow, Reports } from '../../../schemas/report/report.ts'
import { normalAddress } from '../../mail/ip-address.ts'
import type { FoldedRow } from '../../state/report/fold.ts'
import type { PackedPolicy } from '../../state/report/report-days.ts'
import type { Unseen } from '../entity.ts'
import { formatInstant } from '../instant.ts'
import type { AccountKey, Reader } from '../key.ts'
import {
  type BadReportQuery,
  pageOfRows,
  type ReportedDay,
  type ReportSpanQuery,
  readReportedDays,
} from './of-domain.ts'

export interface ReportsQuery extends ReportSpanQuery {
  readonly source: string | null
  readonly result: 'pass' | 'fail' | null
  readonly groupBy: 'day' | 'source' | null
  readonly limit: number
  readonly after: string | null
}

/** What a reader needs besides the store. */
interface ReportsInput {
  readonly domainId: string
  readonly query: ReportsQuery
  /** The sending addresses of this service. */
  readonly own: ReadonlySet<string>
  readonly nowMs: number
}

/** Name of everything beyond the bounds. */
const OTHER = 'other'
const DISPOSITIONS: Readonly<Record<string, ReportRow['disposition']>> = { q: 'quarantine', r: 'reject' }

/** The reports about a domain; null if the account has no such domain, or why they are refused. */
export async function readReports(
  read: Reader,
  owner: AccountKey,
  { domainId, query, own, nowMs }: ReportsInput,
): Promise<Reports | null | BadReportQuery | Unseen> {
  const isWanted = filterRows(query)
  if (typeof isWanted !== 'function') return isWanted
  const seen = await readReportedDays(read, owner, { ...query, domainId, kind: 'dmarc', nowMs })
  if (seen === null || typeof seen === 'string' || 'path' in seen) return seen
  const wanted = (row: FoldedRow): FoldedRow | null => (isWanted(row) ? row : null)
  const days = seen.days.map(({ atMs, rows }) => ({ atMs, rows: rows.map(wanted) }))
  const sums = new Sums(query.groupBy, own)
  for (const { atMs, rows } of days) for (const row of rows) if (row !== null) sums.add(atMs, row)
  const page = query.groupBy === null ? pageOfRows(days, query) : { rows: [], next: null }
  return {
    policy: policyOf(seen.days),
    totals: sums.totals,
    reports: page.rows.map(([atMs, row]) => formatReportRow(atMs, row, { domain: seen.domain.domain, own })),
    groups: sums.groups(),
    next: page.next,
  }
}

/** Whether the filters of a query hold for a row, or why they are refused. */
export function filterRows(
  query: Pick<ReportsQuery, 'source' | 'result'>,
): ((row: FoldedRow) => boolean) | BadReportQuery {
  const source = query.source === null ? null : normalAddress(query.source)
  if (query.source !== null && source === null) return { path: 'source', message: 'Must be an IP address' }
  return ([, from = '', results = '']) =>
    (source === null || from === source) && (query.result === null || query.result === resultOf(results))
}

function resultOf(results: string): 'pass' | 'fail' {
  return results.includes('p') ? 'pass' : 'fail'
}

function policyOf(days: readonly ReportedDay[]): Reports['policy'] {
  const last = days.map(({ policy }) => policy).find((policy): policy is Exclude<PackedPolicy, 0> => policy !== 0)
  if (last === undefined) return null
  const [p = '', sp = '', np = '', adkim = '', aspf = '', pct = ''] = last
  return { p, sp, np, adkim, aspf, pct }
}

/** A row as it is shown. */
export function formatReportRow(
  atMs: number,
  [messages, ...names]: FoldedRow,
  { domain, own }: { readonly domain: string; readonly own: ReadonlySet<string> },
): ReportRow {
  const [source = '', results = '', disposition = '', override = '', headerFrom = '', ...checks] = names
  const [dkimResult = '', dkimDomain = '', dkimSelector = '', spfResult = '', spfDomain = ''] = checks
  return {
    day: formatInstant(atMs),
    source: source || null,
    own: own.has(source),
    messages,
    result: resultOf(results),
    dkim: results[0] === 'p' ? 'pass' : 'fail',
    spf: results[1] === 'p' ? 'pass' : 'fail',
    disposition: DISPOSITIONS[disposition] ?? 'none',
    override: override || null,
    headerFrom: headerFrom || domain,
    dkimResult: dkimResult || null,
    dkimDomain: dkimDomain || null,
    dkimSelector: dkimSelector || null,
    spfResult: spfResult || null,
    spfDomain: spfDomain || null,
  }
}

type Counts = Omit<Reports['totals'], 'ownFailed'>

/** Sums of rows, in all and by group. */
class Sums {
  readonly totals: Reports['totals'] = { ...NOTHING, ownFailed: 0 }
  readonly #by: ReportsQuery['groupBy']
  readonly #own: ReadonlySet<string>
  readonly #groups = new Map<string, Counts>()

  constructor(by: ReportsQuery['groupBy'], own: ReadonlySet<string>) {
    this.#by = by
    this.#own = own
  }

  add(atMs: number, row: FoldedRow): void {
    const [messages, source = '', results = ''] = row
    count(this.totals, row)
    if (this.#own.has(source) && resultOf(results) === 'fail') this.totals.ownFailed += messages
    if (this.#by === null) return
    const name = this.#by === 'day' ? formatInstant(atMs) : source || OTHER
    const group = this.#groups.get(name) ?? { ...NOTHING }
    this.#groups.set(name, group)
    count(group, row)
  }

  /** Days in their order, sources with the most messages first; what is beyond the bound is one group. */
  groups(): ReportGroup[] {
    const all = [...this.#groups].map(([group, sums]) => ({ group, own: this.#own.has(group), ...sums }))
    if (this.#by === 'source') all.sort((one, other) => other.messages - one.messages)
    if (all.length <= REPORT_GROUPS_MAX) return all
    const isShown = (one: ReportGroup, at: number) => at < REPORT_GROUPS_MAX - 1 && one.group !== OTHER
    const rest = { group: OTHER, own: false, ...NOTHING }
    for (const [at, one] of all.entries())
      if (!isShown(one, at)) for (const figure of FIGURES) rest[figure] += one[figure]
    return [...all.filter(isShown), rest]
  }
}

const NOTHING = { messages: 0, passed: 0, failed: 0, dkimPassed: 0, spfPassed: 0, quarantined: 0, rejected: 0 }
const FIGURES = Object.keys(NOTHING) as (keyof Counts)[]

function count(sums: Counts, [messages, , results = '', disposition = '']: FoldedRow): void {
  sums.messages += messages
  sums[resultOf(results) === 'pass' ? 'passed' : 'failed'] += messages
  if (results[0] === 'p') sums.dkimPassed += messages
  if (results[1] === 'p') sums.spfPassed += messages
  if (disposition === 'q') sums.quarantined += messages
  if (disposition === 'r') sums.rejected += messages
}
