/** judge - what a session reports, as an outcome. */

import t from 'tap'
import type { Sent } from '../../../src/outbound/thread/converse.ts'
import { judgeSent } from '../../../src/outbound/thread/judge.ts'

type Row = [sent: Sent, result: string, code: number | null, classification: string | null, response: string]
const failed = (
  kind: 'reply' | 'lost' | 'timeout' | 'handshake' | 'too-large' | 'abort' | 'fence',
  phase: 'conn' | 'mail' | 'rcpt' | 'dot' | 'abort' | 'fence',
  text: string,
): Sent => ({
  ok: false,
  failure: { kind, phase, text },
})
const ROWS: Row[] = [
  [{ ok: true, reply: '250-2.0.0 a\r\n250 2.0.0 b' }, 'delivered', 250, null, '250 2.0.0 a b'],
  [failed('reply', 'rcpt', '550 5.1.1 no such user'), 'bounced', 550, 'InvalidRecipient', '550 5.1.1 no such user'],
  [failed('reply', 'conn', '554 5.7.1 policy'), 'deferred', 554, 'PolicyRelated', '554 5.7.1 policy'],
  [failed('reply', 'conn', '556 null mx'), 'deferred', 556, 'BadDomain', '556 null mx'],
  [failed('lost', 'dot', 'connection closed'), 'deferred', null, 'BadConnection', 'connection closed mx[192.0.2.1]:25'],
  [failed('timeout', 'mail', 'timeout at mail'), 'deferred', null, 'BadConnection', 'timeout at mail mx[192.0.2.1]:25'],
  [failed('handshake', 'conn', 'failed'), 'deferred', null, 'BadConnection', 'failed mx[192.0.2.1]:25'],
  [
    failed('too-large', 'mail', 'EMESSAGE'),
    'bounced',
    null,
    'ContentRelated',
    '5.3.4 message is larger than the receiving server takes',
  ],
  [failed('abort', 'abort', 'cut off'), 'returned', null, null, '4.3.2 cut off'],
  [failed('fence', 'fence', 'held back'), 'returned', null, null, '4.3.2 held back'],
]
for (const [sent, result, code, classification, response] of ROWS) {
  t.test(`judge: ${JSON.stringify(sent)}`, async (t) => {
    const outcome = judgeSent(sent, 'mx[192.0.2.1]:25')
    t.match(outcome, { result, code, classification, response, expired: false })
    t.equal(outcome.hard, classification === 'InvalidRecipient')
  })
}
