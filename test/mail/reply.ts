/** reply - replies as they come, in one line. */

import t from 'tap'
import { capText, formatReply, maskAddress, parseReply, unmaskAddress } from '../../src/mail/reply.ts'

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
  t.match(unmaskAddress('<rcpt> '.repeat(80), 'someone@example.com'), /^(?:someone@example\.com ?){25}$/)
})

/** Replies of servers to ann@example.com, and the stored form. */
const MASKED: readonly (readonly [reply: string, kept: string])[] = [
  ['250 2.1.5 Ok', '250 2.1.5 Ok'],
  ['550 5.1.1 <ann@example.com> unknown', '550 5.1.1 <<rcpt>> unknown'],
  ['550 5.1.1 ann@example.com.', '550 5.1.1 <rcpt>.'],
  ['550 5.1.1 [ann@example.com] unknown', '550 5.1.1 [<rcpt>] unknown'],
  ["550 5.1.1 'ann@example.com' unknown", "550 5.1.1 '<rcpt>' unknown"],
  ['550 5.1.1 rcpt=ann@example.com;', '550 5.1.1 rcpt=<rcpt>;'],
  ['550 5.1.1 «ann@example.com» unbekannt', '550 5.1.1 «<rcpt>» unbekannt'],
  ['550 5.7.1 to=<ANN@Example.COM>,from=<app@acme.com>', '550 5.7.1 to=<<rcpt>>,from=<<address>>'],
  [
    '550 5.1.1 <ann@example.com> (forwarded to ann.private@home.example)',
    '550 5.1.1 <<rcpt>> (forwarded to <address>)',
  ],
  ['554 delivery to bob@x.example failed: mailbox full', '554 delivery to <address> failed: mailbox full'],
  ['551 5.1.6 User not local; please try <ann@new.example>', '551 5.1.6 User not local; please try <<address>>'],
  [
    '251 will forward to <@relay.example,@b.example:ann@new.example>',
    '251 will forward to <@relay.example,@b.example:<address>>',
  ],
  ['550 joann@example.com is another', '550 <address> is another'],
  ['550 ann@example.com.au is another', '550 <address> is another'],
  ['550 x.ann@example.com is another', '550 <address> is another'],
  ['550 éann@example.com is another', '550 <address> is another'],
  ['550 5.1.1 "ann smith"@home.example unknown', '550 5.1.1 <address> unknown'],
  ['550 5.1.1 "a\\"b"@home.example unknown', '550 5.1.1 <address> unknown'],
  ["550 5.1.1 o'brien@home.example unknown", '550 5.1.1 <address> unknown'],
  ['550 ann@[192.0.2.1] unknown', '550 <address> unknown'],
  ['550 ann@[IPv6:2001:db8::1] unknown', '550 <address> unknown'],
  ['550 unknown: ann@intranet', '550 unknown: <address>'],
  ['550 用户@例子.example 不存在', '550 <address> 不存在'],
  ['550 bounce+ann=home.example@lists.example', '550 <address>'],
  ['550 SRS0=abcd=xy=home.example=ann@fwd.example refused', '550 <address> refused'],
  ['550 see https://help.example/?to=ann%40home.example&code=5', '550 see https://help.example/?<address>&code=5'],
  ['550 rfc822;ann+40home.example', '550 rfc822;<address>'],
  ['550 ask postmaster (at) home.example', '550 ask <address>'],
  ['550 ask postmaster[at]home.example', '550 ask <address>'],
  ['250 2.6.0 <01a1@acme.com> [InternalId=7] Queued', '250 2.6.0 <<address>> [InternalId=7] Queued'],
  ['550 mailto:ann@home.example', '550 mailto:<address>'],
  ['552 limit=4096000 bytes, score=40', '552 limit=4096000 bytes, score=40'],
  ['450 4.2.0 at @ noon', '450 4.2.0 at @ noon'],
  ['450 4.2.0 <<rcpt>>: ask <<address>>', '450 4.2.0 <<rcpt>>: ask <<address>>'],
]

t.test('reply: anything like an address is masked, and only the recipient’s own can be restored', async (t) => {
  for (const [reply, kept] of MASKED) {
    t.equal(maskAddress(reply, 'ann@example.com'), kept)
    t.equal(maskAddress(kept, 'ann@example.com'), kept, 'once is enough')
    t.equal(maskAddress(kept, ''), kept)
    t.notMatch(maskAddress(reply, ''), /ann@|@example|home\.example$/i)
  }
})

t.test('reply: a cut leaves no half of an address', async (t) => {
  for (let before = 480; before < 515; before += 1) {
    const line = capText(`550 ${'x'.repeat(before - 4)} <jane.doe@home.example> unknown`)
    const kept = maskAddress(line, 'ann@example.com')
    t.ok(kept.length <= 512)
    t.notMatch(kept, /jane|doe|home/, String(before))
  }
})

t.test('reply: the worst of texts are masked in no time', async (t) => {
  for (const text of ['a@', '@', '"', 'a%40', '\\"', 'a(at)', '=40.', '[at]a.'])
    t.ok(maskAddress(text.repeat(512), 'ann@example.com').length >= 0)
})
