/**
 * export - the bodies of exports: the filters of the searches without their pages
 *
 * Spec export.csv
 */

import type { FromSchema } from 'json-schema-to-ts'
import { MESSAGE_FILTERS } from '../message.ts'
import { REPORTS_QUERY } from '../report/report.ts'
import { INSTANT } from '../shape.ts'
import { SUPPRESSION_SEARCH } from '../suppression.ts'

/** Media type of an export. */
export const CSV = 'text/csv'

const { status: _status, ...BOUNCE_FILTERS } = MESSAGE_FILTERS
const { limit: _rows, after: _from, ...SUPPRESSION_FILTERS } = SUPPRESSION_SEARCH.properties

/** Body of POST /v1/messages/export. */
export const MESSAGE_EXPORT = { type: 'object', properties: MESSAGE_FILTERS, additionalProperties: false } as const

/** Body of POST /v1/bounces/export. */
export const BOUNCE_EXPORT = { type: 'object', properties: BOUNCE_FILTERS, additionalProperties: false } as const

/** Body of POST /v1/suppressions/export. */
export const SUPPRESSION_EXPORT = {
  type: 'object',
  properties: SUPPRESSION_FILTERS,
  additionalProperties: false,
} as const

/** Body of POST /v1/activity/export: of a stretch of time. */
export const ACTIVITY_EXPORT = {
  type: 'object',
  properties: { from: INSTANT, to: INSTANT },
  additionalProperties: false,
} as const

const { from, to, source, result } = REPORTS_QUERY.properties

/** Body of POST /v1/domains/{id}/reports/export. */
export const REPORT_EXPORT = {
  type: 'object',
  properties: { from, to, source, result },
  additionalProperties: false,
} as const

/** Body of POST /v1/domains/{id}/tls-reports/export. */
export const TLS_REPORT_EXPORT = { type: 'object', properties: { from, to }, additionalProperties: false } as const

export type MessageExport = FromSchema<typeof MESSAGE_EXPORT>
export type BounceExport = FromSchema<typeof BOUNCE_EXPORT>
export type SuppressionExport = FromSchema<typeof SUPPRESSION_EXPORT>
export type ActivityExport = FromSchema<typeof ACTIVITY_EXPORT>
export type ReportExport = FromSchema<typeof REPORT_EXPORT>
export type TlsReportExport = FromSchema<typeof TLS_REPORT_EXPORT>
