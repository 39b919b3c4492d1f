/**
 * received-mail - each of the twenty issues by a mail that has it and one that nearly has it; the remaining fields
 * after a hard one; the fields of an ordinary mail.
 */
import t from 'tap'
import { HARD_ISSUES, type ParseIssue, SOFT_ISSUES } from '../../../schemas/inbound.ts'
import { attachmentBytes } from '../../../src/mail/mime/body.ts'
import { failMail, parseReceivedMail, type ReceivedMail } from '../../../src/mail/mime/received-mail.ts'
import { attach, mailOf, multipart, nest } from '../../support/peers/mime-mail.ts'

const FROM = 'From: ada@mail.example\nSubject: Greetings\n'
const ZONE = Buffer.from('x')

/** Fields of exactly that many bytes, as they are on the wire. */
function headerOf(bytes: number): string {
  const lines: string[] = []
  let left = bytes - Buffer.byteLength(FROM.replaceAll('\n', '\r\n'))
  while (left > 0) {
    const length = left > 1100 ? 1000 : left
    lines.push(`X-Filler: ${'a'.repeat(length - 12)}\n`)
    left -= length
  }
  return FROM + lines.join('')
}

const fieldsOf = (count: number): string => FROM + 'X-More: a\n'.repeat(count - 2)
const leaves = (count: number): string =>
  multipart(
    'b',
    Array.from({ length: count }, () => '\nleaf'),
  )
const files = (count: number): string =>
  multipart(
    'b',
    Array.from({ length: count }, (_, at) => `Content-Disposition: attachment; filename=${at}.txt\n\nleaf`),
  )
const list = (count: number): string => Array.from({ length: count }, (_, at) => `p${at}@mail.example`).join(',\n ')
const file = (name: string): string => `Content-Disposition: attachment; filename="${name}"\n\nfile`

/** Attached messages around text whose size makes the sum of all levels what is wanted: 4 times the size, or more. */
function bulk(isOver: boolean): Buffer {
  const wrapped = attach(4, `From: inner@mail.example\n\n`)
  const levels = (text: number): { size: number; decoded: number } => {
    let size = mailOf(wrapped).length + text
    const total = { size, decoded: text }
    for (let level = 4; level > 0; level -= 1) {
      size -= Buffer.byteLength(`From: ${5 - level}@mail.example\r\nContent-Type: message/rfc822\r\n\r\n`)
      total.decoded += size
    }
    return total
  }
  let text = 0
  while (levels(text + 1).decoded <= 4 * levels(text + 1).size) text += 1
  return Buffer.concat([mailOf(wrapped), Buffer.alloc(isOver ? text + 1 : text, 'x')])
}

