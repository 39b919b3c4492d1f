/**
 * parsed-mail - the result of the thread: the data for a message's rows, and the content, already packed for the
 * content store. So text and HTML, which may be megabytes, never reach the main thread.
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
