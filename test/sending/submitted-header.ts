/**
 * submitted-header - the header of a submitted message: its sender, its control fields, the removed fields, the
 * refused ones.
 */

import fc from 'fast-check'
import t from 'tap'
import { readSubmittedHeader } from '../../src/sending/submitted-header.ts'

const STREAM = '01A1F8D8-8300-7000-8000-00000000000A'
const mailOf = (...lines: readonly string[]): Buffer =>
  Buffer.from(`${lines.join('\r\n')}\r\n\r\nBcc: body\r\n`, 'latin1')

function read(...lines: readonly string[]) {
  const result = readSubmittedHeader(mailOf(...lines))
  if (!result.ok) throw new Error(result.text)
  return result.header
}

/** Value of From, and the sender that it names; null: it is refused. */
const FROM: readonly (readonly [value: string, sender: { address: string; name: string | null } | null])[] = [
  ['a@b.co', { address: 'a@b.co', name: null }],
  ['  A@B.Co  ', { address: 'A@b.co', name: null }],
  ['<a@b.co>', { address: 'a@b.co', name: null }],
  ['Ann Lee <a@b.co>', { address: 'a@b.co', name: 'Ann Lee' }],
  ['"Lee, Ann" <a@b.co>', { address: 'a@b.co', name: 'Lee, Ann' }],
  ['"x\\"y <c@d.co>," <a@b.co>', { address: 'a@b.co', name: 'x"y <c@d.co>,' }],
  ['=?utf-8?B?w4RubmE=?= <a@b.co>', { address: 'a@b.co', name: 'Änna' }],
  ['Ann\r\n <a@b.co>', { address: 'a@b.co', name: 'Ann' }],
  ['c@d.co <a@b.co>', { address: 'a@b.co', name: 'c@d.co' }],
  ['a@b.co (Ann)', { address: 'a@b.co', name: 'Ann' }],
  ['', null],
  ['Ann', null],
  ['undisclosed:;', null],
  ['a@b.co, c@d.co', null],
  ['<a@b.co>, <c@d.co>', null],
  ['Lee, Ann <a@b.co>', null],
  ['c@d.co, Ann <a@b.co>', null],
  ['<c@d.co> <a@b.co>', null],
  ['Ann <a@b.co> c@d.co', null],
  ['Ann <<a@b.co>>', null],
  ['group: a@b.co;', null],
  ['"a b"@b.co', null],
  ['a@[192.0.2.1]', null],
  ['a@localhost', null],
  ['\xe9@b.co', null],
]

for (const [value, sender] of FROM) {
  t.test(`submitted-header: From ${JSON.stringify(value)} [submission.header]`, async (t) => {
    const result = readSubmittedHeader(mailOf(`From: ${value}`, 'Subject: s'))
    t.equal(result.ok, sender !== null)
    if (result.ok) t.match(result.header.from, sender ?? {})
    else t.match(result, { problem: 'invalid', text: /^From / })
  })
}

t.test('submitted-header: no From and two are refused [submission.header]', async (t) => {
  t.match(readSubmittedHeader(mailOf('To: a@b.co')), { ok: false, text: 'From is missing' })
  t.match(readSubmittedHeader(mailOf('From: a@b.co', 'from: a@b.co')), { ok: false, text: /more than once/ })
  t.match(readSubmittedHeader(Buffer.from('\r\nFrom: a@b.co\r\n')), { ok: false, text: 'From is missing' })
})

t.test(
  'submitted-header: a Sender is one address, and its domain is reported if it differs [submission.header]',
  async (t) => {
    t.equal(read('From: a@b.co').senderDomain, null)
    t.equal(read('From: a@b.co', 'Sender: c@B.co').senderDomain, null)
    t.equal(read('From: a@b.co', 'sender: Boss <boss@Bank.example>').senderDomain, 'bank.example')
    for (const lines of [
      ['Sender: a@b.co', 'Sender: a@b.co'],
      ['Sender: a@b.co, c@d.co'],
      ['Sender: Ann'],
      ['Sender:'],
    ])
      t.match(readSubmittedHeader(mailOf('From: a@b.co', ...lines)), { ok: false, text: /^Sender / }, lines.join())
  },
)