/** issue, subject, the mail that has it, the mail that nearly has it */
const ISSUES: [ParseIssue, string, Buffer, Buffer][] = [
  ['no_headers', 'an empty mail', Buffer.alloc(0), mailOf('a:')],
  ['no_headers', 'an empty line first', mailOf('\nFrom: ada@mail.example\n\ntext\n'), mailOf('A: b\n\ntext\n')],
  ['header_block_too_large', '256 KiB', mailOf(`${headerOf(262_145)}\ntext`), mailOf(`${headerOf(262_144)}\ntext`)],
  [
    'header_block_too_large',
    '256 KiB of a part',
    mailOf(FROM + multipart('b', [`${headerOf(262_145)}\ntext`])),
    mailOf(FROM + multipart('b', [`${headerOf(262_144)}\ntext`])),
  ],
  ['header_block_too_large', 'without an end', mailOf(headerOf(262_145)), mailOf(headerOf(262_144))],
  ['too_many_headers', '1,000 fields', mailOf(`${fieldsOf(1001)}\ntext`), mailOf(`${fieldsOf(1000)}\ntext`)],
  [
    'too_many_headers',
    'folds are no fields',
    mailOf(`${fieldsOf(1001)}\ntext`),
    mailOf(`${FROM}To: ${list(999)}\n\ntext`),
  ],
  ['too_many_parts', '500 leaves below the root', mailOf(FROM + leaves(501)), mailOf(FROM + leaves(500))],
  [
    'too_many_parts',
    'inside an attached message',
    mailOf(FROM + multipart('a', [`Content-Type: message/rfc822\n\n${FROM}${leaves(499)}`])),
    mailOf(FROM + multipart('a', [`Content-Type: message/rfc822\n\n${FROM}${leaves(498)}`])),
  ],
  ['nesting_too_deep', 'multiparts', mailOf(FROM + nest(51)), mailOf(FROM + nest(50))],
  ['nesting_too_deep', 'attached messages', mailOf(attach(2, FROM + nest(49))), mailOf(attach(2, FROM + nest(48)))],
  [
    'missing_boundary',
    'no parameter',
    mailOf(`${FROM}Content-Type: multipart/mixed\n\n--b\n\na\n--b--\n`),
    mailOf(FROM + leaves(1)),
  ],
  [
    'missing_boundary',
    'it begins no line',
    mailOf(`${FROM}Content-Type: multipart/mixed; boundary=b\n\n --b\n\na\nx--b--\n--bx\n`),
    mailOf(`${FROM}Content-Type: multipart/mixed; boundary=b\n\n--b--\n`),
  ],
  ['decoded_too_large', '4 times the size', bulk(true), bulk(false)],
  [
    'truncated_multipart',
    'cut off',
    mailOf(`${FROM}Content-Type: multipart/mixed; boundary=b\n\n--b\n\ntext\n`),
    mailOf(FROM + leaves(1)),
  ],
  [
    'truncated_multipart',
    'the outer one goes on',
    mailOf(FROM + multipart('a', ['Content-Type: multipart/mixed; boundary=b\n\n--b\n\ntext'])),
    mailOf(FROM + multipart('a', [multipart('b', ['\ntext'])])),
  ],
  ['too_many_attachments', '100', mailOf(FROM + files(101)), mailOf(FROM + files(100))],
  [
    'unknown_transfer_encoding',
    'x-uuencode',
    mailOf(`${FROM}Content-Transfer-Encoding: x-uuencode\n\ntext`),
    mailOf(`${FROM}Content-Transfer-Encoding: 8BIT (as it is)\n\ntext`),
  ],
  [
    'unknown_transfer_encoding',
    'none is named',
    mailOf(`${FROM}Content-Transfer-Encoding: 8-bit\n\ntext`),
    mailOf(`${FROM}Content-Transfer-Encoding:\n\ntext`),
  ],
  [
    'undecodable_container',
    'without a boundary',
    mailOf(FROM + multipart('a', ['Content-Type: multipart/related\n\n--b\n\ntext\n--b--'])),
    mailOf(FROM + multipart('a', ['Content-Type: multipart/related; boundary=b\n\n--b\n\ntext\n--b--'])),
  ],
  [
    'undecodable_container',
    'hidden by base64',
    mailOf(
      `${FROM}Content-Transfer-Encoding: base64\nContent-Type: multipart/mixed; boundary=b\n\n${Buffer.from('--b\r\n\r\ntext\r\n--b--').toString('base64')}`,
    ),
    mailOf(`${FROM}Content-Transfer-Encoding: base64\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\ntext\n--b--`),
  ],
  ['filename_sanitised', 'a path', mailOf(FROM + file('../a.txt')), mailOf(FROM + file('a.txt'))],
  ['filename_sanitised', '255 characters', mailOf(FROM + file('a'.repeat(256))), mailOf(FROM + file('a'.repeat(255)))],
  ['filename_sanitised', 'a leading dot', mailOf(FROM + file('.bashrc')), mailOf(FROM + file('a.bashrc'))],
  ['control_chars_stripped', 'in text', mailOf(`${FROM}\na\x0bb`), mailOf(`${FROM}\na\tb`)],
  [
    'control_chars_stripped',
    'DEL and C1',
    mailOf(`${FROM}Content-Type: text/plain; charset=utf-8\n\n\xc2\x9f`),
    mailOf(`${FROM}\n\xa0`),
  ],
  [
    'control_chars_stripped',
    'hidden in an encoded word',
    mailOf(`${FROM}X: =?utf-8?q?a=0D=0Ab?=\n\n`),
    mailOf(`${FROM}X: =?utf-8?q?a=09b?=\n\n`),
  ],
  [
    'control_chars_stripped',
    'in a name',
    mailOf('From: =?utf-8?q?a=0Ab?= <a@mail.example>\n\n'),
    mailOf('From: =?utf-8?q?ab?= <a@mail.example>\n\n'),
  ],
  ['multiple_from', 'two fields', mailOf(`${FROM}From: b@mail.example\n\n`), mailOf(`${FROM}\n`)],
  [
    'multiple_from',
    'two mailboxes',
    mailOf('From: a@mail.example, b@mail.example\n\n'),
    mailOf('From: "a, b" <b@mail.example>\n\n'),
  ],
  ...['Sender', 'Reply-To', 'To', 'Cc', 'Bcc', 'Subject', 'Date', 'Message-ID', 'In-Reply-To', 'References'].map(
    (name): [ParseIssue, string, Buffer, Buffer] => [
      'duplicate_header',
      name,
      mailOf(`From: a@mail.example\n${name}: a\n${name.toUpperCase()}: b\n\n`),
      mailOf(`From: a@mail.example\n${name}: a\n\n`),
    ],
  ),
  ['malformed_header_dropped', 'no colon', mailOf(`${FROM}nonsense\n\n`), mailOf(`${FROM}sense :\n\n`)],
  [
    'malformed_header_dropped',
    'a fold of nothing',
    mailOf(` fold\n${FROM}\n`),
    mailOf(`From ada Mon Jan 1\n${FROM}\n`),
  ],
  [
    'malformed_header_dropped',
    'a name with a blank',
    mailOf(`${FROM}Two words: a\n\n`),
    mailOf(`${FROM}Two-words: a\n\n`),
  ],
  ['address_list_truncated', 'To', mailOf(`${FROM}To: ${list(1001)}\n\n`), mailOf(`${FROM}To: ${list(1000)}\n\n`)],
  [
    'address_list_truncated',
    'Cc of two groups',
    mailOf(`${FROM}Cc: a: ${list(600)};, b: ${list(401)};\n\n`),
    mailOf(`${FROM}Cc: a: ${list(600)};\n\n`),
  ],
  [
    'address_list_truncated',
    'Reply-To',
    mailOf(`${FROM}Reply-To: ${list(1001)}\n\n`),
    mailOf(`${FROM}Reply-To: ${list(1000)}\n\n`),
  ],
  [
    'header_value_truncated',
    'a field',
    mailOf(`${FROM}X: ${'a'.repeat(2001)}\n\n`),
    mailOf(`${FROM}X: ${'a'.repeat(2000)}\n\n`),
  ],
  [
    'header_value_truncated',
    'folded',
    mailOf(`${FROM}X: ${'a'.repeat(1000)}\n ${'a'.repeat(1000)}\n\n`),
    mailOf(`${FROM}X: ${'a'.repeat(1000)}\n ${'a'.repeat(999)}\n\n`),
  ],
]

