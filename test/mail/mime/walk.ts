/**
 * walk - structures of RFC 2046 5.1, complete and broken: which parts are text, HTML and attachments, and their
 * contents.
 */
import t from 'tap'
import type { ParseIssue } from '../../../schemas/inbound.ts'
import { attachmentBytes } from '../../../src/mail/mime/body.ts'
import { parseReceivedMail } from '../../../src/mail/mime/received-mail.ts'
import { mailOf, multipart } from '../../support/peers/mime-mail.ts'

const FROM = 'From: ada@mail.example\n'
const MIXED = `${FROM}Content-Type: multipart/mixed; boundary=b\n\n`
const MESSAGE = 'Content-Type: message/rfc822\n\nFrom: c@mail.example\n\ninner'

/** what, mail, text, html, attachments as `type name: bytes`, issue */
const CASES: [string, string, string | null, string | null, string[], ParseIssue | null][] = [
  ['no type', `${FROM}\ntext\n`, 'text\n', null, [], null],
  ['LF alone', `${FROM}\ntext`, 'text', null, [], null],
  ['no body', FROM, null, null, [], null],
  ['HTML alone', `${FROM}Content-Type: text/html\n\n<p>`, null, '<p>', [], null],
  ['another type', `${FROM}Content-Type: application/pdf\n\n%PDF`, null, null, ['application/pdf null: %PDF'], null],
  ['a type that cannot be read', `${FROM}Content-Type: text\n\ntext`, 'text', null, [], null],
  [
    'a file whose type cannot be read',
    `${FROM}Content-Type: pdf; name=a.pdf\n\n%PDF`,
    null,
    null,
    ['application/octet-stream a.pdf: %PDF'],
    null,
  ],
  ['preamble and epilogue', `${MIXED}before\n--b\n\nin\n--b--\nafter\n`, 'in', null, [], null],
  ['the line end before a delimiter is its own', `${MIXED}--b\n\nin\n\n--b--\n`, 'in\n', null, [], null],
  ['a part of nothing', `${MIXED}--b\n\n--b\n\nin\n--b--\n`, 'in', null, [], null],
  ['a part without fields or an empty line', `${MIXED}--b\n--b\n\nin\n--b--\n`, 'in', null, [], null],
  ['fields without an empty line', `${MIXED}--b\nContent-Type: text/html\n--b--\n`, null, null, [], null],
  ['blanks after a boundary', `${MIXED}--b \t\n\nin\n--b-- \n`, 'in', null, [], null],
  ['a longer line is none', `${MIXED}--b\n\nin\n--bc\n--b --\n--b--\n`, 'in\n--bc\n--b --', null, [], null],
  [
    'two boundaries, one longer',
    `${FROM}${multipart('b', [multipart('bb', ['\nin', 'Content-Type: text/html\n\n<p>'], 'alternative')])}`,
    'in',
    '<p>',
    [],
    null,
  ],
  ['a boundary that ends in dashes', `${FROM}${multipart('b--', ['\nin'])}`, 'in', null, [], null],
  ['texts are joined', `${FROM}${multipart('b', ['\none', '\n', '\ntwo'])}`, 'one\ntwo', null, [], null],
  [
    'text with a name is a file',
    `${FROM}${multipart('b', ['\nin', 'Content-Type: text/plain; name=a.txt\n\nfile'])}`,
    'in',
    null,
    ['text/plain a.txt: file'],
    null,
  ],
  [
    'text as an attachment',
    `${FROM}${multipart('b', ['Content-Disposition: attachment\n\nfile'])}`,
    null,
    null,
    ['text/plain null: file'],
    null,
  ],
  [
    'a disposition that nobody knows',
    `${FROM}${multipart('b', ['Content-Disposition: strange\n\nfile'])}`,
    null,
    null,
    ['text/plain null: file'],
    null,
  ],
  [
    'an empty file name',
    `${FROM}${multipart('b', ['Content-Disposition: inline; filename=""\n\nin'])}`,
    'in',
    null,
    [],
    null,
  ],
  [
    'an attached message',
    `${FROM}${multipart('b', ['\nin', MESSAGE])}`,
    'in',
    null,
    ['message/rfc822 null: From: c@mail.example\r\n\r\ninner'],
    null,
  ],
  [
    'an attached message alone',
    FROM + MESSAGE,
    null,
    null,
    ['message/rfc822 null: From: c@mail.example\r\n\r\ninner'],
    null,
  ],
  [
    'an attached message in base64',
    `${FROM}Content-Transfer-Encoding: base64\n${MESSAGE.replace(/From.*/s, 'RnJvbTog')}`,
    null,
    null,
    ['message/rfc822 null: From: '],
    null,
  ],
  [
    'a digest',
    `${FROM}${multipart('b', ['\nFrom: c@mail.example\n\ninner'], 'digest')}`,
    null,
    null,
    ['message/rfc822 null: From: c@mail.example\r\n\r\ninner'],
    null,
  ],
  [
    'an attached message that is cut off',
    `${FROM}${multipart('b', ['Content-Type: message/rfc822\n\nContent-Type: multipart/mixed; boundary=c\n\n--c\n\ninner'])}`,
    null,
    null,
    ['message/rfc822 null: Content-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n\r\ninner'],
    null,
  ],
  [
    'an inner multipart that goes on',
    `${MIXED}--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\n\none\n--b\n\ntwo\n--b--\n`,
    'one\ntwo',
    null,
    [],
    'truncated_multipart',
  ],
  [
    'an inner boundary like the outer one',
    `${MIXED}--b\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nin\n--b--\n`,
    'in',
    null,
    ['multipart/mixed null: '],
    'undecodable_container',
  ],
  [
    'an inner multipart without a boundary',
    `${FROM}${multipart('b', ['Content-Type: multipart/mixed\n\n--c\nkept', '\nin'])}`,
    'in',
    null,
    ['multipart/mixed null: --c\r\nkept'],
    'undecodable_container',
  ],
  ['a boundary of 8 bits', `${FROM}${multipart('\xe4', ['\nin'])}`, 'in', null, [], null],
  ['lines of LF alone', `${FROM}Content-Type: multipart/mixed; boundary=b\n\n--b\n\nin\n--b--`, 'in', null, [], null],
  ['the last delimiter ends the bytes', `${MIXED}--b\n\nin\n--b--`, 'in', null, [], null],
]

