/**
 * report - what receivers report about a domain: DMARC and TLS reports, added up by day, and the received reports
 *
 * Spec reports.read, reports.received
 */

import type { FromSchema } from 'json-schema-to-ts'

import { PAGE_DEFAULT, PAGE_MAX, REPORT_GROUPS_MAX } from '../limits.ts'
import { INSTANT, strictObject, TEXT_OR_NULL } from '../shape.ts'

const COUNT = { type: 'integer', minimum: 0 } as const
const TEXT = { type: 'string' } as const
const RESULT = { enum: ['pass', 'fail'] } as const
const CURSOR_OR_NULL = { ...TEXT_OR_NULL, description: 'Where the next page begins; null after the last one' } as const

const PAGE = {
  limit: { type: 'integer', minimum: 1, maximum: PAGE_MAX, default: PAGE_DEFAULT },
  after: {
    type: 'string',
    pattern: '^[0-9]{1,15}(?:\\.[A-Za-z0-9_-]{1,22})?$',
    description: '`next` of the page before',
  },
} as const

/** Query of GET /v1/domains/{id}/reports. */
export const REPORTS_QUERY = {
  type: 'object',
  properties: {
    from: { ...INSTANT, description: 'First day; by default 30 days ago' },
    to: { ...INSTANT, description: 'End of the period, which is counted in whole UTC days; by default now' },
    source: { type: 'string', maxLength: 45, description: 'Source address' },
    result: { ...RESULT, description: 'Result of DMARC' },
    groupBy: { enum: ['day', 'source'], description: 'Adds the rows up in `groups`' },
    ...PAGE,
  },
  additionalProperties: false,
} as const

/** Query of GET /v1/domains/{id}/tls-reports. */
export const TLS_REPORTS_QUERY = {
  type: 'object',
  properties: { from: REPORTS_QUERY.properties.from, to: REPORTS_QUERY.properties.to, ...PAGE },
  additionalProperties: false,
} as const

/** Query of GET /v1/domains/{id}/received-reports. */
export const RECEIVED_REPORTS_QUERY = { type: 'object', properties: PAGE, additionalProperties: false } as const

/** Messages with the same source and results on one day. */
export const REPORT_ROW = strictObject({
  day: { ...INSTANT, description: 'Begin of the UTC day' },
  source: { ...TEXT_OR_NULL, description: 'Source address; null for all rows beyond the bounds of a day' },
  own: { type: 'boolean', description: 'Whether the source is a sending address of this service' },
  messages: COUNT,
  result: { ...RESULT, description: 'Result of DMARC: DKIM or SPF passed for an aligned domain' },
  dkim: { ...RESULT, description: 'Whether an aligned signature passed' },
  spf: { ...RESULT, description: 'Whether SPF passed for an aligned domain' },
  disposition: { enum: ['none', 'quarantine', 'reject'], description: 'What receivers did by the policy' },
  override: { ...TEXT_OR_NULL, description: 'Why receivers did not follow the policy, such as `forwarded`' },
  headerFrom: { ...TEXT, description: 'Domain of From' },
  dkimResult: { ...TEXT_OR_NULL, description: 'Result of the signature that explains the outcome best' },
  dkimDomain: { ...TEXT_OR_NULL, description: 'Domain of that signature' },
  dkimSelector: { ...TEXT_OR_NULL, description: 'Selector of that signature' },
  spfResult: { ...TEXT_OR_NULL, description: 'Result of SPF' },
  spfDomain: { ...TEXT_OR_NULL, description: 'Domain that SPF was checked for' },
})

const SUMS = {
  messages: COUNT,
  passed: { ...COUNT, description: 'Messages that passed DMARC' },
  failed: { ...COUNT, description: 'Messages that failed: with p=reject, receivers reject them' },
  dkimPassed: COUNT,
  spfPassed: COUNT,
  quarantined: COUNT,
  rejected: COUNT,
} as const

