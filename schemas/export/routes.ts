/**
 * routes - the rows of the routes that export a list as CSV
 *
 * Spec route.table, export.csv
 */

import { type Route, route } from '../route.ts'
import {
  ACTIVITY_EXPORT,
  BOUNCE_EXPORT,
  CSV,
  MESSAGE_EXPORT,
  REPORT_EXPORT,
  SUPPRESSION_EXPORT,
  TLS_REPORT_EXPORT,
} from './export.ts'

const SUCCESS = { status: 200, body: null, media: CSV } as const

export const EXPORT_ROUTES = {
  exportMessages: route('exportMessages', 'POST', '/v1/messages/export', {
    body: MESSAGE_EXPORT,
    success: SUCCESS,
    refusals: ['stream_not_found', 'export_limit'],
  }),
  exportBounces: route('exportBounces', 'POST', '/v1/bounces/export', {
    body: BOUNCE_EXPORT,
    success: SUCCESS,
    refusals: ['stream_not_found', 'export_limit'],
  }),
  exportSuppressions: route('exportSuppressions', 'POST', '/v1/suppressions/export', {
    body: SUPPRESSION_EXPORT,
    success: SUCCESS,
    refusals: ['stream_not_found', 'export_limit'],
  }),
  exportActivity: route('exportActivity', 'POST', '/v1/activity/export', {
    keys: ['A'],
    body: ACTIVITY_EXPORT,
    success: SUCCESS,
    refusals: ['export_limit'],
  }),
  exportReports: route('exportReports', 'POST', '/v1/domains/{id}/reports/export', {
    keys: ['A'],
    body: REPORT_EXPORT,
    success: SUCCESS,
    refusals: ['export_limit'],
  }),
  exportTlsReports: route('exportTlsReports', 'POST', '/v1/domains/{id}/tls-reports/export', {
    keys: ['A'],
    body: TLS_REPORT_EXPORT,
    success: SUCCESS,
    refusals: ['export_limit'],
  }),
} as const satisfies Record<string, Route>
