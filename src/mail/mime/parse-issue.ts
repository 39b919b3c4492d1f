/**
 * parse-issue - what is wrong with a received mail, in the words and the order of the contract.
 *
 * A hard issue empties text, HTML and attachments; a soft one names changed or dropped parts. One is named: the hard
 * one, otherwise the soft one that is first in the list.
 */

import { type HardIssue, type ParseIssue, SOFT_ISSUES, type SoftIssue } from '../../../schemas/inbound.ts'

/** The issue that is named, or null. */
export function namedIssue(hard: HardIssue | null, soft: ReadonlySet<SoftIssue>): ParseIssue | null {
  return hard ?? SOFT_ISSUES.find((issue) => soft.has(issue)) ?? null
}
