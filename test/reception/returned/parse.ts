/** parse - a mail and its parts: which are decoded, which are separate, and which are cut. */
import t from 'tap'
import { findHeader, findPart } from '../../../src/mail/report/report-mail.ts'
import { parseMail } from '../../../src/reception/returned/parse.ts'
import { cpuMsOf } from '../../support/machine/cpu-time.ts'

const parse = (text: string) => parseMail(Buffer.from(text.replace(/\r?\n/g, '\r\n')))

t.test('parse: headers are unfolded, subject and sender decoded', async (t) => {
  const mail = parse(
    'Subject: =?utf-8?Q?Caf=C3=A9?=\n =?utf-8?Q?s?=\nFrom: =?utf-8?B?w4RkYQ==?= <a@b.example>\nX-Long: one\n\ttwo\n\nText\n',
  )
  t.equal(findHeader(mail, 'subject'), 'Cafés')
  t.equal(findHeader(mail, 'from'), 'Äda <a@b.example>')
  t.equal(findHeader(mail, 'x-long'), 'one two')
  t.equal(mail.text, 'Text\n')
})

t.test('parse: the parts of a report stay apart from its text', async (t) => {
  const part = (type: string, text: string) => `--b\nContent-Type: ${type}\n\n${text}\n`
  const mail = parse(
    `Content-Type: multipart/report; boundary=b\n\n${part('text/plain', 'Sorry')}${part('message/delivery-status', 'Action: failed')}${part('text/rfc822-headers', 'X-A: 1')}${part('image/png', 'no text')}--b--\n`,
  )
  t.match(mail.text, /^Sorry\s*$/)
  t.match(findPart(mail, 'message/delivery-status'), /^Action: failed\s*$/)
  t.match(findPart(mail, 'text/rfc822-headers'), /^X-A: 1\s*$/)
  t.same(
    mail.parts.map(({ contentType }) => contentType),
    ['message/delivery-status', 'text/rfc822-headers'],
  )
})

t.test('parse: HTML alone becomes text without its tags', async (t) => {
  const mail = parse('Content-Type: text/html\n\n<p>Unknown&nbsp;user<br>&lt;ada@example.net&gt;</p>')
  t.equal(mail.text.trim(), 'Unknown user\n<ada@example.net>')
})

t.test('parse: the result is bounded', async (t) => {
  const mail = parse(`${'X-A: b\n'.repeat(900)}${`X-Long: ${'y'.repeat(50_000)}\n`}\n${'z'.repeat(200_000)}`)
  t.ok(mail.headers.length <= 300)
  t.ok(mail.headers.every(([, value]) => value.length <= 2000))
  t.equal(mail.text.length, 65_536)
  const crowded = parse(`${'X-A: b\n'.repeat(2000)}\ntext`)
  t.same([crowded.headers.length, crowded.text, crowded.raw?.length], [300, '', 16_006])
})

t.test('parse: a header of blanks costs no more than its length', async (t) => {
  const blanks = ' '.repeat(60_000)
  for (const text of [`X-A: a${blanks}b\n\nText`, `X-A: a${'\t\n '.repeat(20_000)}b\n\nText`])
    t.ok((await cpuMsOf(() => parse(text))) < 1000)
  t.equal(findHeader(parse(`X-A: a${blanks}b\nX-B: c\n\nText`), 'x-b'), 'c')
})

t.test('parse: bytes that are no mail are read without harm', async (t) => {
  for (const text of [
    '',
    '\n',
    ':',
    '\0\0\0',
    'Content-Type: multipart/mixed; boundary=\n\n--\n--\n',
    `${'<'.repeat(60_000)}`,
  ])
    t.type(parse(text).text, 'string')
  const html = `Content-Type: text/html\n\n${'<a '.repeat(80_000)}`
  t.ok((await cpuMsOf(() => parse(html))) < 2000)
})
