/** mail-header - the effective value of repeated fields, and what is cut. */
import t from 'tap'
import { parseReceivedMail } from '../../../src/mail/mime/received-mail.ts'
import { mailOf } from '../../support/peers/mime-mail.ts'

t.test('mail-header: the first of several fields counts, lists are joined [inbound.parse.addresses]', async (t) => {
  const { from, subject, to, replyTo } = parseReceivedMail(
    mailOf(
      'From: a@m.example\nFrom: b@m.example\nSubject: one\nSubject: two\nTo: c@m.example\nTo: d@m.example\nReply-To: e@m.example\nReply-To: f@m.example\n\n',
    ),
  )
  t.same([from?.address, subject], ['a@m.example', 'one'])
  t.same(
    [to, replyTo].map((all) => all.map(({ address }) => address)),
    [
      ['c@m.example', 'd@m.example'],
      ['e@m.example', 'f@m.example'],
    ],
  )
})

t.test('mail-header: values are cut at 2,000 characters, ids dropped [inbound.parse.value]', async (t) => {
  const long = 'ü'.repeat(2001)
  const ids = Array.from({ length: 100 }, (_, at) => `<${String(at).padStart(10, '0')}@mail.example>`)
  const mail = parseReceivedMail(
    Buffer.from(
      `From: a@mail.example\r\nSubject: ${long}\r\nReferences: ${ids.join(' ')}\r\nMessage-ID: <${'a'.repeat(2000)}>\r\nTo: "${long}" <b@mail.example>\r\n\r\n`,
    ),
  )
  t.equal(mail.parseIssue, 'header_value_truncated')
  t.equal(mail.subject, 'ü'.repeat(2000))
  t.equal(mail.messageIdHeader, null)
  t.same(mail.references, ids.slice(0, 76))
  t.same(mail.to, [{ address: 'b@mail.example', name: 'ü'.repeat(2000) }])
  t.equal(mail.headers.length, 5)
  t.ok(mail.headers.every(({ value }) => value.length <= 2000))
})
