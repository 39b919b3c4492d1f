/** header-text - unfolding, encoded words (the examples of RFC 2047 8 too), controls, cuts. */
import t from 'tap'
import { cutValue, decodeWords, stripText, stripValue, unfold } from '../../../src/mail/mime/header-text.ts'
import { cpuMsOf } from '../../support/machine/cpu-time.ts'

const WORDS: [string, string][] = [
  ['no words', 'no words'],
  // RFC 2047 8
  ['=?ISO-8859-1?Q?a?=', 'a'],
  ['=?ISO-8859-1?Q?a?= b', 'a b'],
  ['=?ISO-8859-1?Q?a?= =?ISO-8859-1?Q?b?=', 'ab'],
  ['=?ISO-8859-1?Q?a?=  =?ISO-8859-1?Q?b?=', 'ab'],
  ['=?ISO-8859-1?Q?a_b?=', 'a b'],
  ['=?ISO-8859-1?Q?a?= =?ISO-8859-2?Q?_b?=', 'a b'],
  ['=?US-ASCII?Q?Keith_Moore?= <moore@cs.utk.edu>', 'Keith Moore <moore@cs.utk.edu>'],
  [
    '=?ISO-8859-1?B?SWYgeW91IGNhbiByZWFkIHRoaXMgeW8=?= =?ISO-8859-2?B?dSB1bmRlcnN0YW5kIHRoZSBleGFtcGxlLg==?=',
    'If you can read this you understand the example.',
  ],
  // RFC 2231 5
  ['=?US-ASCII*EN?Q?Keith_Moore?=', 'Keith Moore'],
  // A character cut in two, in both encodings.
  ['=?utf-8?q?=C3?= =?utf-8?q?=A4?=', 'ä'],
  ['=?utf-8?b?ww==?= =?UTF-8?B?pA==?=', 'ä'],
  ['=?utf-8?b?w6?= =?utf-8?b?Q=?=', 'ä'],
  ['a =?utf-8?q?b?= c =?utf-8?q?d?=', 'a b c d'],
  ['(=?utf-8?q?b?=)', '(b)'],
  ['=?utf-8?q?with blanks?=', 'with blanks'],
  ['=?utf-8?q?ä=20?=', 'ä '],
  ['=?utf-8?q?=ZZ=?=', '=ZZ='],
  ['=?utf-8?x?a?=', '=?utf-8?x?a?='],
  ['=?utf-8?q?a', '=?utf-8?q?a'],
  // Each word of a charset with escapes begins and ends by itself, whether its writer ends it or not.
  ['=?iso-2022-jp?B?GyRCJUYlOSVIGyhC?= =?ISO-2022-JP?B?GyRCJUYlOSVIGyhC?=', 'テストテスト'],
  ['=?iso-2022-jp?B?GyRCJUYlOSVI?= =?iso-2022-jp?B?YWI=?=', 'テストab'],
  ['=?hz-gb-2312?q?~{VP?= =?hz-gb-2312?q?~{ND~}?=', '中文'],
  ['=?nobody-knows?q?=E4?=', 'ä'],
]

t.test('header-text: encoded words', async (t) => {
  for (const [written, read] of WORDS) t.equal(decodeWords(written), read, written)
})

t.test('header-text: a fold is one space; 8 bits are UTF-8 or windows-1252', async (t) => {
  t.equal(unfold(Buffer.from(' a\r\n\tb\r\n  c\n d ')), 'a b  c d')
  t.equal(unfold(Buffer.from('ä')), 'ä')
  t.equal(unfold(Buffer.from([0x93, 0x61, 0x94])), '“a”')
})

t.test('header-text: controls are removed, and that is reported', async (t) => {
  t.same(stripValue('a\x00\n\r\x7f\x9fb\tc'), { text: 'ab\tc', isChanged: true })
  t.same(stripValue('a\tb\xa0'), { text: 'a\tb\xa0', isChanged: false })
  t.same(stripText('a\r\nb\rc\n\td'), { text: 'a\nb\nc\n\td', isChanged: false })
  t.same(stripText('a\x0c\x0b\r\nb'), { text: 'a\nb', isChanged: true })
})

t.test('header-text: a cut is between characters', async (t) => {
  t.same(cutValue('😀'.repeat(3), 2), { text: '😀😀', isChanged: true })
  t.same(cutValue('😀'.repeat(2), 2), { text: '😀😀', isChanged: false })
  t.equal(cutValue('a'.repeat(2001)).text.length, 2000)
})

t.test('header-text: hostile values cost what others cost', async (t) => {
  for (const piece of ['=?', '=?a?b?', '=?utf-8?q?', '=?utf-8?q??= ', '=?x?q?=E4?=', '? '])
    t.ok((await cpuMsOf(() => decodeWords(piece.repeat(Math.floor(262_144 / piece.length))))) < 2000, piece)
})
