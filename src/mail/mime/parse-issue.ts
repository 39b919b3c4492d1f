/**
 * parse-issue - what is wrong with a received mail, in the words and the order of the contract.
 *
 * A hard issue empties text, HTML and attachments; a soft one says what was changed or dropped. One is named: the hard
 * one, else the soft one that stands first in the list.
 */

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

/** The issue that is named; null where there is none. */
export function namedIssue(hard: HardIssue | null, soft: ReadonlySet<SoftIssue>): ParseIssue | null {
  return hard ?? SOFT_ISSUES.find((issue) => soft.has(issue)) ?? null
}
