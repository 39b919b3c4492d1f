/**
 * parse-job - input and result of parsing a received message
 *
 * Spec inbound.parse, inbound.authentication
 */

import type { ParseIssue } from '../../../schemas/inbound.ts'
import type { Authentication } from '../../mail/authenticate/authentication.ts'
import type { ContentHead, NamedHashes } from '../../state/received/content-head.ts'
import type { ReceivedPlace } from '../../state/received/parse-item.ts'

/** One message. */
export interface ParseJob extends ReceivedPlace {
  readonly accountId: string
  readonly sizeBytes: number
  readonly head: ContentHead
}

/** The results of the sender's authentication, and their time. */
export interface CheckResult {
  readonly authentication: Authentication
  readonly checkedAtMs: number
}

/** The parsed fields of a mail. */
export interface ParseResult {
  /** Id of the object with the full result; null if nothing was parsed. */
  readonly parsedId: string | null
  readonly hasText: boolean
  readonly hasHtml: boolean
  readonly attachmentCount: number
  readonly parseIssue: ParseIssue | null
  /** The first mailbox of From, and its HMAC within the account. */
  readonly from: { readonly hmac: string; readonly address: string; readonly name: string | null } | null
  readonly subject: string | null
  readonly dateMs: number | null
  readonly named: NamedHashes
  /** Null if the checks have not run. */
  readonly check: CheckResult | null
}

/** The result of parsing; `later` means that the content store did not answer, and parsing is retried. */
export type ParseOutcome = { readonly result: 'parsed'; readonly parsed: ParseResult } | { readonly result: 'later' }
