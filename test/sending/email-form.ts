/**
 * Tests of src/sending/email-form.ts: each field rule of a send at, below and above its bound, and the one form of a
 * message.
 */

import { test } from 'tap'
import { EMAIL_BODY, type EmailBody } from '../../schemas/email.ts'
import { toWellFormed } from '../../src/http/shape/text.ts'
import { compileBody } from '../../src/http/shape/validate.ts'
import { canonicalJson, computeFingerprint, normaliseEmail } from '../../src/sending/email-form.ts'

const check = compileBody<EmailBody>(EMAIL_BODY)
const BASE = { from: 'a@example.com', to: ['b@example.com'], subject: 'S', text: 'T' }
const FILE = { name: 'f', content: 'QQ==' }
/** One code point in two UTF-16 units. */
const WIDE = '\u{1F600}'

function addresses(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `r${index}@example.com`)
}

function entries(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`x-${index}`, 'v']))
}

function file(fields: object): object {
  return { attachments: [{ ...FILE, ...fields }] }
}

/** Rule, valid values, refused values, the one path of the refusal. */
const BOUNDS: readonly (readonly [string, readonly object[], readonly object[], string])[] = [
  ['send.address', [{ from: 'A@Example.COM' }], [{ from: '' }, { from: 'a' }, { from: 7 }, { from: null }], 'from'],
  ['send.address', [{ from: { email: 'a@b.co' } }], [{ from: { email: 'a@b' } }, { from: { email: 1 } }], 'from.email'],
  ['send.address', [], [{ from: {} }, { from: { name: 'n' } }], 'from.email'],
  ['send.address', [], [{ from: { email: 'a@b.co', x: 1 } }], 'from.x'],
  [
    'send.address',
    [null, 'n', 'n'.repeat(200), WIDE.repeat(200)].map((name) => ({ from: { email: 'a@b.co', name } })),
    ['', 'n'.repeat(201), WIDE.repeat(201), 5].map((name) => ({ from: { email: 'a@b.co', name } })),
    'from.name',
  ],
  [
    'send.recipients',
    [{ to: addresses(1) }, { to: addresses(50) }],
    [{ to: [] }, { to: addresses(51) }, { to: 'a@b.co' }],
    'to',
  ],
  ['send.recipients', [{ cc: [] }, { cc: addresses(49) }], [{ cc: addresses(50) }, { cc: addresses(51) }], 'to'],
  [
    'send.recipients',
    [{ bcc: addresses(49) }],
    [{ bcc: addresses(50) }, { cc: addresses(25), bcc: addresses(25) }],
    'to',
  ],
  ['send.recipients', [], [{ to: ['b@example.com', 'b@'] }], 'to.1'],
  ['send.recipients', [], [{ cc: [{ email: 'x' }] }], 'cc.0.email'],
  ['send.recipients', [], [{ bcc: [{ email: 'a@b.co', name: '' }] }], 'bcc.0.name'],
  ['send.recipients', [], [{ bcc: [[]] }, { bcc: [null] }, { bcc: [3] }], 'bcc.0'],
  [
    'send.subject',
    ['s', 's'.repeat(998), WIDE.repeat(998), '\r\n\t'].map((subject) => ({ subject })),
    ['', 's'.repeat(999), WIDE.repeat(999), '\0', '\ud800', null].map((subject) => ({ subject })),
    'subject',
  ],
  ['send.body', [{ text: 't' }, { text: '\r\n' }], [{ text: '' }, { text: 'a\0b' }, { text: 'x\udc00' }], 'text'],
  ['send.body', [{ html: 'h' }, { text: undefined, html: 'h' }], [{ html: '' }, { html: '\0' }, { html: [] }], 'html'],
  ['send.body', [], [{ text: undefined }], 'text'],
  [
    'send.stream',
    [{ streamId: '01890c5a-0000-7000-8000-0123456789ab' }, { streamId: '01890C5A-0000-7000-8000-0123456789AB' }],
    [{ streamId: '' }, { streamId: 'x' }, { streamId: null }, { streamId: '01890c5a000070008000-0123456789ab' }],
    'streamId',
  ],
  [
    'send.headers',
    [{ headers: {} }, { headers: entries(20) }],
    [{ headers: entries(21) }, { headers: [] }, { headers: null }],
    'headers',
  ],
  [
    'send.headers',
    ['v', 'v'.repeat(998), WIDE.repeat(998), 'ü'].map((value) => ({ headers: { 'X-A': value } })),
    ['', 'v'.repeat(999), 'a\nb', 'a\tb', 'a\u007fb', 'a\u0080b', 'a\0b', 1].map((value) => ({
      headers: { 'X-A': value },
    })),
    'headers.X-A',
  ],
  ...['n'.repeat(76), '!', '~', 'Reply-To', 'List-Id', 'X-Sendwrigh', 'Fromm', 'Contents'].map(
    (name) => ['send.headers', [{ headers: { [name]: 'v' } }], [], ''] as const,
  ),
  ...[
    ...['n'.repeat(77), '', 'a b', 'a:', 'ü', 'a\r\n'],
    ...[
      'From',
      'SENDER',
      'to',
      'Cc',
      'Bcc',
      'Subject',
      'Date',
      'Message-ID',
      'MIME-Version',
      'Return-Path',
      'Received',
    ],
    ...['Delivered-To', 'DKIM-Signature', 'DomainKey-Signature', 'Authentication-Results', 'Received-SPF'],
    ...['Content-Type', 'content-', 'Resent-From', 'ARC-Seal', 'X-Sendwright-Id', 'x-sendwright-'],
  ].map((name) => ['send.headers', [], [{ headers: { [name]: 'v' } }], `headers.${name}`] as const),
  [
    'send.attachments',
    [{ attachments: [] }, { attachments: Array.from({ length: 20 }, () => FILE) }],
    [{ attachments: Array.from({ length: 21 }, () => FILE) }, { attachments: {} }],
    'attachments',
  ],
  ['send.attachments', [], [{ attachments: [3] }], 'attachments.0'],
  [
    'send.attachments',
    ['f', 'f'.repeat(255), WIDE.repeat(255), ' .'].map((name) => file({ name })),
    ['', 'f'.repeat(256), 'a/b', 'a\\b', 'a\nb', 'a\u0085', 'a\0', undefined].map((name) => file({ name })),
    'attachments.0.name',
  ],
  [
    'send.attachments',
    ['', 'QQ==', 'QUI=', 'QUJD', 'ab+/'].map((content) => file({ content })),
    ['Q', 'QQ', 'QQ=', 'Q===', '====', 'QQ==QQ==', 'QU JD', 'QUJD\n', 'ab-_', 'QQ==\0', 1, undefined].map((content) =>
      file({ content }),
    ),
    'attachments.0.content',
  ],
  [
    'send.attachments',
    [`${'a'.repeat(127)}/${'b'.repeat(127)}`, 'a/b', '1/2', 'a/x!#$&^_.+-'].map((contentType) => file({ contentType })),
    [
      `${'a'.repeat(128)}/b`,
      `a/${'b'.repeat(128)}`,
      'A/b',
      'a',
      'a/',
      '/b',
      'a/b;c',
      '.a/b',
      'a/+b',
      'a/b\n',
      null,
    ].map((contentType) => file({ contentType })),
    'attachments.0.contentType',
  ],
  [
    'send.attachments',
    [null, 'c', 'c'.repeat(255), WIDE.repeat(255)].map((contentId) => file({ contentId })),
    ['', 'c'.repeat(256), 'a b', '<a', 'a>', 'a\u00a0b', 'a\u0080'].map((contentId) => file({ contentId })),
    'attachments.0.contentId',
  ],
  ['send.attachments', [], [file({ disposition: 'inline' })], 'attachments.0.disposition'],
  [
    'send.tag',
    [null, 't', 't'.repeat(100), WIDE.repeat(100)].map((tag) => ({ tag })),
    ['', 't'.repeat(101), WIDE.repeat(101), 'a\nb', 'a\u009f', 1].map((tag) => ({ tag })),
    'tag',
  ],
  [
    'send.metadata',
    [{ metadata: {} }, { metadata: entries(20) }],
    [{ metadata: entries(21) }, { metadata: 'x' }],
    'metadata',
  ],
  [
    'send.metadata',
    ['', 'v'.repeat(500), WIDE.repeat(500)].map((value) => ({ metadata: { k: value } })),
    ['v'.repeat(501), WIDE.repeat(501), 'a\nb', null, 1].map((value) => ({ metadata: { k: value } })),
    'metadata.k',
  ],
  ['send.metadata', [{ metadata: { ['k'.repeat(40)]: 'v' } }, { metadata: { [WIDE.repeat(40)]: 'v' } }], [], ''],
  ...['k'.repeat(41), '', 'a\nb', 'a\0', '\udfff'].map(
    (name) => ['send.metadata', [], [{ metadata: { [name]: 'v' } }], `metadata.${name}`] as const,
  ),
  ['request.unknown', [], [{ streamID: 'x' }], 'streamID'],
]

