/**
 * MIME bombs: mails of 35 MB of one thing, or small ones that unfold. Each ends in a fraction of its 20 seconds with
 * the issue that the table names.
 */
import t from 'tap'
import type { ParseIssue } from '../../../../schemas/inbound.ts'
import { MAIL_BYTES_MAX } from '../../../../schemas/limits.ts'
import { parseReceivedMail, type ReceivedMail } from '../../../../src/mail/mime/received-mail.ts'
import { cpuMsOf } from '../../../support/machine/cpu-time.ts'
import { attach, mailOf, multipart, nest } from '../../../support/peers/mime-mail.ts'

/** Of the 20 seconds that a mail has, on a slow machine like this one. */
const CPU_MS_MAX = 8000

const FROM = 'From: ada@mail.example\nSubject: Bomb\n'
const MIXED = `${FROM}Content-Type: multipart/mixed; boundary=b\n\n`
const QP = 'Content-Transfer-Encoding: quoted-printable\n\n'
const BASE64 = 'Content-Transfer-Encoding: base64\n\n'
const FILE = `${FROM}Content-Type: application/x-bomb\n`

/** A mail of 35 MB: `head`, then `piece` again and again. */
function fill(head: string, piece: string): Buffer {
  const start = mailOf(head)
  return Buffer.concat([start, Buffer.alloc(MAIL_BYTES_MAX - start.length, mailOf(piece))])
}

/** A header block with one long value. */
const fieldOf = (name: string, piece: string): Buffer =>
  mailOf(`${FROM}${name}: ${piece.repeat(Math.floor(261_000 / piece.length))}\n\n`)

/** 50 multiparts whose boundaries share all except their last characters, then lines that nearly equal one. */
function nearlyNested(): Buffer {
  const name = 'x'.repeat(60)
  const head = Array.from(
    { length: 50 },
    (_, at) => `Content-Type: multipart/mixed; boundary="${name}${at}"\n\n--${name}${at}\n`,
  )
  return fill(FROM + head.join(''), `\n--${name}9x\n`)
}

