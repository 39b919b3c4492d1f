/**
 * report-tables - the rows of what receivers report about a domain, as tables of exports
 *
 * Spec export.csv, reports.read
 */

import type { ReportExport, TlsReportExport } from '../../../schemas/export/export.ts'
import type { AccountKey } from '../../views/key.ts'
import { readDaysPage } from '../../views/report/of-domain.ts'
import { filterRows, formatReportRow } from '../../views/report/read-reports.ts'
import { formatTlsRow } from '../../views/report/read-tls-reports.ts'
import type { Table } from './tables.ts'

const NOTED = ['from', 'to', 'source', 'result']

export const DMARC_TABLE: Table<AccountKey, ReportExport> = {
  columns: [
    ...['day', 'source', 'own', 'messages', 'result', 'dkim', 'spf', 'disposition', 'override', 'headerFrom'],
    ...['dkimResult', 'dkimDomain', 'dkimSelector', 'spfResult', 'spfDomain'],
  ],
  notedFields: NOTED,
  async readPage({ read, nowMs, sendingAddresses }, { key, body, params, after }) {
    const isWanted = filterRows({ source: body.source ?? null, result: body.result ?? null })
    if (typeof isWanted !== 'function') return isWanted
    const query = { ...periodOf(body), domainId: params.id ?? '', kind: 'dmarc', nowMs: nowMs(), after } as const
    const seen = await readDaysPage(read, key, query)
    if (seen === null) return 'not_found'
    if (typeof seen === 'string' || 'path' in seen) return seen
    const own = new Set(await sendingAddresses())
    const shown = { domain: seen.domain.domain, own }
    const rows = seen.days.flatMap(({ atMs, rows: all }) =>
      all.filter(isWanted).map((row) => {
        const { day, source, own, messages, result, dkim, spf, ...rest } = formatReportRow(atMs, row, shown)
        const { disposition, override, headerFrom, dkimResult, dkimDomain, dkimSelector, spfResult, spfDomain } = rest
        return [
          ...[day, source, own, messages, result, dkim, spf, disposition, override, headerFrom],
          ...[dkimResult, dkimDomain, dkimSelector, spfResult, spfDomain],
        ]
      }),
    )
    return { rows, next: seen.next }
  },
}

export const TLS_TABLE: Table<AccountKey, TlsReportExport> = {
  columns: ['day', 'reporter', 'policyType', 'result', 'receivingMx', 'sendingIp', 'reason', 'sessions'],
  notedFields: NOTED,
  async readPage({ read, nowMs }, { key, body, params, after }) {
    const query = { ...periodOf(body), domainId: params.id ?? '', kind: 'tls', nowMs: nowMs(), after } as const
    const seen = await readDaysPage(read, key, query)
    if (seen === null) return 'not_found'
    if (typeof seen === 'string' || 'path' in seen) return seen
    const rows = seen.days.flatMap(({ atMs, rows: all }) =>
      all.map((row) => {
        const { day, reporter, policyType, result, receivingMx, sendingIp, reason, sessions } = formatTlsRow(atMs, row)
        return [day, reporter, policyType, result, receivingMx, sendingIp, reason, sessions]
      }),
    )
    return { rows, next: seen.next }
  },
}

function periodOf({ from, to }: { readonly from?: string | undefined; readonly to?: string | undefined }) {
  const instantOf = (text: string | undefined) => (text === undefined ? null : Date.parse(text))
  return { fromMs: instantOf(from), toMs: instantOf(to) }
}
