/**
 * submitted-body - the parsed parts of a message received over SMTP, for the log and for its Idempotency-Key
 *
 * Bytes in, result out, like the parser of received mail that it calls; large messages are read in a thread.
 *
 * Spec submission.log, submission.fingerprint
 */

import { createHash } from 'node:crypto'
import { attachmentBytes } from '../mail/mime/body.ts'
import { parseReceivedMail, type ReceivedMail } from '../mail/mime/received-mail.ts'

/** A message as it is read. */
export interface SubmittedBody {
  readonly mail: ReceivedMail
  /** SHA-256, in hex, of each attachment once decoded, in their order; null if not requested. */
  readonly digests: readonly string[] | null
  /** SHA-256 of everything after the header, if not everything was parsed; otherwise null. */
  readonly wholeDigest: string | null
}

/** Reads a message, its own header edited. `isKeyed`: whether it has an Idempotency-Key. */
export function readSubmittedBody({ edited, isKeyed }: { edited: Buffer; isKeyed: boolean }): SubmittedBody {
  const mail = parseReceivedMail(edited)
  if (!isKeyed) return { mail, digests: null, wholeDigest: null }
  const isWhole = mail.contentOmitted === null && (mail.parseIssue === null || !HIDING.has(mail.parseIssue))
  return {
    mail,
    digests: mail.attachments.map(({ place }) => computeDigest(attachmentBytes(edited, place))),
    wholeDigest: isWhole ? null : computeDigest(edited.subarray(bodyStart(edited))),
  }
}

/** Issues that leave something of the message unread: two messages that differ there must not count as the same. */
const HIDING: ReadonlySet<string> = new Set([
  ...['no_headers', 'header_block_too_large', 'too_many_headers', 'too_many_parts', 'nesting_too_deep'],
  ...['missing_boundary', 'decoded_too_large', 'truncated_multipart', 'too_many_attachments', 'undecodable_container'],
])

function bodyStart(mail: Buffer): number {
  const end = mail.indexOf('\r\n\r\n')
  return end < 0 ? mail.length : end
}

function computeDigest(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