const BOMBS: [name: string, make: () => Buffer, issue: ParseIssue | null, shown?: Partial<ReceivedMail>][] = [
  ['blanks', () => fill('', ' '), 'header_block_too_large'],
  ['NUL', () => fill('', '\0'), 'header_block_too_large'],
  ['empty lines', () => fill('', '\n'), 'no_headers'],
  ['fields', () => fill('', 'a: b\n'), 'too_many_headers'],
  ['a field that never ends', () => fill('Subject: ', 'a'), 'header_block_too_large'],
  ['folds', () => fill('Subject: a\n', ' a\n'), 'header_block_too_large'],
  ['lines that are no fields', () => fill(FROM, 'nonsense\n'), 'header_block_too_large'],
  ['folds of nothing', () => fill('', ' x\n'), 'header_block_too_large'],
  ['one line of text', () => fill(`${FROM}\n`, 'a'), null, { contentOmitted: 'too_large', hasText: true }],
  ['lines of text', () => fill(`${FROM}\n`, 'hello\n'), null, { contentOmitted: 'too_large' }],
  ['line feeds', () => fill(`${FROM}\n`, '\n'), null, { contentOmitted: 'too_large' }],
  ['quoted-printable text', () => fill(FROM + QP, '=41=42=\n'), null, { contentOmitted: 'too_large' }],
  ['quoted-printable file', () => fill(FILE + QP, '=41=42=\n'), null],
  ['quoted-printable blanks', () => fill(FILE + QP, ' '), null, { attachments: [{ size: 0 }] as never }],
  ['quoted-printable blanks and equals', () => fill(FILE + QP, '= '), null],
  ['quoted-printable equals', () => fill(FILE + QP, '='), null],
  ['quoted-printable soft ends', () => fill(FILE + QP, '=\n'), null, { attachments: [{ size: 2 }] as never }],
  ['base64 file', () => fill(FILE + BASE64, `${'QUJD'.repeat(19)}\n`), null],
  ['base64 padding', () => fill(FILE + BASE64, '='), null, { attachments: [{ size: 0 }] as never }],
  ['base64 of nothing', () => fill(FILE + BASE64, '!'), null, { attachments: [{ size: 0 }] as never }],
  [
    'base64 HTML',
    () => fill(`${FROM}Content-Type: text/html\n${BASE64}`, 'QUJD'),
    null,
    { contentOmitted: 'too_large' },
  ],
  ['parts', () => fill(MIXED, '--b\n\n'), 'too_many_parts'],
  ['parts with fields', () => fill(MIXED, '--b\nContent-Type: text/plain\n\na\n'), 'too_many_parts'],
  ['lines that nearly are the boundary', () => fill(`${MIXED}--b\n\n`, '--bx\n'), 'truncated_multipart'],
  ['dashes', () => fill(`${MIXED}--b\n\n`, '-'), 'truncated_multipart'],
  ['lines of dashes', () => fill(`${MIXED}--b\n\n`, '--\n'), 'truncated_multipart'],
  ['blanks after a boundary', () => fill(`${MIXED}--b\n\n--b`, ' '), 'truncated_multipart'],
  ['a boundary that begins no line', () => fill(MIXED, ' --b\n'), 'missing_boundary'],
  ['50 boundaries that are nearly the same', nearlyNested, 'truncated_multipart'],
  ['fields of a part that never end', () => fill(`${MIXED}--b\n`, 'a'), 'header_block_too_large'],
  ['fields of a part', () => fill(`${MIXED}--b\n`, 'a: b\n'), 'too_many_headers'],
  ['multiparts in multiparts', () => mailOf(FROM + nest(400)), 'nesting_too_deep'],
  [
    'multiparts without an end',
    () => fill(FROM, 'Content-Type: multipart/mixed; boundary=b\n\n--b\n'),
    'too_many_parts',
  ],
  ['messages in messages', () => fill('', 'Content-Type: message/rfc822\n\n'), 'nesting_too_deep'],
  ['messages with all in the innermost', () => fill(attach(10, '\n'), 'a'), 'decoded_too_large'],
  [
    'digests of nothing',
    () =>
      mailOf(
        FROM +
          multipart(
            'd',
            Array.from({ length: 300 }, () => ''),
            'digest',
          ),
      ),
    'too_many_parts',
  ],
  ['addresses', () => fieldOf('To', 'a@b,'), 'address_list_truncated', { toCount: 65_250 }],
  ['groups', () => fieldOf('To', 'a:b@c;'), 'address_list_truncated'],
  ['angle brackets', () => fieldOf('To', '<'), 'header_value_truncated'],
  ['comments', () => fieldOf('Cc', '('), 'header_value_truncated'],
  ['quotes', () => fieldOf('From', '"a"'), 'multiple_from'],
  ['encoded words', () => fieldOf('X-Long', '=?utf-8?q?a?= '), 'header_value_truncated'],
  ['encoded words of unknown charsets', () => fieldOf('X-Long', '=?x?q?=E4?='), 'header_value_truncated'],
  ['ids', () => fieldOf('References', '<a>'), 'header_value_truncated'],
  ['parameters', () => fieldOf('Content-Type', 'a;b=c;'), 'header_value_truncated'],
  ['continued parameters', () => fieldOf('Content-Disposition', 'attachment; filename*1=a;'), 'filename_sanitised'],
  [
    'a boundary of 200 KB',
    () => fill(`${FROM}Content-Type: multipart/mixed; boundary=${'b'.repeat(200_000)}\n\n`, '--b\n'),
    'missing_boundary',
  ],
  ['utf-7', () => mailOf(`${FROM}Content-Type: text/plain; charset=utf-7\n\n${'+AOQ-'.repeat(200_000)}`), null],
  ['flowed', () => mailOf(`${FROM}Content-Type: text/plain; format=flowed\n\n${'> a \n'.repeat(200_000)}`), null],
  ['quote marks', () => mailOf(`${FROM}Content-Type: text/plain; format=flowed\n\n${'>'.repeat(1_000_000)}`), null],
]

t.test('bombs: there are at least 30 of them', async (t) => {
  t.ok(BOMBS.length >= 30, String(BOMBS.length))
})

for (const [name, make, issue, shown] of BOMBS) {
  t.test(`bombs: ${name}`, async (t) => {
    const raw = make()
    let mail: ReceivedMail | undefined
    const cpuMs = await cpuMsOf(() => {
      mail = parseReceivedMail(raw)
    })
    t.equal(mail?.parseIssue, issue)
    t.match(mail, { sizeBytes: raw.length, ...shown })
    t.ok(cpuMs < CPU_MS_MAX, `${Math.round(cpuMs)} ms`)
  })
}