for (const [rule, passing, refused, path] of BOUNDS) {
  test(`email: ${path === '' ? 'what passes' : path} [${rule}]`, async (t) => {
    for (const fields of passing) t.equal(check(copyOf(fields)).ok, true, shorten(fields))
    for (const fields of refused) {
      const checked = check(copyOf(fields))
      // A refusal holds no lone surrogate of the request.
      t.same(checked.ok ? [] : checked.issues.map((issue) => issue.path), [toWellFormed(path)], shorten(fields))
    }
  })
}

test('email: a body that is no object is wrong as a whole [error.issues]', async (t) => {
  for (const value of [null, [], 'x', 1, true, [[]]]) {
    const checked = check(value)
    t.same(checked.ok ? [] : checked.issues.map((issue) => issue.path), [''])
  }
})

test('email: a message has one form whatever the body looked like [send.normal]', async (t) => {
  t.same(normaliseEmail(valid(BASE)), {
    streamId: null,
    from: { address: 'a@example.com', domain: 'example.com', name: null },
    recipients: [{ address: 'b@example.com', name: null, kind: 'to' }],
    subject: 'S',
    text: 'T',
    html: null,
    headers: {},
    attachments: [],
    tag: null,
    metadata: {},
    raw: null,
    sendAtMs: null,
  })
  const whole = normaliseEmail(
    valid({
      streamId: '0193B2A4-6C00-7017-8000-0123456789AB',
      from: { email: 'Ann@EXAMPLE.com', name: 'A\r\nB' },
      to: [{ email: 'Bob@Example.com', name: ' Bob ' }],
      cc: ['C@example.com'],
      subject: 'a\r\n\tb\u0085c\u007f',
      html: '<b>',
      headers: { 'X-A': '1' },
      attachments: [
        { name: 'a', content: 'QUI=', contentType: 'text/plain', contentId: 'c' },
        { name: 'b', content: '' },
      ],
      tag: 't',
      metadata: { k: 'v' },
    }),
  )
  t.same(whole.from, { address: 'Ann@example.com', domain: 'example.com', name: 'A  B' })
  t.same(whole.recipients, [
    { address: 'Bob@example.com', name: ' Bob ', kind: 'to' },
    { address: 'C@example.com', name: null, kind: 'cc' },
  ])
  t.equal(whole.streamId, '0193b2a4-6c00-7017-8000-0123456789ab')
  t.equal(whole.subject, 'a   b c ')
  t.same(whole.attachments, [
    { name: 'a', contentType: 'text/plain', contentId: 'c', content: 'QUI=', size: 2 },
    { name: 'b', contentType: null, contentId: null, content: '', size: 0 },
  ])
  t.same([whole.headers, whole.tag, whole.metadata], [{ 'X-A': '1' }, 't', { k: 'v' }])
})