t.test('submitted-header: a From that is a bomb is refused before it is looked into', async (t) => {
  for (const bomb of ['"\\', '(\\', '"', '<', '=?utf-8?Q?a?= ', 'a,', ' ']) {
    const lines = Array.from({ length: 250 }, () => ` ${bomb.repeat(Math.floor(990 / bomb.length))}`)
    t.match(readSubmittedHeader(mailOf('From: a@b.co', ...lines)), { ok: bomb === ' ' }, bomb)
  }
})

/** A header, and the kept part. */
const EDITED: readonly (readonly [before: readonly string[], after: readonly string[]])[] = [
  [
    ['From: a@b.co', 'To: x@y.co', 'Subject: \xe9'],
    ['From: a@b.co', 'To: x@y.co', 'Subject: \xe9'],
  ],
  [
    ['Bcc: q@r.co,\r\n s@t.co', 'From: a@b.co', 'BCC : u@v.co', 'Cc: w@x.co'],
    ['From: a@b.co', 'Cc: w@x.co'],
  ],
  [
    [
      ...['Return-Path: <a@b.co>', 'Received: by x\r\n\tfor y; z', 'DKIM-Signature: v=1', 'DomainKey-Signature: a'],
      ...['Authentication-Results: x', 'Received-SPF: pass', 'ARC-Seal: i=1', 'arc-x: y', 'Resent-From: c@d.co'],
      ...[
        'Resent-Bcc: c@d.co',
        'X-Sendwright-Id: forged',
        'x-sendwright-anything: 1',
        'From: a@b.co',
        'Sender: e@f.co',
      ],
    ],
    ['From: a@b.co', 'Sender: e@f.co'],
  ],
  [
    ['From: a@b.co', 'Date:', 'Message-ID: nothing', 'Archive: x', 'Resentful: y', 'X-Received: z'],
    ['From: a@b.co', 'Archive: x', 'Resentful: y', 'X-Received: z'],
  ],
  [
    ['From: a@b.co', 'Date: x', 'Message-ID:', 'Message-ID: <1@b.co>', 'message-id: <2@b.co>'],
    ['From: a@b.co', 'Date: x', 'Message-ID: <1@b.co>'],
  ],
]

for (const [before, after] of EDITED) {
  t.test(
    `submitted-header: of ${before.length} fields ${after.length} stay, as they were [submission.header]`,
    async (t) => {
      t.equal(read(...before).edited.toString('latin1'), mailOf(...after).toString('latin1'))
    },
  )
}

t.test('submitted-header: the kept Message-ID is returned', async (t) => {
  t.equal(read('From: a@b.co', 'Message-ID:\r\n <1@b.co> ').messageId, '<1@b.co>')
  t.equal(read('From: a@b.co', 'Message-ID: <a b@c>').messageId, null)
  t.equal(read('From: a@b.co').messageId, null)
})

t.test('submitted-header: control fields order what requests have fields for [submission.control]', async (t) => {
  t.same(read('From: a@b.co').control, {
    streamId: null,
    tag: null,
    metadata: {},
    idempotencyKey: null,
    sendAtMs: null,
  })
  const { control, edited } = read(
    `X-Sendwright-Stream: ${STREAM}`,
    'X-SENDWRIGHT-TAG: =?utf-8?Q?Gr=C3=BC=C3=9Fe?=',
    'From: a@b.co',
    'X-Sendwright-Metadata-orderId: 17',
    'X-Sendwright-metadata-__proto__: p',
    'x-sendwright-Metadata-Empty:',
    'X-SENDWRIGHT-METADATA: {"cartId": "=?utf-8?Q?=C3=9F?=",\r\n "Kunde Nr.": "\\u00fc"}',
    'X-Sendwright-Idempotency-Key: order 17/1',
  )
  t.same(control, {
    streamId: STREAM.toLowerCase(),
    tag: 'Grüße',
    metadata: Object.fromEntries([
      ['orderId', '17'],
      ['__proto__', 'p'],
      ['Empty', ''],
      ['cartId', 'ß'],
      ['Kunde Nr.', 'ü'],
    ]),
    idempotencyKey: 'order 17/1',
    sendAtMs: null,
  })
  t.equal(Object.keys(control.metadata).length, 5)
  t.same(edited, mailOf('From: a@b.co'))
})

