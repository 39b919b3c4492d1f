/**
 * list-fields - the fields of a list: for every name of a stream, in every message, and read by a parser that is not
 * ours.
 */
import PostalMime from 'postal-mime'
import t from 'tap'
import { type ComposeInput, composeMessage } from '../../../src/mail/compose/compose.ts'
import { composePlain } from '../../../src/mail/compose/compose-plain.ts'
import { draftSignature, makeSubject } from '../../../src/mail/compose/dkim.ts'
import { formatListFields, isListField, withoutListFields } from '../../../src/mail/compose/list-fields.ts'
import { composeRaw } from '../../../src/mail/compose/raw.ts'

const OF = {
  unsubscribeUrl: `https://mail.acme.test/u/${'a'.repeat(128)}`,
  streamName: 'Weekly news',
  streamId: '01a1f8d8-8300-7000-8000-0e7faee555a7',
  fromDomain: 'Acme.test',
}
const ID = '<aee555a7.list.acme.test>'
const MESSAGE: ComposeInput = {
  messageId: '018f0000-0000-7000-8000-000000000001',
  acceptedAtMs: Date.UTC(2026, 0, 31, 12, 0, 0),
  from: { address: 'shop@acme.test', name: 'Acme Shop' },
  to: [{ address: 'ann@example.com', name: null }],
  cc: [],
  subject: 'Your receipt',
  text: 'Hello',
  html: '<p>Hello</p>',
  headers: {},
  attachments: [],
  boundarySeed: '0abc123def456ghi78-0',
}

const fieldOf = (of: typeof OF, name: string) => formatListFields(of).find((field) => field.name === name)?.value

t.test('list-fields: link, one-click and id [unsubscribe.fields]', async (t) => {
  t.same(formatListFields(OF), [
    { name: 'List-Unsubscribe', value: `<${OF.unsubscribeUrl}>` },
    { name: 'List-Unsubscribe-Post', value: 'List-Unsubscribe=One-Click' },
    { name: 'List-ID', value: `Weekly news ${ID}` },
  ])
})

t.test('list-fields: without https no one-click is offered [unsubscribe.fields]', async (t) => {
  const fields = formatListFields({ ...OF, unsubscribeUrl: 'http://localhost:8080/u/a' })
  t.same(
    fields.map(({ name }) => name),
    ['List-Unsubscribe', 'List-ID'],
  )
})

const NAMES: Record<string, string> = {
  'a.b': `"a.b" ${ID}`,
  'say "hi" \\ <x@y.test>': `"say \\"hi\\" \\\\ <x@y.test>" ${ID}`,
  '=?utf-8?Q?x?=': `=?UTF-8?Q?=3D=3Futf-8=3FQ=3Fx=3F=3D?= ${ID}`,
  '  ': ID,
  [`${'long '.repeat(14)}name`]: `${'long '.repeat(14)}name\r\n ${ID}`,
  'Neuigkeiten für alle': `=?UTF-8?Q?Neuigkeiten_f=C3=BCr_alle?= ${ID}`,
}
for (const [name, value] of Object.entries(NAMES))
  t.test(`list-fields: the phrase of ${JSON.stringify(name)} [unsubscribe.fields]`, async (t) => {
    t.equal(fieldOf({ ...OF, streamName: name }, 'List-ID'), value)
  })

