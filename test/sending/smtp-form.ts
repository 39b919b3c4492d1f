/**
 * smtp-form - a submitted message in the one form: its recipients, its log entry, and the allowed changes of a second
 * try.
 */

import t from 'tap'
import { makeIdempotency, normaliseSubmission, type Submission } from '../../src/sending/smtp-form.ts'
import { readSubmittedBody } from '../../src/sending/submitted-body.ts'
import { readSubmittedHeader } from '../../src/sending/submitted-header.ts'

const STREAM = '01a1f8d8-8300-7000-8000-00000000000a'

function submit(mail: string, changes: Partial<Submission> = {}): Submission {
  const read = readSubmittedHeader(Buffer.from(mail.replaceAll('\n', '\r\n')))
  if (!read.ok) throw new Error(read.text)
  const { header } = read
  const body = readSubmittedBody({ edited: header.edited, isKeyed: header.control.idempotencyKey !== null })
  return { header, body, recipients: ['ann@x.co'], streamId: null, reports: null, ...changes }
}

const PLAIN = 'From: "Shop" <Shop@acme.co>\nTo: Ann <ANN@X.co>\nSubject: =?utf-8?Q?Gr=C3=BC=C3=9Fe?=\n\nHello\n'

t.test('smtp-form: a plain message, whole and as it is read [submission.log]', async (t) => {
  const submission = submit(PLAIN)
  t.match(normaliseSubmission(submission), {
    streamId: null,
    from: { address: 'Shop@acme.co', domain: 'acme.co', name: 'Shop' },
    recipients: [{ address: 'ann@x.co', name: 'Ann', kind: 'to' }],
    subject: 'Grüße',
    text: 'Hello\n',
    html: null,
    headers: {},
    attachments: [],
    raw: { bytes: submission.header.edited, messageId: null, attachments: [] },
    tag: null,
    metadata: {},
  })
})

t.test('smtp-form: the envelope has the recipients, To and Cc their shown form [submission.envelope]', async (t) => {
  const mail =
    'From: a@b.co\nTo: One <one@x.co>, two@x.co\nCc: Two again <two@x.co>,\n Three <Three@X.co>\nBcc: four@x.co\n\n.\n'
  const recipients = ['four@x.co', 'THREE@x.co', 'two@x.co', 'one@x.co']
  t.same(normaliseSubmission(submit(mail, { recipients })).recipients, [
    { address: 'four@x.co', name: null, kind: 'bcc' },
    { address: 'THREE@x.co', name: 'Three', kind: 'cc' },
    { address: 'two@x.co', name: null, kind: 'to' },
    { address: 'one@x.co', name: 'One', kind: 'to' },
  ])
})

t.test('smtp-form: the stream of the control field precedes that of the user name [submission.control]', async (t) => {
  const other = '01a1f8d8-8300-7000-8000-00000000000b'
  t.equal(normaliseSubmission(submit(PLAIN, { streamId: other })).streamId, other)
  const named = submit(`X-Sendwright-Stream: ${STREAM}\n${PLAIN}`, { streamId: other })
  t.equal(normaliseSubmission(named).streamId, STREAM)
})

t.test(
  'smtp-form: 20 fields of the client’s own are shown, each once; not those that are shown elsewhere',
  async (t) => {
    const own = Array.from({ length: 30 }, (_, n) => `X-Own-${n}: =?utf-8?Q?v=C3=A4lue?=\nx-own-${n}: again\n`).join('')
    const { headers } = normaliseSubmission(
      submit(`Content-Type: text/plain\nDate: x\nReply-To: r@x.co\n${own}${PLAIN}`),
    )
    t.equal(Object.keys(headers).length, 20)
    t.match(headers, { 'Reply-To': 'r@x.co', 'X-Own-0': 'välue', 'X-Own-18': 'välue' })
    const odd = normaliseSubmission(
      submit(`__proto__: x\n${'n'.repeat(77)}: y\nX-Long: ${'v'.repeat(990)}\n z${'w'.repeat(900)}\n${PLAIN}`),
    )
    t.same(Object.keys(odd.headers), ['__proto__', 'X-Long'])
    t.equal(odd.headers['X-Long']?.length, 998)
  },
)