t.test('submitted-header: X-Sendwright-Send-At is an instant with an offset [send.at]', async (t) => {
  const { control, edited } = read('From: a@b.co', 'X-Sendwright-Send-At: 2026-12-24T08:00:00+01:00')
  t.equal(control.sendAtMs, Date.UTC(2026, 11, 24, 7))
  t.same(edited, mailOf('From: a@b.co'), 'and is not sent')
})

const X = 'X-Sendwright-'
const many = (count: number) => Array.from({ length: count }, (_, n) => `${X}Metadata-k${n}: v`)

const objectOf = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, 'v']))
/** In ASCII, a line for each entry. */
const inJson = (value: object) => {
  const text = JSON.stringify(value).replace(
    /[^\x00-\x7f]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  return `${X}Metadata: ${text.replaceAll(',"', ',\r\n "')}`
}

/** Fields, and whether they pass. */
const BOUNDS: readonly (readonly [name: string, fields: readonly string[], passes: boolean])[] = [
  ['a stream that is no id', [`${X}Stream: default`], false],
  ['an empty stream', [`${X}Stream:`], false],
  ['two streams', [`${X}Stream: ${STREAM}`, `${X}Stream: ${STREAM}`], false],
  ['a tag of 100', [`${X}Tag: ${'t'.repeat(100)}`], true],
  ['a tag of 100 wide characters', [`${X}Tag: =?utf-8?B?${Buffer.from('😀'.repeat(100)).toString('base64')}?=`], true],
  ['a tag of 101', [`${X}Tag: ${'t'.repeat(101)}`], false],
  ['an empty tag', [`${X}Tag: `], false],
  ['a tag with a control character', [`${X}Tag: =?utf-8?Q?a=0Ab?=`], false],
  ['two tags', [`${X}Tag: a`, `${X}tag: b`], false],
  ['a time without an offset', [`${X}Send-At: 2026-12-24T08:00:00`], false],
  ['a time that is no moment', [`${X}Send-At: 2026-02-30T08:00:00Z`], false],
  ['two times', [`${X}Send-At: 2026-12-24T08:00:00Z`, `${X}send-at: 2026-12-24T08:00:00Z`], false],
  ['20 keys', many(20), true],
  ['21 keys', many(21), false],
  ['a key of 40', [`${X}Metadata-${'k'.repeat(40)}: v`], true],
  ['a key of 41', [`${X}Metadata-${'k'.repeat(41)}: v`], false],
  ['no key', [`${X}Metadata-: v`], false],
  ['a key twice', [`${X}Metadata-k: v`, `${X}Metadata-k: w`], false],
  ['a key in another case', [`${X}Metadata-k: v`, `${X}Metadata-K: w`], true],
  ['a value of 500', [`${X}Metadata-k: ${'v'.repeat(500)}`], true],
  ['a value of 501', [`${X}Metadata-k: ${'v'.repeat(501)}`], false],
  ['no metadata in JSON', [inJson({})], true],
  ['20 keys in JSON', [inJson(objectOf(20))], true],
  ['21 keys in JSON', [inJson(objectOf(21))], false],
  ['20 keys in both forms', [inJson(objectOf(10)), ...many(20).slice(10)], true],
  ['21 keys in both forms', [inJson(objectOf(10)), ...many(21).slice(10)], false],
  ['a key in both forms', [inJson({ k: 'v' }), `${X}Metadata-k: w`], false],
  ['two fields in JSON', [inJson({ k: 'v' }), inJson({ l: 'w' })], false],
  ['__proto__ in JSON', [`${X}Metadata: {"__proto__": "p"}`], true],
  ['a key of 40 wide characters in JSON', [inJson({ ['\u{1f600}'.repeat(40)]: 'v' })], true],
  ['a key of 41 in JSON', [inJson({ ['k'.repeat(41)]: 'v' })], false],
  ['an empty key in JSON', [inJson({ '': 'v' })], false],
  ['a control character in a key of JSON', [`${X}Metadata: {"a\\u0000": "v"}`], false],
  ['a value of 500 in JSON', [inJson({ k: 'v'.repeat(500) })], true],
  ['a value of 501 in JSON', [inJson({ k: 'v'.repeat(501) })], false],
  ['a control character in a value of JSON', [`${X}Metadata: {"k": "\\n"}`], false],
  ['half a character in JSON', [`${X}Metadata: {"k": "\\ud83d"}`], false],
  ['a number in JSON', [inJson({ k: 42 })], false],
  ['null in JSON', [`${X}Metadata: null`], false],
  ['a list in JSON', [`${X}Metadata: ["a"]`], false],
  ['JSON that is cut off', [`${X}Metadata: {"k": "v"`], false],
  ['a field of JSON without a value', [`${X}Metadata:`], false],
  ['JSON of many levels', [`${X}Metadata: ${'[\r\n '.repeat(50_000)}`], false],
  ['an Idempotency-Key of 255', [`${X}Idempotency-Key: ${'i'.repeat(255)}`], true],
  ['an Idempotency-Key of 256', [`${X}Idempotency-Key: ${'i'.repeat(256)}`], false],
  ['an empty Idempotency-Key', [`${X}Idempotency-Key:`], false],
  ['an Idempotency-Key that is no ASCII', [`${X}Idempotency-Key: \xe9`], false],
  ['50 Received', Array.from({ length: 50 }, () => 'Received: x'), true],
]

for (const [name, fields, passes] of BOUNDS) {
  t.test(`submitted-header: ${name} is ${passes ? 'taken' : 'refused'} [submission.control]`, async (t) => {
    const result = readSubmittedHeader(mailOf('From: a@b.co', ...fields))
    t.equal(result.ok, passes)
    if (!result.ok) t.match(result, { problem: 'invalid', text: /^X-Sendwright-/ })
  })
}

t.test('submitted-header: looping mail is reported as such; an ambiguous header is refused', async (t) => {
  const looping = readSubmittedHeader(mailOf('From: a@b.co', ...Array.from({ length: 51 }, () => 'Received: x')))
  t.match(looping, { ok: false, problem: 'loop' })
  for (const line of ['hello', ' fold', 'x'.repeat(999), 'a b: c'])
    t.match(
      readSubmittedHeader(Buffer.from(`${line}\r\nFrom: a@b.co\r\n\r\n`)),
      { ok: false, problem: 'invalid' },
      line,
    )
})

t.test('submitted-header: any bytes get an answer, and the result is the input without whole fields', async (t) => {
  const line = fc.oneof(
    fc.constantFrom('From: a@b.co', 'Bcc: x@y.co', ' folded', `${X}Tag: t`, 'Received: x', '', 'To: ü'),
    fc.string({ maxLength: 30 }),
  )
  const property = fc.property(fc.array(line, { maxLength: 12 }), (lines) => {
    const mail = Buffer.from(lines.join('\r\n'))
    const result = readSubmittedHeader(mail)
    if (!result.ok) return result.text !== ''
    const { edited } = result.header
    const header = edited.toString('latin1').split('\r\n\r\n')[0] ?? ''
    return edited.length <= mail.length && !/^(?:bcc|received|x-sendwright-[^:]*)[ \t]*:/im.test(header)
  })
  t.doesNotThrow(() => fc.assert(property, { numRuns: 2000 }))
})
