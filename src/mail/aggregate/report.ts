/**
 * report - what an aggregate report says: DMARC (RFC 7489 appendix C, RFC 9990) and TLS (RFC 8460)
 *
 * Addresses of persons that a report names as contacts, and its remarks, are not read.
 */

/** Why a report cannot be read. */
export type ReportIssue =
  /** It is none of the known formats, or breaks the rules of its own. */
  | 'malformed'
  /** It has a DTD or an entity that XML does not define. */
  | 'entities'
  /** Unpacked, it has too many bytes or rows. */
  | 'too_large'

/** A report that cannot be read. `message` names the rule that it breaks, without any of its text. */
export class ReportFault extends Error {
  readonly issue: ReportIssue

  constructor(issue: ReportIssue, message: string) {
    super(message)
    this.issue = issue
  }
}

export const DISPOSITIONS = ['none', 'quarantine', 'reject'] as const
export type Disposition = (typeof DISPOSITIONS)[number]

/** The policy that the domain published, as the receiver found it; texts are '' if the report does not state them. */
export interface PublishedPolicy {
  readonly p: string
  readonly sp: string
  readonly np: string
  readonly adkim: string
  readonly aspf: string
  readonly pct: string
}

/** One result of a source address. */
export interface DmarcRecord {
  /** IP address in its usual form. */
  readonly source: string
  readonly messages: number
  readonly disposition: Disposition
  /** Whether an aligned identity passed, as the receiver evaluated it. */
  readonly dkim: boolean
  readonly spf: boolean
  /** Why the receiver did not follow the policy; '' if it did. */
  readonly override: string
  readonly headerFrom: string
  /** The signature that explains the result best; '' without one. */
  readonly dkimResult: string
  readonly dkimDomain: string
  readonly dkimSelector: string
  readonly spfResult: string
  readonly spfDomain: string
}

interface ReportHead {
  readonly organization: string
  readonly reportId: string
  readonly beginMs: number
  readonly endMs: number
}

export interface DmarcHead extends ReportHead {
  readonly kind: 'dmarc'
  /** Domain of the policy, in lower case. */
  readonly domain: string
  readonly policy: PublishedPolicy
}

export interface TlsHead extends ReportHead {
  readonly kind: 'tls'
}

/** Sessions to the domain's mail servers with one result. */
export interface TlsRecord {
  /** Domain of the policy, in lower case. */
  readonly domain: string
  /** `tlsa`, `sts` or `no-policy-found`. */
  readonly policyType: string
  /** '' for sessions that succeeded. */
  readonly result: string
  readonly receivingMx: string
  readonly sendingIp: string
  readonly reason: string
  readonly sessions: number
}

const LABELS = /^[a-z0-9_](?:[a-z0-9_.-]{0,251}[a-z0-9_])?$/
const CONTROLS = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

/** A domain name of a report in lower case without a final dot; '' if it is none. */
export function reportDomain(text: string | undefined): string {
  const name = (text ?? '').trim().toLowerCase().replace(/\.$/, '')
  return LABELS.test(name) ? name : ''
}

/** A code of a report, such as `pass`: lower case, at most 40 characters of a narrow set; `other` for anything else. */
export function codeOf(text: string | undefined): string {
  const code = (text ?? '').trim().toLowerCase()
  return code === '' || /^[a-z0-9_.-]{1,40}$/.test(code) ? code : 'other'
}

/** A text that people read, without control characters. */
export function lineOf(text: string | undefined, charsMax: number): string {
  return (text ?? '')
    .slice(0, 2 * charsMax)
    .replace(CONTROLS, ' ')
    .trim()
    .slice(0, charsMax)
}
