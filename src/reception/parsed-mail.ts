/**
 * parsed-mail - what the thread hands back of a mail: what its message's rows are to hold, and what goes with its
 * content, packed for the content store as it is. So text and HTML, megabytes of them, never come to the main thread.
 *
 * Spec inbound.parse
 */

import type { ReceivedMail } from '../mail/mime/received-mail.ts'
import { packParsed } from '../store/received.ts'

/** A parsed mail. */
export interface ParsedMail
  extends Pick<
    ReceivedMail,
    'from' | 'subject' | 'date' | 'named' | 'isNamedWhole' | 'hasText' | 'hasHtml' | 'parseIssue'
  > {
  readonly attachmentCount: number
  /** As `packParsed` made it. */
  readonly packed: Uint8Array
}

/** Packs a mail. */
export function packMail(mail: ReceivedMail): ParsedMail {
  const { from, named, isNamedWhole, sizeBytes: _size, parseIssue, ...content } = mail
  const { subject, date, hasText, hasHtml, attachments } = content
  const attachmentCount = attachments.length
  const packed = packParsed(content)
  return { from, subject, date, named, isNamedWhole, hasText, hasHtml, parseIssue, attachmentCount, packed }
}
