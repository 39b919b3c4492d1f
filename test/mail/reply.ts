/** reply - replies as they come, in one line. */

import t from 'tap'
import { capText, formatReply, maskAddress, maskAddresses, parseReply, unmaskAddress } from '../../src/mail/reply.ts'

const LINES: [raw: string, line: string][] = [
  ['250 2.0.0 OK', '250 2.0.0 OK'],
  ['554-5.7.1 a\r\n554-5.7.1 b\r\n554 5.7.1 c', '554 5.7.1 a b c'],
  ['550-first\n550 second', '550 first second'],
  ['550-5.7.1 first\n550 5.1.1 second', '550 5.7.1 first 5.1.1 second'],
  ['250', '250'],
  ['250-\n250 ', '250'],
  ['  hello\tthere\u0007 ', 'hello there'],
  ['550 5.1.1', '550 5.1.1'],
  ['421-4.7.0 [192.0.2.1]\n421 4.7.0 5 times', '421 4.7.0 [192.0.2.1] 5 times'],
  ['', ''],
]
for (const [raw, line] of LINES) {
  t.test(`reply: ${JSON.stringify(raw)}`, async (t) => t.equal(formatReply(raw), line))
}

t.test('reply: the cap is 512 characters and leaves no half character', async (t) => {
  t.equal(formatReply(`550 ${'x'.repeat(100_000)}`).length, 512)
  t.equal(capText('🎉'.repeat(300)), '🎉'.repeat(256))
  t.equal(capText(`x${'🎉'.repeat(300)}`), `x${'🎉'.repeat(255)}`)
})

const PARSED: [line: string, code: number | null, enhanced: string | null, text: string][] = [
  ['550 5.1.1 no such user', 550, '5.1.1', 'no such user'],
  ['550 no such user 5.1.1', 550, null, 'no such user 5.1.1'],
  ['450', 450, null, ''],
  ['5501 x', null, null, '5501 x'],
  ['hello', null, null, 'hello'],
  ['950 5.1.1 x', null, null, '950 5.1.1 x'],
]
for (const [line, code, enhanced, text] of PARSED) {
  t.test(`reply: ${line} parsed`, async (t) => t.same(parseReply(line), { code, enhanced, text }))
}

t.test('reply: the address is masked in any case and put back', async (t) => {
  const line = '550 5.1.1 <Ann.B@Example.com>: no ann.b@example.com here'
  const masked = maskAddress(line, 'ann.b@example.com')
  t.equal(masked, '550 5.1.1 <<rcpt>>: no <rcpt> here')
  t.equal(unmaskAddress(masked, 'ann.b@example.com'), line.toLowerCase().replace('<ann', '<ann'))
  t.notMatch(maskAddress('İ ann@example.com', 'ann@example.com'), /ann@/)
  t.equal(maskAddress('550 nothing', ''), '550 nothing')
  t.equal(unmaskAddress('<rcpt> '.repeat(80), 'someone@example.com').length, 512)
})

t.test('reply: all that looks like an address is masked', async (t) => {
  t.equal(
    maskAddresses('450 4.2.0 <ann@late.test>: ask bob@x.example, <<rcpt>>'),
    '450 4.2.0 <<rcpt>>: ask <rcpt>, <<rcpt>>',
  )
  t.equal(maskAddresses('450 4.2.0 at @ noon'), '450 4.2.0 at @ noon')
})