t.test(
  'list-fields: nasty names smuggle no field in, and the brackets stay outside of encoded words [unsubscribe.fields]',
  async (t) => {
    const nasty = [
      'a\r\nBcc: eve@example.test',
      'x\u0000y',
      '\ud800 alone',
      '日本語'.repeat(33),
      '😀'.repeat(50),
      'é'.repeat(100),
      '"'.repeat(100),
      '\\'.repeat(99),
      'a\tb\u0085c\u2028d',
      '<evil.list.example.test>',
      `${'=?utf-8?B?'.repeat(9)}`,
    ]
    for (const name of nasty) {
      const value = fieldOf({ ...OF, streamName: name }, 'List-ID') as string
      t.match(value, /^[\x20-\x7e]*(\r\n [\x20-\x7e]+)*$/)
      t.ok(value.endsWith(ID))
      for (const line of value.split('\r\n')) t.ok(line.length <= 210)
      const list = formatListFields({ ...OF, streamName: name })
      for (const bytes of [composeMessage({ ...MESSAGE, list }), composeMessage({ ...MESSAGE, text: 'é', list })]) {
        const parsed = await PostalMime.parse(bytes)
        t.equal(parsed.bcc, undefined)
        t.ok(parsed.headers.find(({ key }) => key === 'list-id')?.value.endsWith(ID), 'a parser finds the id')
        t.equal(parsed.headers.find(({ key }) => key === 'list-unsubscribe')?.value, `<${OF.unsubscribeUrl}>`)
      }
    }
  },
)

t.test('list-fields: the plain composer writes the same as the other one [unsubscribe.fields]', async (t) => {
  for (const streamName of ['Weekly news', 'Neuigkeiten für alle', 'a.b', '😀'.repeat(30)]) {
    const input = { ...MESSAGE, feedbackId: 'a:b:c', list: formatListFields({ ...OF, streamName }) }
    const plain = composePlain(input)
    t.ok(plain)
    t.equal(plain?.toString('latin1'), composeMessage(input).toString('latin1'))
  }
})

t.test('list-fields: they are signed [unsubscribe.fields]', async (t) => {
  const subject = makeSubject(composeMessage({ ...MESSAGE, list: formatListFields(OF) }))
  for (const name of ['list-unsubscribe', 'list-unsubscribe-post'])
    t.equal(subject.names.filter((one) => one === name).length, 2)
  t.equal(subject.names.filter((one) => one === 'list-id').length, 1)
  const { field } = draftSignature(subject, { domain: 'acme.test', selector: 's', signedAtMs: 0 })
  t.match(field.replace(/\s/g, ''), /list-unsubscribe-post:list-unsubscribe-post/)
  t.equal(makeSubject(composeMessage(MESSAGE)).names.includes('list-id'), false)
})

t.test('list-fields: a raw message loses its own fields and keeps every other byte [unsubscribe.fields]', async (t) => {
  const own =
    'LIST-UNSUBSCRIBE:\r\n <mailto:x@y.test>\r\nFeedback-ID: mine\r\nlist-id: <old.test>\r\nList-Unsubscribe-Post: no\r\n'
  const raw = Buffer.from(
    `Date: today\r\nX-A: 1\r\n${own}List-Help: <https://h.test>\r\nSubject: s\r\n\r\nList-Id: in the body\r\n`,
  )
  const input = { ...MESSAGE, feedbackId: 'f:i:d', receivedBy: 'mx.test', raw }
  t.ok(composeRaw(input).includes(own), 'where it is no list, nothing is touched')
  const sent = composeRaw({ ...input, list: formatListFields(OF) }).toString('latin1')
  t.notOk(sent.includes('mailto:') || sent.includes('old.test') || sent.includes('mine'))
  t.ok(
    sent.endsWith('Date: today\r\nX-A: 1\r\nList-Help: <https://h.test>\r\nSubject: s\r\n\r\nList-Id: in the body\r\n'),
  )
  t.match(
    sent,
    /^Feedback-ID: f:i:d\r\nList-Unsubscribe: <https:[^>]*>\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\nList-ID: /m,
  )
})

t.test("list-fields: of a client's own fields the service's go [unsubscribe.fields]", async (t) => {
  const headers = { 'X-A': '1', 'LIST-unsubscribe': 'x', 'Feedback-Id': 'y', 'List-Help': 'z' }
  t.same(withoutListFields(headers), { 'X-A': '1', 'List-Help': 'z' })
  t.equal(withoutListFields(MESSAGE.headers), MESSAGE.headers)
  t.ok(isListField('List-ID') && !isListField('List-Help'))
})