/** Issues that a neighboring mail has in addition to the tested one. A later one may be reported instead. */
const LATER: Partial<Record<string, ParseIssue>> = {
  'folds are no fields': 'header_value_truncated',
  To: 'header_value_truncated',
  'Cc of two groups': 'header_value_truncated',
  'Reply-To': 'header_value_truncated',
}

for (const [issue, what, having, not] of ISSUES) {
  t.test(`received-mail: ${issue}, ${what} [inbound.parse]`, async (t) => {
    t.equal(parseReceivedMail(having).parseIssue, issue, 'has it')
    const other = parseReceivedMail(not).parseIssue
    t.ok(other === null || other === (LATER[what] ?? null), `just has not: ${other}`)
    t.equal(parseReceivedMail(not).sizeBytes, not.length)
  })
}

t.test('received-mail: every issue is tried, those of the thread apart [inbound.parse]', async (t) => {
  const tried = new Set(ISSUES.map(([issue]) => issue))
  t.same(
    [...HARD_ISSUES, ...SOFT_ISSUES].filter((issue) => !tried.has(issue)),
    ['parse_timeout', 'parser_error'],
  )
  t.equal(HARD_ISSUES.length + SOFT_ISSUES.length, 20)
})

t.test('received-mail: an aborted parse keeps the fields read so far', async (t) => {
  let told: ReceivedMail | null = null
  parseReceivedMail(mailOf(`${FROM}To: b@mail.example\n\ntext`), (mail) => {
    told = mail
  })
  for (const issue of ['parse_timeout', 'parser_error'] as const) {
    const mail = failMail(told, { issue, sizeBytes: 77 })
    t.match(mail, {
      parseIssue: issue,
      subject: 'Greetings',
      text: null,
      hasText: false,
      attachments: [],
      sizeBytes: 77,
    })
    t.same(mail.named, ['ada@mail.example', 'b@mail.example'])
    const bare = failMail(null, { issue, sizeBytes: 5 })
    t.match(bare, { parseIssue: issue, from: null, subject: null, headers: [], isNamedWhole: false })
  }
})