test('email: one address is one recipient, the first of to, cc, bcc [send.recipients.once]', async (t) => {
  const { recipients } = normaliseEmail(
    valid({
      ...BASE,
      bcc: ['X@example.com', 'd@example.com'],
      cc: [{ email: 'x@EXAMPLE.com', name: 'second' }, 'c@example.com'],
      to: ['c@Example.com', { email: 'C@example.com', name: 'again' }],
    }),
  )
  t.same(recipients, [
    { address: 'c@example.com', name: null, kind: 'to' },
    { address: 'x@example.com', name: 'second', kind: 'cc' },
    { address: 'd@example.com', name: null, kind: 'bcc' },
  ])
})

test('email: a name of the language is a name like any other [send.metadata]', async (t) => {
  const body = JSON.parse(JSON.stringify(BASE).replace('}', ',"metadata":{"__proto__":"x","constructor":"y"}}'))
  const { metadata } = normaliseEmail(valid(body))
  t.same(Object.entries(metadata), [
    ['__proto__', 'x'],
    ['constructor', 'y'],
  ])
})

test('email: the fingerprint knows no key order and no default that was written out [request.idempotency]', async (t) => {
  const plain = computeFingerprint('/v1/email', valid(BASE))
  const { subject, ...rest } = BASE
  t.equal(computeFingerprint('/v1/email', valid({ subject, ...rest })), plain)
  t.equal(computeFingerprint('/v1/email', valid({ ...BASE, tag: null, headers: {}, metadata: {} })), plain)
  t.not(computeFingerprint('/v1/email/batch', valid(BASE)), plain)
  t.not(computeFingerprint('/v1/email', valid({ ...BASE, text: 'U' })), plain)
  t.match(plain, /^[0-9a-f]{64}$/)
  t.equal(canonicalJson({ b: [1, { d: null, c: '"' }], a: true }), '{"a":true,"b":[1,{"c":"\\"","d":null}]}')
})

function valid(body: object): EmailBody {
  const checked = check(structuredClone(body))
  if (!checked.ok) throw new Error(`Not valid: ${JSON.stringify(checked.issues)}`)
  return checked.value
}

/** As a client's body arrives: parsed JSON, fields that are undefined gone. */
function copyOf(fields: object): unknown {
  return JSON.parse(JSON.stringify({ ...BASE, ...fields }))
}

function shorten(fields: object): string {
  return JSON.stringify(fields).slice(0, 80)
}
