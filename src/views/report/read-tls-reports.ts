/**
 * read-tls-reports - TLS reports about the mail servers of a domain
 *
 * Spec reports.read
 */

import type { TlsReportRow, TlsReports } from '../../../schemas/report/report.ts'
import type { FoldedRow } from '../../state/report/fold.ts'
import type { Unseen } from '../entity.ts'
import { formatInstant } from '../instant.ts'
import type { AccountKey, Reader } from '../key.ts'
import { type BadReportQuery, pageOfRows, type ReportSpanQuery, readReportedDays } from './of-domain.ts'

export interface TlsReportsQuery extends ReportSpanQuery {
  readonly limit: number
  readonly after: string | null
}

/** The reports about a domain; null if the account has no such domain, or why they are refused. */
export async function readTlsReports(
  read: Reader,
  owner: AccountKey,
  { domainId, query, nowMs }: { readonly domainId: string; readonly query: TlsReportsQuery; readonly nowMs: number },
): Promise<TlsReports | null | BadReportQuery | Unseen> {
  const seen = await readReportedDays(read, owner, { ...query, domainId, kind: 'tls', nowMs })
  if (seen === null || typeof seen === 'string' || 'path' in seen) return seen
  const totals = { sessions: 0, succeeded: 0, failed: 0 }
  for (const { rows } of seen.days)
    for (const [sessions, , , result = ''] of rows) {
      totals.sessions += sessions
      totals[result === '' ? 'succeeded' : 'failed'] += sessions
    }
  const { rows, next } = pageOfRows(seen.days, query)
  return { totals, reports: rows.map(([atMs, row]) => formatTlsRow(atMs, row)), next }
}

/** A row as it is shown. */
export function formatTlsRow(atMs: number, [sessions, ...names]: FoldedRow): TlsReportRow {
  const [reporter = '', policyType = '', result = '', receivingMx = '', sendingIp = '', reason = ''] = names
  return {
    day: formatInstant(atMs),
    reporter: reporter || null,
    policyType,
    result: result || null,
    receivingMx: receivingMx || null,
    sendingIp: sendingIp || null,
    reason: reason || null,
    sessions,
  }
}
