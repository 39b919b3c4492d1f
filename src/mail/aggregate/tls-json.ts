/**
 * tls-json - a TLS report (RFC 8460 4.4), parsed and checked
 *
 * Spec reports.formats, reports.bounds
 */

import { normalAddress } from '../ip-address.ts'
import { COUNT_MAX } from './dmarc-xml.ts'
import { codeOf, lineOf, ReportFault, reportDomain, type TlsHead, type TlsRecord } from './report.ts'

const REPORT_ID_CHARS_MAX = 255
const ORGANIZATION_CHARS_MAX = 100
const REASON_CHARS_MAX = 100
/** A failure that the report counts without a detail. */
const UNSPECIFIED = 'unspecified'

type Fields = Readonly<Record<string, unknown>>

/** Reads a report. `take` is called with each of its records. Throws ReportFault. */
export function readTlsReport(text: string, take: (record: TlsRecord) => void): TlsHead {
  const report = fieldsOf(parse(text))
  const range = fieldsOf(report['date-range'])
  const [beginMs, endMs] = [instantOf(range['start-datetime']), instantOf(range['end-datetime'])]
  const reportId = lineOf(textOf(report['report-id']), REPORT_ID_CHARS_MAX)
  if (reportId === '' || endMs < beginMs) fail('it has no id, or ends before it begins')
  const organization = lineOf(textOf(report['organization-name']), ORGANIZATION_CHARS_MAX)
  for (const policy of listOf(report.policies)) takePolicy(fieldsOf(policy), take)
  return { kind: 'tls', organization, reportId, beginMs, endMs }
}

function takePolicy(fields: Fields, take: (record: TlsRecord) => void): void {
  const policy = fieldsOf(fields.policy)
  const summary = fieldsOf(fields.summary)
  const domain = reportDomain(textOf(policy['policy-domain']))
  const policyType = codeOf(textOf(policy['policy-type']))
  const success = { domain, policyType, result: '', receivingMx: '', sendingIp: '', reason: '' }
  take({ ...success, sessions: countOf(summary['total-successful-session-count']) })
  let left = countOf(summary['total-failure-session-count'])
  for (const detail of listOf(fields['failure-details'] ?? [])) {
    const one = fieldsOf(detail)
    const sessions = countOf(one['failed-session-count'])
    left -= sessions
    take({
      domain,
      policyType,
      result: codeOf(textOf(one['result-type'])) || UNSPECIFIED,
      receivingMx: reportDomain(textOf(one['receiving-mx-hostname'])),
      sendingIp: normalAddress(textOf(one['sending-mta-ip'])) ?? '',
      reason: lineOf(textOf(one['failure-reason-code']), REASON_CHARS_MAX),
      sessions,
    })
  }
  if (left > 0) take({ ...success, result: UNSPECIFIED, sessions: left })
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return fail('it is no JSON')
  }
}

function fail(message: string): never {
  throw new ReportFault('malformed', message)
}

function fieldsOf(value: unknown): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) fail('one of its parts is no object')
  return value as Fields
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : fail('one of its parts is no list')
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Some reporters leave a count of nothing out, or write it as a text. */
function countOf(value: unknown): number {
  const count = value === undefined ? 0 : Number(value)
  if (!Number.isSafeInteger(count) || count < 0 || count > COUNT_MAX) fail('a count is no number')
  return count
}

/** RFC 3339. */
function instantOf(value: unknown): number {
  const text = textOf(value)
  const ms = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(ms) ? fail('its period is missing or no time') : ms
}
