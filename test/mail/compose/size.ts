/** size - the bound holds for the contents that compress worst, and is as tight as its rule. */

import t from 'tap'
import { MESSAGE_BYTES_MAX } from '../../../schemas/limits.ts'
import { composeMessage } from '../../../src/mail/compose/compose.ts'
import { mayBeTooLarge, upperBoundBytes } from '../../../src/mail/compose/size.ts'

t.test('size: the bound follows its rule', async (t) => {
  t.equal(upperBoundBytes({ text: null, html: null, attachmentBytes: [] }), 524_288)
  t.equal(upperBoundBytes({ text: 'ü', html: 'abc', attachmentBytes: [] }), 524_288 + 16)
  t.equal(upperBoundBytes({ text: null, html: null, attachmentBytes: [57, 58, 0] }), 524_288 + 78 + 84)
  t.equal(MESSAGE_BYTES_MAX, 10 * 1024 * 1024)
})

t.test('size: a message that exceeds the maximum only by its bound must be built', async (t) => {
  const attachmentBytes = (MESSAGE_BYTES_MAX - 524_288) * (57 / 78)
  t.notOk(mayBeTooLarge({ text: null, html: null, attachmentBytes: [Math.floor(attachmentBytes) - 100] }))
  t.ok(mayBeTooLarge({ text: null, html: null, attachmentBytes: [Math.ceil(attachmentBytes) + 100] }))
})

t.test('size: an attached mail is within its bound, whatever happens to its line ends', async (t) => {
  for (const unit of ['\n', 'a\n', 'ab\n', 'abc\n', 'abcd\r\n']) {
    const content = Buffer.from(unit.repeat(20_000))
    const built = composeMessage({
      messageId: 'm',
      acceptedAtMs: 0,
      from: { address: 'a@b.test', name: null },
      to: [{ address: 'a@b.test', name: null }],
      cc: [],
      subject: 's',
      text: null,
      html: null,
      headers: {},
      attachments: [{ name: 'a.eml', contentType: 'message/rfc822', contentId: null, content }],
      boundarySeed: 'b',
    })
    const bodyBound = upperBoundBytes({ text: null, html: null, attachmentBytes: [content.length] }) - 524_288
    t.ok(built.length < bodyBound + 2000, `${JSON.stringify(unit)}: ${built.length} against ${bodyBound}`)
  }
})

const WORST = {
  equals: '=',
  'two bytes': 'ü',
  'e acute and dots': 'é.',
  'three bytes and a letter': '請aaaa',
  controls: '\u0001',
  emoji: '🎉bbbbb',
}
for (const [name, unit] of Object.entries(WORST)) {
  t.test(`size: no message is larger than its bound, of ${name}`, async (t) => {
    const text = unit.repeat(20_000)
    const attachments = [{ name: 'a', contentType: null, contentId: null, content: Buffer.alloc(1000) }]
    const built = composeMessage({
      messageId: 'm',
      acceptedAtMs: 0,
      from: { address: 'a@b.test', name: null },
      to: [{ address: 'a@b.test', name: null }],
      cc: [],
      subject: 's',
      text,
      html: text,
      headers: {},
      attachments,
      boundarySeed: 'b',
    })
    // Without the reserve for headers, which is far larger than these headers: the body's part of the bound must be
    // enough.
    const bodyBound = upperBoundBytes({ text, html: text, attachmentBytes: [1000] }) - 524_288
    t.ok(built.length < bodyBound + 2000, `${built.length} against ${bodyBound}`)
  })
}