function multipart({ boundary = 'b', text = 'Hello', file = 'AAAA', fields = '' } = {}): string {
  return [
    `X-Sendwright-Idempotency-Key: k\n${fields}From: a@b.co\nTo: ann@x.co\nSubject: S`,
    `Content-Type: multipart/mixed; boundary="${boundary}"\n\n--${boundary}\nContent-Type: text/plain\n\n${text}`,
    `--${boundary}\nContent-Type: text/html\n\n<p>${text}</p>`,
    `--${boundary}\nContent-Type: application/pdf; name="a.pdf"\nContent-Id: <one>\nContent-Transfer-Encoding: base64`,
    `\n${file}\n--${boundary}--\n`,
  ].join('\n')
}

t.test('smtp-form: parts are shown as those of a request [submission.log]', async (t) => {
  const { text, html, raw } = normaliseSubmission(submit(multipart()))
  t.same([text, html], ['Hello', '<p>Hello</p>'])
  t.same(raw?.attachments, [
    { name: 'a.pdf', contentType: 'application/pdf', contentId: 'one', size: 3, inline: false },
  ])
})

const fingerprint = (mail: string, changes: Partial<Submission> = {}) => {
  const submission = submit(mail, changes)
  return makeIdempotency(submission, normaliseSubmission(submission))?.fingerprint
}

const TWO = { recipients: ['ann@x.co', 'bob@x.co'] }

/** The changes that a client may make when it retries, and those that make another message. */
const TRIES: readonly (readonly [name: string, again: string | undefined, isSame: boolean])[] = [
  ['nothing', fingerprint(multipart()), true],
  ['another boundary', fingerprint(multipart({ boundary: 'other' })), true],
  ['another Date and Message-ID', fingerprint(multipart({ fields: 'Date: now\nMessage-ID: <2@b.co>\n' })), true],
  ['another text', fingerprint(multipart({ text: 'Hallo' })), false],
  ['another attachment', fingerprint(multipart({ file: 'AAAB' })), false],
  ['another tag', fingerprint(multipart({ fields: 'X-Sendwright-Tag: t\n' })), false],
  ['metadata', fingerprint(multipart({ fields: 'X-Sendwright-Metadata-a: t\n' })), false],
  ['another stream', fingerprint(multipart(), { streamId: STREAM }), false],
  ['one more recipient', fingerprint(multipart(), TWO), false],
]

for (const [name, again, isSame] of TRIES) {
  t.test(
    `smtp-form: a second try with ${name} is ${isSame ? 'the same' : 'another'} [submission.fingerprint]`,
    async (t) => {
      t.equal(again === fingerprint(multipart()), isSame)
    },
  )
}

t.test('smtp-form: recipients in another order are the same; without a key nothing is stored', async (t) => {
  const turned = { recipients: [...TWO.recipients].reverse() }
  t.equal(fingerprint(multipart(), TWO), fingerprint(multipart(), turned))
  const plain = submit(PLAIN)
  t.equal(makeIdempotency(plain, normaliseSubmission(plain)), null)
})

t.test('smtp-form: parts that are not read still make a difference [submission.fingerprint]', async (t) => {
  const big = (letter: string) => `X-Sendwright-Idempotency-Key: k\n${PLAIN}${`${letter.repeat(70)}\n`.repeat(20_000)}`
  t.equal(normaliseSubmission(submit(big('a'))).text, null, 'too large to be shown')
  t.not(fingerprint(big('a')), fingerprint(big('b')))
  const broken = (text: string) =>
    `X-Sendwright-Idempotency-Key: k\nFrom: a@b.co\nContent-Type: multipart/mixed\n\n${text}\n`
  t.not(fingerprint(broken('one')), fingerprint(broken('two')))
})
