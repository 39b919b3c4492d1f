/**
 * dsn-text - bounces without a report that machines read: Exim, qmail and what other systems write.
 *
 * Two tables of words: what says that delivery goes on, and what says that it has ended. A mail is a bounce when words of
 * the second are in its subject or in its own text (not in the copy of the message below it) and none of the first are.
 * The reply is the first 5xx in that text, else the words about the address.
 *
 * Spec bounce.text
 */

import { capText, formatReply } from '../reply.ts'
import { headerOf, type ReportMail } from './report-mail.ts'

/** What a failing mail says of the failure. */
export interface TextFailure {
  /** A reply in one line, or words; '' where nothing more is said. */
  readonly line: string
  readonly expired: boolean
}

/** Characters of a text that are looked at. */
const TEXT_CHARS_MAX = 6000
/** Lines of a reply, and characters of a reason in words. */
/** Fields of the message, told to its sender. */
const COPIED_FIELDS = /(^|\s)(To|Cc|Subject|Sent): /
const PARAGRAPH_LINES_MAX = 6
const WORDS_CHARS_MAX = 500

/** Delivery goes on. */
const DELAYS: readonly RegExp[] = [
  /(this is a|THIS IS A) warning message only/i,
  /has not yet been delivered|have not yet been delivered/i,
  /(message|mail|delivery).{0,80}\b(is|has been|was) (delayed|postponed)/i,
  /will (keep|continue) (on )?(trying|to try|to be (attempted|retried))/i,
  /(delivery|message) (will be|is (still )?being) (re-?tried|retried)/i,
  /delivery attempts will continue|no action is required on your part|advisory-only email/i,
  /still (being retried|awaiting delivery|trying)/i,
  /do not resend your orig/i,
]
const DELAY_SUBJECT =
  /^(re: )?(warning: )?(could not send message for past|(message|mail|delivery)( is)? delayed|delayed mail)|\((mail delivery )?delay(ed)?\)|has not yet been delivered|message delayed/i

/** Delivery has ended, in the words of mail systems. */
const FAILURES: readonly RegExp[] = [
  // Exim.
  /A message that you (have )?sent (could not be|was not) delivered to (all of its recipients|one or more)/i,
  // qmail, and those that speak like it.
  /(This is the|The) (\S+ )?(qmail-send|deliver|MTA) program at/i,
  /wasn't able to deliver (your|the following) message|was(n't| not) (able|possible) to deliver your (message|mail)/i,
  /unable to deliver (your )?(the )?(message|mail)( to)?/i,
  // Postfix.
  /message returned below could not be delivered|your message could not be delivered to one or more/i,
  // Sendmail and the like.
  /-{2,} ?The following addresses had (permanent fatal errors|delivery problems)/i,
  /-{2,} ?Failed Recipients ?-{2,}|-{4,}Message not delivered to the following/i,
  /Delivery to the following recipients? (has |have )?failed|Delevery to the following recipients? failed/i,
  /did not reach (the following|some or all of the intended) recipient/i,
  /(could|can)( ?not|n't) be delivered( to)?|could not deliver( your)? message|was not delivered/i,
  /Your (message|mail).{0,200}(encountered delivery problems|was undeliverable|could not be processed)/is,
  /This Message was undeliverable|Undeliverable Address|undeliverable to \S+@/i,
  /(Unknown user|Invalid final delivery userid): \S+@|Delivery failed \d+ attempts/i,
  /An error was detected while processing the enclosed message|encountered an error while being processed/i,
  /no valid recipients were found|recipients? was aborted after/i,
  /(was|been) automatically rejected|has been rejected (by|for)|recipient could not be reached/i,
  /There is no user by that name|no such user here|Does not have a final email/i,
  /(mail box|mailbox) (is |was )?(full|disabled|not found)|does not exist on this|no longer (valid|exists|active|in use)/i,
  // In other languages.
  /n'a pas pu (e|ê)tre (d(e|é)livr|remis|distribu)|n'existe pas/i,
  /no (pudo|ha podido) ser entregad|(nicht|konnte) zugestellt werden|nicht zustellbar/i,
  /邮件无法发送|退信|не может быть доставлено|не доставлено|Non-Delivery Report/i,
]
const FAILURE_SUBJECT =
  /^(failure (notice|delivery)|returned mail|undeliver(able|ed)|mail delivery fail|delivery (failure|failed)|non-delivery|mail (could not be|not) delivered|mail system error|mail error|processing error|mail failed|mail delivery (problem|failure)|failed mail|message delivery failure|delivery status notification \(failure\)|automatically rejected|\[postmaster\] email delivery failure|failure notice)|delivery failed\)?$|could not be delivered\.?$|user unknown/i