/** Messages of one day or source. */
export const REPORT_GROUP = strictObject({
  group: { ...TEXT, description: 'Begin of the day, or the source address; `other` for all beyond the bounds' },
  own: { type: 'boolean', description: 'Whether it is a sending address of this service' },
  ...SUMS,
})

/** Answer of GET /v1/domains/{id}/reports, the latest day first. Sums are those of all rows of the query. */
export const REPORTS = strictObject({
  policy: {
    description: 'DMARC policy as the last report states it; null before the first one',
    anyOf: [strictObject({ p: TEXT, sp: TEXT, np: TEXT, adkim: TEXT, aspf: TEXT, pct: TEXT }), { type: 'null' }],
  },
  totals: strictObject({ ...SUMS, ownFailed: { ...COUNT, description: 'Failed messages of this service' } }),
  reports: { type: 'array', maxItems: PAGE_MAX, items: REPORT_ROW, description: 'Rows; empty with `groupBy`' },
  groups: { type: 'array', maxItems: REPORT_GROUPS_MAX, items: REPORT_GROUP, description: 'Empty without `groupBy`' },
  next: CURSOR_OR_NULL,
})

/** Sessions with the same result on one day. */
export const TLS_REPORT_ROW = strictObject({
  day: { ...INSTANT, description: 'Begin of the UTC day' },
  reporter: { ...TEXT_OR_NULL, description: 'Domain of the reporter; null for all rows beyond the bounds of a day' },
  policyType: { ...TEXT, description: '`sts`, `tlsa` or `no-policy-found`; empty beyond the bounds of a day' },
  result: { ...TEXT_OR_NULL, description: 'Type of the failure; null for sessions that succeeded' },
  receivingMx: { ...TEXT_OR_NULL, description: 'Mail server of the domain' },
  sendingIp: { ...TEXT_OR_NULL, description: 'Address of the sending server' },
  reason: { ...TEXT_OR_NULL, description: 'Code of the reason, as the reporter states it' },
  sessions: COUNT,
})

/** Answer of GET /v1/domains/{id}/tls-reports, the latest day first. */
export const TLS_REPORTS = strictObject({
  totals: strictObject({
    sessions: COUNT,
    succeeded: COUNT,
    failed: { ...COUNT, description: 'Number of sessions that failed' },
  }),
  reports: { type: 'array', maxItems: PAGE_MAX, items: TLS_REPORT_ROW },
  next: CURSOR_OR_NULL,
})

/** A received report. */
export const RECEIVED_REPORT = strictObject({
  kind: { enum: ['dmarc', 'tls'] },
  receivedAt: INSTANT,
  reporter: { ...TEXT, description: 'Domain that its mail comes from' },
  authenticated: { type: 'boolean', description: 'Whether its mail passed DMARC. Other reports are in no sum' },
  organization: { ...TEXT, description: 'Name that the reporter gives itself' },
  reportId: { ...TEXT, description: "Reporter's id of the report" },
  from: { ...INSTANT, description: 'Begin of its period' },
  to: { ...INSTANT, description: 'End of its period' },
  rows: { ...COUNT, description: 'Rows before they were added up' },
  messages: { ...COUNT, description: 'Messages, or sessions of a TLS report' },
})

/** Answer of GET /v1/domains/{id}/received-reports, the latest first. */
export const RECEIVED_REPORTS = strictObject({
  reports: { type: 'array', maxItems: PAGE_MAX, items: RECEIVED_REPORT },
  next: CURSOR_OR_NULL,
})

export type ReportRow = FromSchema<typeof REPORT_ROW>
export type ReportGroup = FromSchema<typeof REPORT_GROUP>
export type Reports = FromSchema<typeof REPORTS>
export type TlsReportRow = FromSchema<typeof TLS_REPORT_ROW>
export type TlsReports = FromSchema<typeof TLS_REPORTS>
export type ReceivedReport = FromSchema<typeof RECEIVED_REPORT>
export type ReceivedReports = FromSchema<typeof RECEIVED_REPORTS>
