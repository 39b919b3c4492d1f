/** raw - a raw message: the fields added in front, their maximum size, and that its own bytes stay. */

import t from 'tap'
import { formatFeedbackId } from '../../../src/mail/compose/feedback-id.ts'
import { composeRaw, formatReceived, type RawInput } from '../../../src/mail/compose/raw.ts'
import { RAW_ADDED_BYTES_MAX } from '../../../src/mail/compose/size.ts'

const MESSAGE_ID = '01a1f8d8-8300-7000-8000-000000000001'
const DATE = 'Tue, 14 Nov 2023 22:13:20 +0000'
const input = (raw: string, domain = 'acme.test'): RawInput => ({
  messageId: MESSAGE_ID,
  acceptedAtMs: 1_700_000_000_000,
  from: { address: `shop@${domain}`, name: null },
  feedbackId: 't:s:a:sw',
  receivedBy: 'mail.service.test',
  raw: Buffer.from(raw, 'latin1'),
})

/** The fields of a client's message, and the names of the fields added in front. */
const CASES: readonly (readonly [fields: readonly string[], added: readonly string[]])[] = [
  [['From: a'], ['Feedback-ID', 'Date', 'Message-ID', 'MIME-Version']],
  [['From: a', 'Date: x', 'Message-ID: <a@b>', 'MIME-Version: 1.0'], ['Feedback-ID']],
  [['FROM: a', 'DATE : x', 'message-id:\r\n <a@b>', 'Mime-Version: 1.0', 'feedback-id: q'], []],
]

for (const [fields, added] of CASES) {
  t.test(`raw: ${fields.join(', ')}`, async (t) => {
    const raw = `${fields.join('\r\n')}\r\n\r\nDate: body \xe9\r\n..\r\n`
    const built = composeRaw(input(raw)).toString('latin1')
    t.ok(built.endsWith(raw), 'the client’s bytes as they are')
    const own = built.slice(0, -raw.length)
    t.same(own.match(/^[\w-]+(?=: )/gm), ['X-Sendwright-Id', ...added])
    t.match(own, `X-Sendwright-Id: ${MESSAGE_ID}\r\n`)
    if (added.includes('Date')) t.match(own, `\r\nDate: ${DATE}\r\n`)
    if (added.includes('Message-ID')) t.match(own, `\r\nMessage-ID: <${MESSAGE_ID}@acme.test>\r\n`)
    t.same(composeRaw(input(raw)), composeRaw(input(raw)), 'the same again')
  })
}

t.test('raw: the longest addition is within its bound', async (t) => {
  const ids = { tagHash: 'f'.repeat(8), streamId: MESSAGE_ID, accountId: MESSAGE_ID, senderId: 's'.repeat(15) }
  const domain = `${'a.'.repeat(125)}com`
  const raw = 'From: a\r\n\r\n'
  const built = composeRaw({ ...input(raw, domain), feedbackId: formatFeedbackId(ids) })
  t.equal(domain.length, 253)
  t.ok(built.length - raw.length <= RAW_ADDED_BYTES_MAX, String(built.length - raw.length))
})

t.test('raw: Received names the receiver, the id and the time, and not the sender', async (t) => {
  t.equal(
    formatReceived(input('From: a\r\n\r\n')),
    `Received: by mail.service.test (Sendwright) with ESMTPSA\r\n id ${MESSAGE_ID}; ${DATE}\r\n`,
  )
})
