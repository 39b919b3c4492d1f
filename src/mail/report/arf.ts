/**
 * arf - complaints of a feedback loop (RFC 5965), whose message is found by its return path.
 *
 * The return path is in `Original-Mail-From`, or in the headers of the message itself, which is the third part. Only
 * its token names a recipient; the message's own id only identifies the message for the operator: anyone who received a
 * copy could have used it.
 *
 * Spec complaint.arf
 */

import { capText } from '../reply.ts'
import { findPart, parseFieldBlocks, type ReportMail } from './report-mail.ts'

/** A feedback report. */
export interface Arf {
  /** In lower case: `abuse`, `fraud`, `virus`, `other`, `not-spam`, ... */
  readonly feedbackType: string
  /** Addresses that may be the return path, the likeliest first. */
  readonly returnPaths: readonly string[]
  /** Id of the message from its own header, null for none. */
  readonly messageId: string | null
}

/**
 * Meaning of a feedback type. `complaint` means that a person complains. `opt-out` means that a person leaves a list,
 * which does not affect mail outside lists. `none` is a report by a machine, or the opposite of a complaint.
 */
export type FeedbackMeaning = 'complaint' | 'opt-out' | 'none'

/** RFC 5965 7.3 and the IANA registry; RFC 6591 for `auth-failure`. A type that is not named here is a complaint. */
const MEANINGS: ReadonlyMap<string, FeedbackMeaning> = new Map([
  ['opt-out', 'opt-out'],
  ['opt-out-list', 'opt-out'],
  ['not-spam', 'none'],
  ['auth-failure', 'none'],
  ['dmarc', 'none'],
  ['virus', 'none'],
  ['miscategorized', 'none'],
])

const TYPE_CHARS_MAX = 50
const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/i

/** Takes a type from `readArf`. */
export function classifyFeedback(feedbackType: string): FeedbackMeaning {
  return MEANINGS.get(feedbackType) ?? 'complaint'
}

/** Reads a mail; null if it is not a feedback report. */
export function readArf(mail: ReportMail): Arf | null {
  const report = findPart(mail, 'message/feedback-report')
  if (report === null) return null
  const fields = parseFieldBlocks(report)[0] ?? new Map<string, string>()
  const original = findPart(mail, 'message/rfc822', 'text/rfc822-headers', 'message/rfc822-headers')
  const headers = original === null ? new Map<string, string>() : (parseFieldBlocks(original)[0] ?? new Map())
  const type = (fields.get('feedback-type') ?? '').toLowerCase().replace(/[^a-z0-9-]/g, '')
  return {
    feedbackType: capText(type).slice(0, TYPE_CHARS_MAX) || 'abuse',
    returnPaths: [fields.get('original-mail-from'), headers.get('return-path'), headers.get('x-original-mail-from')]
      .map((text) => addressIn(text ?? ''))
      .filter((address) => address !== ''),
    messageId: UUID.exec(headers.get('x-sendwright-id') ?? '')?.[0].toLowerCase() ?? null,
  }
}

/** The address in angle brackets, or alone. */
function addressIn(text: string): string {
  return (/<([^<>\s]{1,320})>/.exec(text)?.[1] ?? text.trim()).slice(0, 320)
}
