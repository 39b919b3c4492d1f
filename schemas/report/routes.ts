/**
 * routes - the rows of what receivers report about a domain
 *
 * Spec route.table, reports.read, reports.received
 */

import { type Route, route } from '../route.ts'
import {
  RECEIVED_REPORTS,
  RECEIVED_REPORTS_QUERY,
  REPORTS,
  REPORTS_QUERY,
  TLS_REPORTS,
  TLS_REPORTS_QUERY,
} from './report.ts'

export const REPORT_ROUTES = {
  readReports: route('readReports', 'GET', '/v1/domains/{id}/reports', {
    keys: ['A'],
    query: REPORTS_QUERY,
    success: { status: 200, body: REPORTS },
  }),
  readTlsReports: route('readTlsReports', 'GET', '/v1/domains/{id}/tls-reports', {
    keys: ['A'],
    query: TLS_REPORTS_QUERY,
    success: { status: 200, body: TLS_REPORTS },
  }),
  listReceivedReports: route('listReceivedReports', 'GET', '/v1/domains/{id}/received-reports', {
    keys: ['A'],
    query: RECEIVED_REPORTS_QUERY,
    success: { status: 200, body: RECEIVED_REPORTS },
  }),
} as const satisfies Record<string, Route>
