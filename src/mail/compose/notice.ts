/**
 * notice - the mail to an administrator when the records of a sending domain are missing, with the remedy and the
 * deadline
 *
 * Plain text, from the service's own postmaster; marked as auto-generated (RFC 3834 5), so that no out-of-office reply
 * answers it.
 *
 * Spec domain.notice
 */

import type { ExpectedRecord } from '../dns-record.ts'
import type { ComposeInput } from './compose.ts'

export interface NoticeInput {
  readonly kind: 'warning' | 'ended'
  readonly domain: string
  readonly domainId: string
  readonly atMs: number
  /** For a warning, the time from which mail from the domain is refused. */
  readonly endsAtMs: number
  /** The records that were not found; empty if they have been found again in the meantime. */
  readonly missing: readonly ExpectedRecord[]
  /** The administrator. */
  readonly address: string
  readonly serviceDomain: string
}

/** The message of a notice. The same input gives the same bytes. */
export function composeNotice(input: NoticeInput): ComposeInput {
  const { kind, domain, domainId, atMs, address, serviceDomain } = input
  const name = `notice-${kind}-${domainId}-${atMs}`
  return {
    messageId: name,
    acceptedAtMs: atMs,
    from: { address: `postmaster@${serviceDomain}`, name: 'Sendwright' },
    to: [{ address, name: null }],
    cc: [],
    subject: kind === 'warning' ? `DNS records of ${domain} are missing` : `${domain} can no longer send mail`,
    text: writeText(input),
    html: null,
    headers: { 'Auto-Submitted': 'auto-generated' },
    attachments: [],
    boundarySeed: name,
  }
}

function writeText({ kind, domain, atMs, endsAtMs, missing }: NoticeInput): string {
  const lines =
    kind === 'warning'
      ? [
          `On ${formatTime(atMs)} a check of the sending domain ${domain} did not find the required DNS records.`,
          '',
          `Mail from ${domain} still goes out. If the records are not back by ${formatTime(endsAtMs)}, it will be refused.`,
        ]
      : [
          `The DNS records of the sending domain ${domain} were missing or wrong for a day and still are.`,
          '',
          `Since ${formatTime(atMs)} mail from ${domain} is refused. It may go out again as soon as the records are found.`,
        ]
  for (const { type, host, value } of missing)
    lines.push('', 'Not found, or another value:', '', `  Type:  ${type}`, `  Name:  ${host}`, `  Value: ${value}`)
  lines.push('', 'The records are looked up every hour or more often; the verify operation looks at once.', '')
  return lines.join('\n')
}

/** A minute in UTC. */
function formatTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`
}
