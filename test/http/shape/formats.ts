/** Tests of src/edge/formats.ts and src/edge/text.ts. */

import { test } from 'tap'

import { FORMATS } from '../../../src/http/shape/formats.ts'
import { isForbidden, isLonger, isShorter } from '../../../src/http/shape/text.ts'

/** Format, rule, valid values, invalid ones. */
const CASES: readonly (readonly [string, string, readonly string[], readonly string[]])[] = [
  [
    'sending-domain',
    'domain.add',
    ['acme.com', 'mail.acme.co.uk', 'Acme.CO.UK', 'acme.test', 'a.acme.internal', 'acme.github.io'],
    [
      '',
      'com',
      'co.uk',
      'CO.UK',
      'github.io',
      'acme',
      'acme.com.',
      '.acme.com',
      'a_b.com',
      '1.2.3.4',
      'acme.xn--p1ai',
      'ä.com',
    ],
  ],
  [
    'uuid',
    'id.uuid',
    ['01890c5a-0000-7000-8000-0123456789ab', '01890C5A-0000-7000-8000-0123456789AB'],
    [
      '',
      '01890c5a-0000-7000-8000-0123456789a',
      '01890c5a-0000-7000-8000-0123456789abc',
      'g1890c5a-0000-7000-8000-0123456789ab',
    ],
  ],
  [
    'webhook-url',
    'webhook.url',
    [
      'https://acme.com',
      'HTTPS://Acme.com:8443/a/b;c=1/%C3%A9?x=1&y=a/b?#'.slice(0, -1),
      'https://xn--bcher-kva.example/',
      'https://[2606:4700:4700::1111]:443/',
      'https://a_b.example/@here',
      'https://acme.com?x',
      'https://acme.com:/',
      'https://me:pass@acme.com/',
    ],
    [
      '',
      'http://acme.com/',
      'https:acme.com',
      'https:///acme.com',
      'https:\\\\acme.com/',
      ' https://acme.com/',
      'https://acme.com/ ',
      'https://ac\tme.com/',
      'https://bücher.example/',
      'https://acme.com/é',
      'https://acme.com/a b',
      'https://acme.com/a\\b',
      'https://acme.com/?a[]=1',
      'https://acme.com/%zz',
      'https://acme.com/#',
      'https://acme.com:65536/',
      'https://1.2.3.456/',
      'https://[::1',
      `https://acme.com/${'x'.repeat(2048)}`,
    ],
  ],
]

for (const [name, rule, passing, failing] of CASES) {
  test(`formats: ${name} [${rule}]`, async (t) => {
    for (const text of passing) t.equal(FORMATS[name]?.test(text), true, text)
    for (const text of failing) t.equal(FORMATS[name]?.test(text), false, text)
  })
}

test('formats: base64 of 10 MB is looked at in one pass, wherever it is wrong [send.attachments]', async (t) => {
  const right = 'QUJD'.repeat(2_600_000)
  t.equal(FORMATS.base64?.test(right), true)
  t.equal(FORMATS.base64?.test(`${right}====`), false)
  t.equal(FORMATS.base64?.test(`${right.slice(0, 5_000_000)}=${right.slice(0, 4_999_999)}`), false)
})

test('text: lengths count code points [text.length]', async (t) => {
  const wide = '\u{1F600}'
  t.same([isLonger(wide.repeat(5), 5), isLonger(wide.repeat(6), 5), isLonger('x'.repeat(6), 5)], [false, true, true])
  t.same([isLonger('', 0), isLonger('x', 0)], [false, true])
  t.same(
    [isShorter(wide, 1), isShorter('', 1), isShorter(wide, 2), isShorter(wide.repeat(2), 2)],
    [false, true, true, false],
  )
})

test('text: U+0000 and lone surrogates [text.forbidden]', async (t) => {
  for (const text of ['\0', 'a\0b', '\ud800', 'a\udc00', '\udc00\ud800']) t.equal(isForbidden(text), true)
  for (const text of ['', 'a', '\u{1F600}', '\u0001', '\ufffd', '\uffff']) t.equal(isForbidden(text), false)
})
