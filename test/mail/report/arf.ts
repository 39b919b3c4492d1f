/** arf - reports of feedback loops, whole, bare and broken. */
import t from 'tap'
import { classifyFeedback, type FeedbackMeaning, readArf } from '../../../src/mail/report/arf.ts'
import type { ReportMail } from '../../../src/mail/report/report-mail.ts'

const ID = '0199aa11-2233-7abc-8def-0123456789ab'
const TOKEN = `b-${'a'.repeat(40)}@sw-bounce.acme.example`

function mail(report: string | null, original: string | null, contentType = 'message/rfc822'): ReportMail {
  const parts = []
  if (report !== null) parts.push({ contentType: 'message/feedback-report', text: report })
  if (original !== null) parts.push({ contentType, text: original })
  return { headers: [], text: 'This is an email abuse report', parts }
}

const REPORT = `Feedback-Type: abuse\r\nUser-Agent: SomeGenerator/1.0\r\nVersion: 1\r\nOriginal-Mail-From: <${TOKEN}>\r\n`
const ORIGINAL = `Return-Path: <${TOKEN}>\r\nX-Sendwright-Id: ${ID.toUpperCase()}\r\nSubject: Earn money\r\n\r\nReturn-Path: <other@x.example>\r\n`

const CASES: [name: string, mail: ReportMail, expected: object | null][] = [
  ['no report', mail(null, ORIGINAL), null],
  [
    'the example of RFC 5965',
    mail(REPORT, ORIGINAL),
    { feedbackType: 'abuse', returnPaths: [TOKEN, TOKEN], messageId: ID },
  ],
  [
    'headers alone',
    mail('Feedback-Type: Fraud\n', ORIGINAL, 'text/rfc822-headers'),
    { feedbackType: 'fraud', returnPaths: [TOKEN], messageId: ID },
  ],
  ['no original', mail(REPORT, null), { feedbackType: 'abuse', returnPaths: [TOKEN], messageId: null }],
  [
    'not spam',
    mail('Feedback-Type: not-spam\r\n', null),
    { feedbackType: 'not-spam', returnPaths: [], messageId: null },
  ],
  ['no type', mail('Version: 1\r\n', null), { feedbackType: 'abuse', returnPaths: [], messageId: null }],
  ['an empty report', mail('', ''), { feedbackType: 'abuse', returnPaths: [], messageId: null }],
  [
    'an address without brackets, folded',
    mail(`Feedback-Type: abuse\r\nOriginal-Mail-From:\r\n ${TOKEN}\r\n`, null),
    { feedbackType: 'abuse', returnPaths: [TOKEN], messageId: null },
  ],
]
for (const [name, received, expected] of CASES)
  t.test(`arf: ${name} [complaint.arf]`, async (t) => t.same(readArf(received), expected))

const MEANINGS: [type: string, meaning: FeedbackMeaning][] = [
  ['abuse', 'complaint'],
  ['fraud', 'complaint'],
  ['other', 'complaint'],
  ['x-unheard-of', 'complaint'],
  ['', 'complaint'],
  ['opt-out', 'opt-out'],
  ['opt-out-list', 'opt-out'],
  ['not-spam', 'none'],
  ['auth-failure', 'none'],
  ['dmarc', 'none'],
  ['virus', 'none'],
  ['miscategorized', 'none'],
]
for (const [type, meaning] of MEANINGS)
  t.test(`arf: the type ${JSON.stringify(type)} is ${meaning} [complaint.arf]`, async (t) => {
    t.equal(
      classifyFeedback(readArf(mail(`Feedback-Type: ${type.toUpperCase()}\r\n`, null))?.feedbackType ?? ''),
      meaning,
    )
  })