/** Who writes it. */
const DAEMON =
  /mailer-?daemon|postmaster|mail[ ._]delivery|mdaemon|delivery subsystem|system administrator|\bndr@|\bimss@|inetgw|mail administrator|jetmail|lsmtp/i

/** After these lines stands a copy of the message. */
const COPY =
  /^(-{2,}|={2,}|_{2,}|\*{2,})? ?(Below this line is a copy|This is a copy of (the|your)|The (body|headers?) of (the|your) message|Original message (follows|header)|(Your )?original message|Returned Mail|Message (header|text) follows|Unsent message (below|follows)|Transcript of session follows.*original|Enclosed is a copy|A copy of the original message|Message contains|Your message reads|----- Original message -----|Included is a copy)/im
const EXPIRED =
  /(been in the queue too long|retry time(out)? (not reached|exceeded)|delivery time expired|maximum delivery attempts|failed \d+ attempts|within the allowed|retry timeout exceeded|could not be delivered (for|within|after) \d+ (day|hour|minute)|giving up on)/i
const REPLY_5XX = /(?:^|[^\d.])(5\d\d[ :-]+\S.*)$|(?:^|[^\d.])(5\d\d)[)\]. ]*$/
/** RFC 3463 2: an address of four numbers is none. */
const ENHANCED_5XX = /(?<![\d.])(5\.[0-7]\.\d{1,3})(?![\d.]*\d)/
/** Words of a refusal without a code. */
const REASON =
  /(unknown|no such|not (found|known|listed|a valid)|does ?n[o']t (exist|have)|no mailbox|invalid|quota|full|disabled|rejected|refused|denied|no longer|unreachable|not reachable|too (large|big)|exceed|spam|virus)/i

/** What the mail's own words say of a delivery that has ended; null where they do not say that it has. */
export function findFailure(mail: ReportMail): TextFailure | null {
  const text = ownText(mail)
  const subject = headerOf(mail, 'subject').slice(0, TEXT_CHARS_MAX)
  if (isDelay(mail)) return null
  const isFromDaemon = DAEMON.test(headerOf(mail, 'from')) || headerOf(mail, 'x-failed-recipients') !== ''
  const says = FAILURES.some((pattern) => pattern.test(text))
  // A person may quote such words: whoever is no mail system says it in subject and text.
  const isFailure = isFromDaemon
    ? says || FAILURE_SUBJECT.test(subject)
    : says && (FAILURE_SUBJECT.test(subject) || isReportType(mail))
  if (!isFailure || isAnswer(mail, isFromDaemon)) return null
  const reply = replyIn([...text.split(/\r\n|\r|\n/), '', subject])
  return reply === null ? { line: wordsIn(text), expired: EXPIRED.test(text) } : { line: reply, expired: false }
}

/** Whether the mail says that delivery goes on. */
export function isDelay(mail: ReportMail): boolean {
  const text = ownText(mail)
  return DELAY_SUBJECT.test(headerOf(mail, 'subject')) || DELAYS.some((pattern) => pattern.test(text))
}

/** An automatic answer of a person's account (RFC 3834 5) is no bounce, whatever it quotes. */
function isAnswer(mail: ReportMail, isFromDaemon: boolean): boolean {
  if (isFromDaemon) return false
  const isAutomatic = /^auto-replied/i.test(headerOf(mail, 'auto-submitted')) || headerOf(mail, 'x-autoreply') !== ''
  return (
    isAutomatic ||
    /^(auto(matic)?[ -]?(reply|response)|out of (the )?office|vacation|abwesenheit)/i.test(headerOf(mail, 'subject'))
  )
}

function isReportType(mail: ReportMail): boolean {
  return /multipart\/report|multipart\/mixed/i.test(headerOf(mail, 'content-type'))
}

/** The text before the copy of the message. */
function ownText({ text }: ReportMail): string {
  const start = text.slice(0, TEXT_CHARS_MAX)
  const copy = start.search(COPY)
  return copy > 0 ? start.slice(0, copy) : start
}

/** The first 5xx reply with what is left of its paragraph, else the first enhanced 5.x.x with its line; null for none. */
function replyIn(lines: readonly string[]): string | null {
  for (const [index, line] of lines.entries()) {
    const found = REPLY_5XX.exec(line)
    if (found === null) continue
    const end = lines.indexOf('', index)
    const rest = lines.slice(index + 1, Math.min(end < 0 ? lines.length : end, index + PARAGRAPH_LINES_MAX))
    const reply = [found[1] ?? found[2], ...rest.map((one) => one.trim())].join(' ')
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
  return capText(words.find((one) => REASON.test(one)) ?? '')
}
