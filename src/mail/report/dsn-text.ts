/**
 * dsn-text - bounces without a machine-readable report, such as those of Exim, qmail and other systems.
 *
 * Tables of words (`dsn-words.ts`) separate delays from failures. A mail is a bounce if words of the second are in its
 * subject or in its own text (not in the copy of the message below it) and none of the first are; a mail of a mail
 * system also if it quotes a refusal, in any language. The reply is the first 5xx in that text, otherwise the words
 * about the address.
 *
 * Spec bounce.text
 */

import { capText, formatReply } from '../reply.ts'
import { COPY, DAEMON, DELAY_SUBJECT, DELAYS, EXPIRED, FAILURE_SUBJECT, FAILURES, REASON } from './dsn-words.ts'
import { findHeader, findPart, type ReportMail } from './report-mail.ts'

/** Text of a failing mail about the failure. */
export interface TextFailure {
  /** A reply in one line, or words; '' if there is no more text. */
  readonly line: string
  readonly expired: boolean
}

/** Maximum characters read of a text. */
const TEXT_CHARS_MAX = 6000
/** Fields of the message, reported to its sender. */
const COPIED_FIELDS = /(^|\s)(To|Cc|Subject|Sent): /
/** Lines of a reply, and characters of a reason in words. */
const PARAGRAPH_LINES_MAX = 6
const WORDS_CHARS_MAX = 500

const REPLY_5XX = /(?:^|[^\d.])(?<!\bline )(5[0-7]\d[ :-]+\S.*)$/i
/** Alone in its line; at the end of another one it may be a number of anything: "line 507." */
const BARE_5XX = /^[\s<>#-]{0,20}(5[0-7]\d)\s*$/
/** A class-5 code (RFC 3463 2), but not a part of an IP address. */
const ENHANCED_5XX = /(?<![\d.])(5\.[0-7]\.\d{1,3})(?![\d.]*\d)/
/** A dialogue or a quoted reply, in any language, recognized by a code in both its forms, or one after "said". */
const TRANSCRIPT =
  /(?:^|[^\d.])5[0-7]\d[ -]#?5\.[0-7]\.\d{1,3}\b|(?:\bsaid: ?|<<< |returned '|<-- |Received >>> )5[0-7]\d[ -]|RESOLVER\.ADR\.|STOREDRV\.Deliver/m

/** The failure that the mail's own text describes; null if it does not. */
export function findFailure(mail: ReportMail): TextFailure | null {
  if (isDelay(mail) || isAnswer(mail)) return null
  const text = ownText(mail)
  const says = FAILURES.some((pattern) => pattern.test(text))
  const inSubject = FAILURE_SUBJECT.test(subjectOf(mail))
  // A person may quote such words: other senders must have them in subject and text.
  const isFailure = isMailSystem(mail)
    ? says || inSubject || TRANSCRIPT.test(text)
    : says && (inSubject || isReportType(mail))
  if (!isFailure) return null
  const reply = findReply(mail)
  return reply === null ? { line: wordsIn(text), expired: EXPIRED.test(text) } : { line: reply, expired: false }
}

/** The first refusal that the mail's own text quotes, then that of its subject; null for none. */
export function findReply(mail: ReportMail): string | null {
  return replyIn([...ownText(mail).split(/\r\n|\r|\n/), '', subjectOf(mail)])
}

/**
 * Whether a mail system wrote it, by its name, by a missing one, or because its sender is empty (RFC 5321 4.5.5) and
 * it mentions a failure. Automatic answers of people have an empty sender too.
 */
export function isMailSystem(mail: ReportMail): boolean {
  const from = findHeader(mail, 'from')
  if (from.replace(/[<>\s"]/g, '') === '' && mail.headers.length > 0) return true
  if (DAEMON.test(from) || findHeader(mail, 'x-failed-recipients') !== '') return true
  const isNullSender = mail.isNullSender === true || findHeader(mail, 'return-path').trim() === '<>'
  return isNullSender && FAILURE_SUBJECT.test(subjectOf(mail))
}

/** Whether the mail reports that delivery continues. */
export function isDelay(mail: ReportMail): boolean {
  const text = ownText(mail)
  return DELAY_SUBJECT.test(subjectOf(mail)) || DELAYS.some((pattern) => pattern.test(text))
}

/** An automatic answer of a person's account (RFC 3834 5) or a read receipt is not a bounce, even if it quotes one. */
function isAnswer(mail: ReportMail): boolean {
  if (isMailSystem(mail)) return false
  if (findPart(mail, 'message/disposition-notification') !== null) return true
  const isAutomatic =
    /^auto-replied/i.test(findHeader(mail, 'auto-submitted')) || findHeader(mail, 'x-autoreply') !== ''
  return (
    isAutomatic ||
    /^(auto(matic)?[ -]?(reply|response)|out of (the )?office|vacation|abwesenheit)/i.test(findHeader(mail, 'subject'))
  )
}

function subjectOf(mail: ReportMail): string {
  return findHeader(mail, 'subject').slice(0, TEXT_CHARS_MAX)
}

function isReportType(mail: ReportMail): boolean {
  return /multipart\/report|multipart\/mixed/i.test(findHeader(mail, 'content-type'))
}

/** The text before the copy of the message. */
function ownText({ text }: ReportMail): string {
  const start = text.slice(0, TEXT_CHARS_MAX)
  const copy = start.search(COPY)
  return copy > 0 ? start.slice(0, copy) : start
}

/**
 * The first 5xx reply with the rest of its paragraph, otherwise the first enhanced 5.x.x with its line; null if none.
 */
function replyIn(lines: readonly string[]): string | null {
  for (const [index, line] of lines.entries()) {
    const found = (REPLY_5XX.exec(line) ?? BARE_5XX.exec(line))?.[1]
    if (found === undefined) continue
    const end = lines.indexOf('', index)
    const rest = lines.slice(index + 1, Math.min(end < 0 ? lines.length : end, index + PARAGRAPH_LINES_MAX))
    const reply = [found, ...rest.map((one) => one.trim())].join(' ')
    // `550: (#5.1.1) text` is what others write as `550 5.1.1 text`.
    return formatReply(
      reply.replace(
        /^(\d{3})[ :-]+\(?#?(5\.\d\.\d{1,3})?\)?[ :-]*/,
        (_, code, enhanced) => `${code} ${enhanced === undefined ? '' : `${enhanced} `}`,
      ),
    )
  }
  const coded = lines.find((line) => ENHANCED_5XX.test(line))
  const enhanced = coded === undefined ? null : (ENHANCED_5XX.exec(coded)?.[1] ?? null)
  return enhanced === null ? null : capText(`${enhanced} ${(coded as string).replace(/\(?#?5\.\d\.\d{1,3}\)?/, '')}`)
}

/** The line that gives a reason in words; '' for none. */
function wordsIn(text: string): string {
  const paragraphs = text.split(/(?:\r\n|\r|\n)[ \t]*(?:\r\n|\r|\n)/).map((one) => one.replace(/\s+/g, ' ').trim())
  const words = paragraphs.filter((one) => one.length < WORDS_CHARS_MAX && !COPIED_FIELDS.test(one))
  const reasons = words.filter((one) => REASON.test(one))
  // Text beside an address is about that address; the rest may be an introduction.
  return capText(reasons.find((one) => /@|\breason:/i.test(one)) ?? reasons[0] ?? '')
}
