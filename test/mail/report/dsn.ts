/** dsn - reports by RFC 3464 and bounces in words: the table, and mail collected by others. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type Dsn, readDsn } from '../../../src/mail/report/dsn.ts'
import type { ReportMail } from '../../../src/mail/report/report-mail.ts'
import { parseMail } from '../../../src/reception/returned/parse.ts'
import { cpuMsOf } from '../../support/machine/cpu-time.ts'
import { findSuite } from '../../support/machine/suites.ts'

const ADA = 'ada@example.net'
const FLUFL = findSuite('bounce/flufl')

function report(status: string): ReportMail {
  return {
    headers: [['from', 'MAILER-DAEMON@mx.example.net']],
    text: 'Delivery has failed',
    parts: [{ contentType: 'message/delivery-status', text: `Reporting-MTA: dns; mx.example.net\r\n\r\n${status}` }],
  }
}

const group = (fields: Record<string, string>) =>
  Object.entries({ 'Final-Recipient': `rfc822; ${ADA}`, ...fields })
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')

const REPORTS: [name: string, status: string, expected: Partial<Dsn>][] = [
  [
    'failed 5.1.1',
    group({ Action: 'failed', Status: '5.1.1', 'Diagnostic-Code': `smtp; 550 5.1.1 <${ADA}> unknown` }),
    {
      kind: 'bounce',
      code: 550,
      response: '550 5.1.1 <<rcpt>> unknown',
      classification: 'InvalidRecipient',
      hard: true,
      expired: false,
    },
  ],
  [
    'forwarded: the other address is nobody’s business',
    group({
      'Final-Recipient': 'rfc822; private@home.example',
      Action: 'failed',
      Status: '5.1.1',
      'Diagnostic-Code': 'smtp; 550 5.1.1 private@home.example gone',
    }),
    { kind: 'bounce', response: '550 5.1.1 <address> gone', hard: true },
  ],
  [
    'policy is never hard',
    group({ Action: 'failed', Status: '5.7.1', 'Diagnostic-Code': 'smtp; 550-5.7.1 blocked by reputation' }),
    { kind: 'bounce', code: 550, classification: 'SpamBlock', hard: false },
  ],
  [
    'status alone',
    group({ Action: 'failed', Status: '5.1.1' }),
    { kind: 'bounce', code: null, response: '5.1.1', hard: true },
  ],
  [
    'no action',
    group({ Status: '5.2.1 (disabled)' }),
    { kind: 'bounce', code: null, hard: true, classification: 'InactiveMailbox' },
  ],
  [
    'a 5xx reply under a 4.x status is a refusal',
    group({ Action: 'failed', Status: '4.1.1', 'Diagnostic-Code': 'smtp; 550 5.1.1 unknown' }),
    { kind: 'bounce', code: 550, classification: 'InvalidRecipient', hard: true, expired: false },
  ],
  [
    'a reply without an enhanced code, which the status has',
    group({ Action: 'failed', Status: '5.2.2', 'Diagnostic-Code': 'smtp; 550 mailbox unavailable' }),
    { kind: 'bounce', code: 550, response: '550 mailbox unavailable', classification: 'QuotaIssues', hard: false },
  ],
  [
    'the next server, quoted by a gateway',
    group({
      Action: 'failed',
      Status: '5.0.0',
      'Diagnostic-Code': "smtp; 5.1.0 - Unknown address error 552-'5.2.2 full'",
    }),
    { kind: 'bounce', code: 552, classification: 'QuotaIssues', hard: false },
  ],
  [
    'failed after 4.4.7',
    group({ Action: 'failed', Status: '4.4.7', 'Diagnostic-Code': 'smtp; 451 4.3.0 try later' }),
    { kind: 'bounce', code: 451, classification: 'MessageExpired', hard: false, expired: true },
  ],
  [
    'failed with 5.4.300 of Exchange Online',
    group({ Action: 'failed', Status: '5.4.300', 'Diagnostic-Code': 'smtp; 550 5.4.300 Message expired' }),
    { kind: 'bounce', code: 550, classification: 'MessageExpired', expired: true, hard: false },
  ],
  [
    'failed with 5.4.7',
    group({ Action: 'failed', Status: '5.4.7' }),
    { kind: 'bounce', code: null, classification: 'MessageExpired', expired: true },
  ],
  [
    'a diagnostic of another kind',
    group({ Action: 'failed', Status: '5.0.0', 'Diagnostic-Code': 'x-unix; command failed' }),
    { kind: 'bounce', code: null, response: '5.0.0 command failed', hard: false },
  ],
  ['delayed', group({ Action: 'delayed', Status: '4.2.0' }), { kind: 'delay' }],
  ['delivered', group({ Action: 'delivered', Status: '2.0.0' }), { kind: 'delay' }],
  ['relayed', group({ Action: 'relayed', Status: '2.1.9' }), { kind: 'delay' }],
  [
    'several groups, one failed',
    `${group({ Action: 'delivered' })}\r\n${group({ Action: 'failed', Status: '5.1.1' })}`,
    { kind: 'bounce', hard: true },
  ],
]
for (const [name, status, expected] of REPORTS)
  t.test(`dsn: ${name} [bounce.dsn]`, async (t) => t.match(readDsn(report(status), ADA), expected))

const words = (subject: string, text: string, rest: Record<string, string> = {}): ReportMail => ({
  headers: Object.entries({ subject, from: 'Mail Delivery System <MAILER-DAEMON@mx.example.net>', ...rest }),
  text,
  parts: [],
})
const EXIM =
  'This message was created automatically by mail delivery software.\n\nA message that you sent could not be delivered to one or more of its recipients.\nThis is a permanent error. The following address(es) failed:\n\n'
const QMAIL =
  "Hi. This is the qmail-send program at mx.example.net.\nI'm afraid I wasn't able to deliver your message to the following addresses.\n\n"
const TEXTS: [name: string, mail: ReportMail, expected: Partial<Dsn>][] = [
  [
    'Exim',
    words(
      'Mail delivery failed: returning message to sender',
      `${EXIM}  ${ADA}\n    SMTP error from remote mail server after RCPT TO:<${ADA}>:\n    host mx [192.0.2.1]: 550 5.1.1 <${ADA}>:\n    User unknown\n\n------ This is a copy of the message ------\n\n550 5.7.1 not this one`,
    ),
    {
      kind: 'bounce',
      code: 550,
      response: '550 5.1.1 <<rcpt>>: User unknown',
      classification: 'InvalidRecipient',
      hard: true,
    },
  ],
  [
    'Exim that marks its own mail as an automatic answer',
    words('Mail delivery failed', `${EXIM}  ${ADA}\n    retry timeout exceeded\n`, {
      'auto-submitted': 'auto-replied',
    }),
    { kind: 'bounce', code: null, classification: 'MessageExpired', expired: true, hard: false },
  ],
  [
    'Exim’s warning',
    words(
      'Warning: message delayed 24 hours',
      'A message that you sent has not yet been delivered to one or more of its recipients',
    ),
    { kind: 'delay' },
  ],
  [
    'qmail',
    words(
      'failure notice',
      `${QMAIL}<${ADA}>:\n192.0.2.1 does not like recipient.\nRemote host said: 554 delivery error: dd This user doesn't have a yahoo.com account\nGiving up on 192.0.2.1.\n\n--- Below this line is a copy of the message.\n`,
    ),
    { kind: 'bounce', code: 554, classification: 'InvalidRecipient', hard: true },
  ],
  [
    'qmail, in the queue too long',
    words(
      'failure notice',
      `${QMAIL}<${ADA}>:\nI'm not going to try again; this message has been in the queue too long.\n`,
    ),
    { kind: 'bounce', expired: true, hard: false },
  ],
  [
    'words without any code',
    words('Undelivered Mail Returned to Sender', `The message could not be delivered.\n\n<${ADA}>: quota exceeded\n`),
    { kind: 'bounce', code: null, response: '<<rcpt>>: quota exceeded', classification: 'QuotaIssues', hard: false },
  ],
  [
    'an unknown block text suppresses nobody',
    words('Undeliverable', 'Your message could not be delivered.\n\n550 Rejected for reasons of our own\n'),
    { kind: 'bounce', code: 550, hard: false },
  ],
  [
    'out of office',
    words('Automatic reply: Your order', 'I am out of the office.', {
      from: 'Ada <ada@example.net>',
      'auto-submitted': 'auto-replied',
    }),
    { kind: 'other' },
  ],
  [
    'out of office that quotes a bounce',
    words('Out of office', 'I am away. Last week my mail could not be delivered: 550 5.1.1 unknown', {
      from: 'Ada <ada@example.net>',
      'content-type': 'multipart/mixed',
      'auto-submitted': 'auto-replied',
    }),
    { kind: 'other' },
  ],
  [
    'a person who answers',
    words('Re: Your order', 'My parcel could not be delivered, 550 is my house number.', {
      from: 'Ada <ada@example.net>',
    }),
    { kind: 'other' },
  ],
  [
    'a failure without a sender, of a name that no mail system has',
    {
      ...words('Undeliverable: Your order', `${ADA}: 550 5.1.1 unknown`, { from: 'Robot <robot@x.example>' }),
      isNullSender: true,
    },
    { kind: 'bounce', code: 550, hard: true },
  ],
  [
    'the same with a sender',
    words('Undeliverable: Your order', `${ADA}: 550 5.1.1 unknown`, { from: 'Robot <robot@x.example>' }),
    { kind: 'other' },
  ],
  [
    'a person whose answer quotes a report of ours',
    {
      ...words('Re: Bounces', 'What is this?', { from: 'Ada <ada@example.net>' }),
      raw: `Final-Recipient: rfc822; x@y.example\nAction: failed\nStatus: 5.1.1\n`,
    },
    { kind: 'other' },
  ],
  ['nothing at all', { headers: [], text: '', parts: [] }, { kind: 'other' }],
]
for (const [name, mail, expected] of TEXTS)
  t.test(`dsn: ${name} [bounce.text]`, async (t) => t.match(readDsn(mail, ADA), expected))

t.test('dsn: hostile text is read in bounded time', async (t) => {
  for (const piece of [
    '550 5.1.1 ',
    'A message that you sent ',
    '-- ',
    '5.',
    '<a@b> ',
    'Your message \n',
    'delivery delivery ',
    'Action: ',
    'Action: x\n',
    'could not ',
    '<<< 550 ',
    'n\u00e3o ',
    '\u043d\u0435 \u043c\u043e\u0436\u0435\u0442 ',
  ]) {
    const cpuMs = await cpuMsOf(() => {
      readDsn(words(piece.repeat(500), piece.repeat(20_000)), ADA)
      readDsn({ ...words('x', 'x'), raw: piece.repeat(8000) }, ADA)
      readDsn({ ...words('x', 'x'), raw: `Action: failed\n${piece.repeat(8000)}` }, ADA)
      readDsn(
        report(`Action: failed\r\nStatus: 5.1.1\r\nDiagnostic-Code: ${piece.repeat(10_000).replaceAll('\n', '')}`),
        ADA,
      )
    })
    t.ok(cpuMs < 1000, `${piece} ${cpuMs} ms`)
  }
})

t.test(
  'dsn: collected bounces are recognized as such, and delays are not [bounce.text]',
  { skip: FLUFL === null && 'SUITES_DIR is not there' },
  async (t) => {
    interface Expected {
      readonly file: string
      readonly recipients: readonly string[]
      readonly temporary: boolean
    }
    const folder = FLUFL as string
    const expected = JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8')) as Expected[]
    const missed: string[] = []
    const bounces = expected.filter(({ temporary, recipients }) => !temporary && recipients.length > 0)
    for (const { file } of bounces) {
      const dsn = readDsn(parseMail(readFileSync(join(folder, 'data', file))), '')
      if (dsn.kind !== 'bounce') missed.push(file)
    }
    t.ok(missed.length <= bounces.length * 0.05, `${missed.length} of ${bounces.length}: ${missed.join(' ')}`)
    const delays = expected.filter(({ temporary }) => temporary)
    t.equal(delays.length, 11)
    for (const { file } of delays)
      t.not(readDsn(parseMail(readFileSync(join(folder, 'data', file))), '').kind, 'bounce', file)
  },
)
