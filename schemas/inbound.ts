/**
 * inbound - what a received message says of itself: the issue of its parsing, and the verdicts on who sent it
 *
 * Spec inbound.parse, inbound.authentication
 */

import { INSTANT_OR_NULL, objectOf } from './shape.ts'

/** Nothing of such a mail but its top fields is parsed. */
export const HARD_ISSUES = [
  'no_headers',
  'header_block_too_large',
  'too_many_headers',
  'too_many_parts',
  'nesting_too_deep',
  'missing_boundary',
  'decoded_too_large',
  'parse_timeout',
  'parser_error',
] as const

/** What was changed or dropped. One is named: the one that stands first. */
export const SOFT_ISSUES = [
  'truncated_multipart',
  'too_many_attachments',
  'unknown_transfer_encoding',
  'undecodable_container',
  'filename_sanitised',
  'control_chars_stripped',
  'multiple_from',
  'duplicate_header',
  'malformed_header_dropped',
  'address_list_truncated',
  'header_value_truncated',
] as const

export type HardIssue = (typeof HARD_ISSUES)[number]
export type SoftIssue = (typeof SOFT_ISSUES)[number]
export type ParseIssue = HardIssue | SoftIssue

export const PARSE_ISSUE_OR_NULL = { enum: [...HARD_ISSUES, ...SOFT_ISSUES, null] } as const

export const SPF_VERDICTS = [
  'pass',
  'fail',
  'softfail',
  'neutral',
  'none',
  'temperror',
  'permerror',
  'unchecked',
] as const
/** DKIM and DMARC have the same words. */
export const DKIM_VERDICTS = ['pass', 'fail', 'none', 'temperror', 'permerror', 'unchecked'] as const
export const ARC_VERDICTS = ['none', 'pass', 'fail', 'unchecked'] as const
export const DMARC_POLICIES = ['none', 'quarantine', 'reject'] as const

export type SpfVerdict = (typeof SPF_VERDICTS)[number]
export type DkimVerdict = (typeof DKIM_VERDICTS)[number]
export type ArcVerdict = (typeof ARC_VERDICTS)[number]
export type DmarcPolicy = (typeof DMARC_POLICIES)[number]

export const AUTHENTICATION = objectOf({
  spf: { enum: SPF_VERDICTS },
  spfHelo: { enum: SPF_VERDICTS },
  dkim: { enum: DKIM_VERDICTS },
  dmarc: { enum: DKIM_VERDICTS },
  dmarcPolicy: { enum: [...DMARC_POLICIES, null] },
  arc: { enum: ARC_VERDICTS },
  checkedAt: INSTANT_OR_NULL,
})
