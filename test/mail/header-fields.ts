/**
 * header-fields - fields as ranges of bytes: which bytes form one, what no header may hold, and that cutting changes
 * nothing else.
 */

import fc from 'fast-check'
import t from 'tap'
import { cutFields, type HeaderFault, readHeaderFields } from '../../src/mail/header-fields.ts'

/** A mail, and its fields as their names and the bytes of each. */
const READ: readonly (readonly [mail: string, fields: readonly (readonly [string, string])[], body: string])[] = [
  ['', [], ''],
  ['\r\nbody\r\n', [], '\r\nbody\r\n'],
  ['From: a\r\n', [['from', 'From: a\r\n']], ''],
  ['From: a\r\n\r\nTo: b\r\n', [['from', 'From: a\r\n']], '\r\nTo: b\r\n'],
  [
    'From : a\r\n\tb\r\n c\r\nX-1:\r\n\r\n',
    [
      ['from', 'From : a\r\n\tb\r\n c\r\n'],
      ['x-1', 'X-1:\r\n'],
    ],
    '\r\n',
  ],
  [
    'Subject: a:b\r\n \r\nTo: c',
    [
      ['subject', 'Subject: a:b\r\n \r\n'],
      ['to', 'To: c'],
    ],
    '',
  ],
  ['a: \xe9\r\n\r\n\xe9', [['a', 'a: \xe9\r\n']], '\r\n\xe9'],
]

for (const [mail, fields, body] of READ) {
  t.test(`header-fields: ${JSON.stringify(mail)}`, async (t) => {
    const bytes = Buffer.from(mail, 'latin1')
    const read = readHeaderFields(bytes)
    if (!read.ok) throw new Error(read.fault)
    t.same(
      read.fields.map(({ name, start, end }) => [name, bytes.toString('latin1', start, end)]),
      fields,
    )
    t.equal(bytes.toString('latin1', read.end), body)
    for (const { valueStart } of read.fields) t.equal(bytes[valueStart - 1], 0x3a)
  })
}

const LONG = 'x'.repeat(998)
const FAULTS: readonly (readonly [name: string, mail: string, fault: HeaderFault | null])[] = [
  ['a fold of nothing', ' From: a\r\n\r\n', 'no_field'],
  ['a line without a colon', 'From: a\r\nhello\r\n\r\n', 'no_field'],
  ['a blank in the name', 'From: a\r\nA B: c\r\n\r\n', 'no_field'],
  ['no name', ': a\r\n\r\n', 'no_field'],
  ['an octet above ASCII in the name', 'A\xe9: c\r\n\r\n', 'no_field'],
  ['an mbox line', 'From a@b.c Mon Nov 23\r\nFrom: a\r\n\r\n', 'no_field'],
  ['a line of 998', `${LONG.slice(3)}: a\r\n\r\n`, null],
  ['a line of 999', `${LONG.slice(2)}: a\r\n\r\n`, 'long_line'],
  ['a fold of 999', `A: b\r\n ${LONG}\r\n\r\n`, 'long_line'],
  ['a thousand fields', `${'A: b\r\n'.repeat(1000)}\r\n`, null],
  ['one more', `${'A: b\r\n'.repeat(1001)}\r\n`, 'too_many_fields'],
  ['256 KiB', `A: b\r\n${` ${'x'.repeat(997)}\r\n`.repeat(262)}${` ${'x'.repeat(135)}\r\n`}\r\n`, null],
  ['256 KiB and one', `A: b\r\n${` ${'x'.repeat(997)}\r\n`.repeat(262)}${` ${'x'.repeat(136)}\r\n`}\r\n`, 'too_large'],
]

for (const [name, mail, fault] of FAULTS) {
  t.test(`header-fields: ${name} is ${fault ?? 'a header'}`, async (t) => {
    const read = readHeaderFields(Buffer.from(mail, 'latin1'))
    t.same(read.ok ? null : read.fault, fault)
  })
}

t.test('header-fields: a field is cut whole, and nothing else changes', async (t) => {
  const field = fc.tuple(fc.constantFrom('A', 'Bcc', 'received', 'X-y'), fc.array(fc.stringMatching(/^[ -~]{0,20}$/)))
  const property = fc.property(fc.array(field), fc.string(), (fields, body) => {
    const texts = fields.map(([name, lines]) => `${name}: ${lines.join('\r\n ')}\r\n`)
    const mail = Buffer.from(`${texts.join('')}\r\n${body}`)
    const read = readHeaderFields(mail)
    if (!read.ok) throw new Error(read.fault)
    const isCut = (name: string) => name.toLowerCase() === 'bcc' || name === 'received'
    const cut = cutFields(
      mail,
      read.fields.filter(({ name }) => isCut(name)),
    )
    const kept = texts.filter((_, at) => !isCut(fields[at]?.[0] ?? ''))
    return cut.equals(Buffer.from(`${kept.join('')}\r\n${body}`))
  })
  t.doesNotThrow(() => fc.assert(property, { numRuns: 500 }))
})