t.test('received-mail: a hard issue empties the parts and leaves the fields [inbound.parse]', async (t) => {
  const cases: [ParseIssue, Buffer][] = ISSUES.filter(([issue]) => HARD_ISSUES.includes(issue as never))
    .filter(([issue, what]) => issue !== 'no_headers' && what !== 'attached messages' && issue !== 'decoded_too_large')
    .map(([issue, , having]) => [issue, having])
  t.ok(cases.length >= 9)
  for (const [issue, bytes] of cases) {
    const mail = parseReceivedMail(bytes)
    t.same([mail.text, mail.html, mail.attachments, mail.hasText, mail.hasHtml], [null, null, [], false, false], issue)
    t.same([mail.from, mail.subject], [{ address: 'ada@mail.example', name: null }, 'Greetings'], issue)
  }
})

t.test('received-mail: the first soft issue in the order of the list is reported [inbound.parse]', async (t) => {
  const text = `From: a@mail.example\nFrom: b@mail.example\nX: ${'a'.repeat(2001)}\nnonsense\nDate: a\nDate: b\n`
  t.equal(parseReceivedMail(mailOf(`${text}\n`)).parseIssue, 'multiple_from')
  t.equal(parseReceivedMail(mailOf(`${text}\n\x01`)).parseIssue, 'control_chars_stripped')
  t.equal(parseReceivedMail(mailOf(text + file('.a'))).parseIssue, 'filename_sanitised')
  const cut = `${text}Content-Type: multipart/mixed; boundary=b\n\n--b\n${file('.a')}`
  t.equal(parseReceivedMail(mailOf(cut)).parseIssue, 'truncated_multipart')
  t.equal(parseReceivedMail(mailOf(text + leaves(501))).parseIssue, 'too_many_parts')
})

t.test('received-mail: an ordinary mail, field for field [inbound.parse]', async (t) => {
  const raw = mailOf(`From: =?utf-8?q?J=C3=B6rg=2C_M?= <j@mail.example>
To: Team: a@mail.example, "C, D" <c@mail.example>;, e@mail.example
CC: f@mail.example
Reply-To: r@mail.example
Subject: =?iso-8859-1?q?a=92b?= =?utf-8?b?w6Q=?=
Date: Mon, 1 Jan 2024 10:00:00 +0100 (CET)
Message-ID: <x@mail.example>
In-Reply-To: Your message of Monday <y@mail.example>
References: <a@mail.example> <y@mail.example>
${multipart('b', [
  multipart(
    'c',
    [
      'Content-Transfer-Encoding: quoted-printable\nContent-Type: text/plain; charset=utf-8\n\nh=C3=A9llo =\nworld\n',
      'Content-Type: text/html\n\n<b>hi</b>',
    ],
    'alternative',
  ),
  "Content-Type: image/png\nContent-ID: <logo@mail.example>\nContent-Disposition: inline; filename*=utf-8''l%C3%B6go.png\nContent-Transfer-Encoding: base64\n\naGVs\nbG8=",
])}`)
  const mail = parseReceivedMail(raw)
  const { headers, attachments, ...rest } = mail
  t.same(rest, {
    from: { address: 'j@mail.example', name: 'Jörg, M' },
    replyTo: [{ address: 'r@mail.example', name: null }],
    to: [
      { address: 'a@mail.example', name: null },
      { address: 'c@mail.example', name: 'C, D' },
      { address: 'e@mail.example', name: null },
    ],
    toCount: 3,
    cc: [{ address: 'f@mail.example', name: null }],
    ccCount: 1,
    subject: 'a’bä',
    date: '2024-01-01T09:00:00.000Z',
    messageIdHeader: '<x@mail.example>',
    inReplyTo: '<y@mail.example>',
    references: ['<a@mail.example>', '<y@mail.example>'],
    named: ['j@mail.example', 'a@mail.example', 'c@mail.example', 'e@mail.example', 'f@mail.example', 'r@mail.example'],
    isNamedWhole: true,
    text: 'héllo world\n',
    html: '<b>hi</b>',
    hasText: true,
    hasHtml: true,
    contentOmitted: null,
    sizeBytes: raw.length,
    parseIssue: null,
  })
  t.same(headers.slice(3, 5), [
    { name: 'Reply-To', value: 'r@mail.example' },
    { name: 'Subject', value: 'a’bä' },
  ])
  t.equal(headers[0]?.value, '=?utf-8?q?J=C3=B6rg=2C_M?= <j@mail.example>', 'address fields stay as they are written')
  const [attachment] = attachments
  t.match(attachment, {
    position: 0,
    name: 'lögo.png',
    contentType: 'image/png',
    contentId: 'logo@mail.example',
    size: 5,
    inline: true,
  })
  t.equal(attachmentBytes(raw, attachment!.place).toString(), 'hello')
})

