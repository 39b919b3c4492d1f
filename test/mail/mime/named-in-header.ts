/** named-in-header - every address in a header is found, and no other text is taken for one. */
import t from 'tap'
import { endOfHeader, namedInHeader } from '../../../src/mail/mime/named-in-header.ts'

const named = (text: string) => [...namedInHeader(Buffer.from(text))].map((one) => one.toLowerCase())

const CASES: readonly (readonly [string, string, string[]])[] = [
  [
    'each field that names people',
    'From: a@x.org\nTo: b@x.org\nCc: c@x.org\nBcc: d@x.org\nReply-To: e@x.org\nSender: f@x.org\n\n',
    ['a@x.org', 'b@x.org', 'c@x.org', 'd@x.org', 'e@x.org', 'f@x.org'],
  ],
  [
    'no other field, and nothing of the body',
    'Subject: g@x.org\nReceived: for h@x.org\nTo: b@x.org\n\nTo: i@x.org\n',
    ['b@x.org'],
  ],
  [
    'fields that are there twice, folds, CRLF, any case',
    'TO: b@x.org,\r\n\tc@x.org\r\nto : d@x.org\r\n\r\nCc: e@x.org\r\n',
    ['b@x.org', 'c@x.org', 'd@x.org'],
  ],
  ['groups, names, quotes, comments', 'To: People: "A, B" <a@x.org>, (c) d@x.org;\n\n', ['a@x.org', 'd@x.org']],
  ['what no parser makes sense of', 'To: <<a@x.org>> and "b@x.org\n\n', ['a@x.org', 'b@x.org']],
  [
    'an encoded word that hides one',
    `To: =?utf-8?B?${Buffer.from('Jo <a@x.org>').toString('base64')}?=\n\n`,
    ['a@x.org'],
  ],
]

for (const [name, text, expected] of CASES)
  t.test(`named-in-header: ${name} [erasure.received]`, async (t) => {
    const found = named(text)
    for (const one of expected) t.ok(found.includes(one), `${one} in ${found.join()}`)
    for (const one of found) t.ok(expected.includes(one) || !/^[a-i]@x\.org$/.test(one), `${one} is not meant`)
  })

t.test('named-in-header: thousands of them', async (t) => {
  const many = Array.from({ length: 5_000 }, (_, n) => `p${n}@x.org`)
  t.equal(named(`To: ${many.join(',\n ')}\n\n`).length, 5_000)
})

t.test('named-in-header: the end of a header', async (t) => {
  t.equal(endOfHeader(Buffer.from('A: b\r\n\r\nc')), 5)
  t.equal(endOfHeader(Buffer.from('A: b\n\nc')), 4)
  t.equal(endOfHeader(Buffer.from('A: b\n')), -1)
})