for (const [what, written, text, html, files, issue] of CASES) {
  t.test(`walk: ${what} [inbound.parse.parts]`, async (t) => {
    const raw = what.includes('LF alone') ? Buffer.from(written, 'latin1') : mailOf(written)
    const mail = parseReceivedMail(raw)
    t.same([mail.text, mail.html], [text, html])
    t.same(
      mail.attachments.map(({ contentType, name, place }) => `${contentType} ${name}: ${attachmentBytes(raw, place)}`),
      files,
    )
    t.equal(mail.parseIssue, issue)
    for (const { size, place } of mail.attachments) t.equal(size, attachmentBytes(raw, place).length)
  })
}

t.test(
  'walk: a part is inline if it says so, or if the HTML around it refers to it [inbound.parse.attachments]',
  async (t) => {
    const image = (fields: string): string => `Content-Type: image/png\n${fields}\npng`
    const cases: [string, string, boolean][] = [
      ['mixed', 'Content-Disposition: inline\n', true],
      ['related', 'Content-ID: <a>\n', true],
      ['mixed', 'Content-ID: <a>\n', false],
      ['related', '', false],
      ['related', 'Content-ID: <a>\nContent-Disposition: attachment\n', false],
    ]
    for (const [type, fields, inline] of cases) {
      const mail = parseReceivedMail(mailOf(FROM + multipart('b', ['\nin', image(fields)], type)))
      t.equal(mail.attachments[0]?.inline, inline, `${type} ${fields}`)
    }
  },
)
