/**
 * reports - GET /v1/domains/{id}/reports, /tls-reports and /received-reports
 *
 * Spec reports.read, reports.received
 */

import { PAGE_DEFAULT } from '../../../schemas/limits.ts'
import type { HandlerOf } from '../../http/request.ts'
import type { Answer } from '../../http/respond.ts'
import { refusalReply } from '../../http/respond.ts'
import type { Reader } from '../../views/key.ts'
import { type ReportsQuery, readReports } from '../../views/report/read-reports.ts'
import { readTlsReports } from '../../views/report/read-tls-reports.ts'
import { listReceivedReports } from '../../views/report/received-reports.ts'

/** Dependencies of the routes. */
export interface ReportDeps {
  readonly read: Reader
  /** The store's time in ms. */
  readonly nowMs: () => number
  /** The public addresses from which this service sends mail, as far as they are known. */
  readonly sendingAddresses: () => Promise<readonly string[]>
}

type Query = Readonly<Record<string, string>>

/** The handlers of reports. */
export function reportHandlers(deps: ReportDeps) {
  return {
    readReports: makeReadReports(deps),
    readTlsReports: makeReadTlsReports(deps),
    listReceivedReports: makeListReceivedReports(deps),
  }
}

/** GET /v1/domains/{id}/reports */
function makeReadReports({ read, nowMs, sendingAddresses }: ReportDeps): HandlerOf<'readReports'> {
  return async ({ key, params, query }) => {
    const own = new Set(await sendingAddresses())
    const { source = null, result = null, groupBy = null } = query as Query & Partial<ReportsQuery>
    const asked = { ...spanOf(query), ...placeOf(query), source, result, groupBy }
    return answerOf(await readReports(read, key, { domainId: params.id ?? '', query: asked, own, nowMs: nowMs() }))
  }
}

/** GET /v1/domains/{id}/tls-reports */
function makeReadTlsReports({ read, nowMs }: ReportDeps): HandlerOf<'readTlsReports'> {
  return async ({ key, params, query }) => {
    const asked = { ...spanOf(query), ...placeOf(query) }
    return answerOf(await readTlsReports(read, key, { domainId: params.id ?? '', query: asked, nowMs: nowMs() }))
  }
}

/** GET /v1/domains/{id}/received-reports */
function makeListReceivedReports({ read, nowMs }: ReportDeps): HandlerOf<'listReceivedReports'> {
  return async ({ key, params, query }) => {
    const asked = { domainId: params.id ?? '', query: placeOf(query), nowMs: nowMs() }
    return answerOf(await listReceivedReports(read, key, asked))
  }
}

function answerOf(seen: object | string | null): Answer {
  if (seen === null) return refusalReply('not_found')
  if (typeof seen === 'string') return refusalReply(seen as 'unauthorized' | 'unavailable')
  return 'path' in seen ? refusalReply('invalid_request', { issues: [seen] }) : { status: 200, json: seen }
}

function spanOf({ from, to }: Query): Pick<ReportsQuery, 'fromMs' | 'toMs'> {
  const instantOf = (text: string | undefined) => (text === undefined ? null : Date.parse(text))
  return { fromMs: instantOf(from), toMs: instantOf(to) }
}

function placeOf({ limit, after }: Query): { limit: number; after: string | null } {
  return { limit: limit === undefined ? PAGE_DEFAULT : Number(limit), after: after ?? null }
}