t.test('received-mail: no part of a description holds a control, nor does the type [inbound.parse]', async (t) => {
  const parts = [
    'Content-Type: appli\x00cation/pdf; name="a\x01.pdf"\r\nContent-ID: <a\x02b@c>\r\n\r\nx',
    'Content-Type: m\x7fultipart/related; boundary=c\r\n\r\n--c',
  ]
  const body = parts.map((part) => `--b\r\n${part}\r\n`).join('')
  const raw = Buffer.from(`Content-Type: multipart/mixed; boundary=b\r\n\r\n${body}--b--\r\n`)
  const { attachments, text } = parseReceivedMail(raw)
  t.match(attachments, [{ name: 'a.pdf', contentType: 'application/octet-stream', contentId: 'ab@c' }])
  t.equal(attachments.length, 1)
  t.equal(text, '--c', 'what cannot be read as a type is plain text')
})

t.test(
  'received-mail: text and HTML over their limits are left out without an issue [inbound.parse.text]',
  async (t) => {
    const sized = (type: string, bytes: number) =>
      parseReceivedMail(Buffer.concat([mailOf(`${FROM}Content-Type: text/${type}\n\n`), Buffer.alloc(bytes, 'x')]))
    t.match(sized('plain', 1_048_576), { contentOmitted: null, hasText: true, text: /^x/, parseIssue: null })
    t.match(sized('plain', 1_048_577), { contentOmitted: 'too_large', hasText: true, text: null, parseIssue: null })
    t.match(sized('html', 2_097_152), { contentOmitted: null, hasHtml: true, html: /^x/, parseIssue: null })
    t.match(sized('html', 2_097_153), { contentOmitted: 'too_large', hasHtml: true, html: null, hasText: false })
    t.match(sized('plain', 4_194_305), { contentOmitted: 'too_large', hasText: true, text: null })
    const soft = Buffer.concat([
      mailOf(`${FROM}Content-Transfer-Encoding: quoted-printable\n\n`),
      ZONE,
      Buffer.alloc(4_194_303, '=\r\n'),
    ])
    t.match(parseReceivedMail(soft), { contentOmitted: null, text: 'x' }, 'soft line ends count for nothing')
  },
)

t.test(
  'received-mail: the first 100 attachments and the first 1,000 addresses are kept [inbound.parse.attachments]',
  async (t) => {
    const { attachments } = parseReceivedMail(mailOf(FROM + files(101)))
    t.same([attachments.length, attachments[99]?.position, attachments[99]?.name], [100, 99, '99.txt'])
    const { to, toCount, isNamedWhole } = parseReceivedMail(mailOf(`${FROM}To: ${list(1001)}\n\n`))
    t.same([to.length, to[999]?.address, toCount, isNamedWhole], [1000, 'p999@mail.example', 1001, false])
  },
)
