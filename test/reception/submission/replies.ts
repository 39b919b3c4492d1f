/**
 * replies - the table of replies to a client: every refusal of a send, every end of an ask, and the library's own
 * replies.
 */

import t from 'tap'
import type { RefusalCode } from '../../../schemas/refusals.ts'
import {
  answerRefusal,
  answerSubmission,
  codeOfReply,
  correctReply,
  invalidMessage,
} from '../../../src/reception/submission/replies.ts'

const EXTRA = {
  scope: 'account',
  limit: 300,
  used: 299,
  requested: 2,
  resetsAtMs: 0,
  sizeBytes: 1,
  max: 1,
}

/** The refusals of a send by the decision. */
const REFUSED: readonly (readonly [code: RefusalCode, extra: Record<string, string | number>, reply: string])[] = [
  ['unauthorized', {}, '550 5.7.1 unauthorized API key missing, malformed, unknown or revoked'],
  [
    'idempotency_key_reused',
    {},
    '550 5.7.1 idempotency_key_reused This Idempotency-Key was already used with a different request: use a new key',
  ],
  ['payment_required', {}, '550 5.7.1 payment_required The account has no active subscription'],
  ['account_not_active', {}, '550 5.7.1 account_not_active The account is closed or not approved yet'],
  ['account_paused', {}, '550 5.7.1 account_paused Account is paused'],
  ['stream_not_found', {}, '550 5.7.1 stream_not_found The server has no such stream'],
  ['stream_kind_not_allowed', {}, '550 5.7.1 stream_kind_not_allowed This kind of stream cannot be used here'],
  [
    'domain_not_verified',
    { domain: 'acme.co', mode: 'live' },
    '550 5.7.1 domain_not_verified The domain acme.co is not a verified sending domain. Publish its DNS records, then run sendwright domain verify acme.co (POST /v1/domains/{id}/verify). simulator.test is for test servers only',
  ],
  [
    'message_too_large',
    EXTRA,
    '552 5.3.4 message_too_large Message may have 10485760 bytes, including added header fields',
  ],
  ['stream_archived', { streamId: 'x' }, '550 5.7.1 stream_archived Stream is archived'],
  ['stream_paused', { streamId: 'x', pausedAtMs: 1 }, '550 5.7.1 stream_paused Stream is paused'],
  ['rate_limited', EXTRA, '451 4.7.1 rate_limited Per-minute limit reached, try again in a minute'],
  [
    'rate_limited',
    { ...EXTRA, requested: 301 },
    '550 5.7.1 rate_limited Message has more recipients than the whole limit: 301 of 300',
  ],
  ['cap_reached', EXTRA, '550 5.7.1 cap_reached Monthly cap reached'],
]

for (const [code, extra, reply] of REFUSED) {
  t.test(`replies: ${code} is ${reply.slice(0, 9)} [submission.replies]`, async (t) => {
    const answer = answerRefusal({ code, extra })
    t.equal(`${answer.code} ${answer.text}`, reply)
    t.equal(codeOfReply(answer), code)
    t.same(answerSubmission({ kind: 'answer', reply: { kind: 'refused', code, extra } }), answer)
  })
}

t.test('replies: how an ask ends [submission.durable]', async (t) => {
  const messages = [{ messageId: '01a1f8d8-8300-7000-8000-00000000000a', submittedAtMs: 1 }]
  const accepted = { kind: 'accepted', messages, test: false, replayed: false, rate: [] } as const
  for (const replayed of [false, true])
    t.same(answerSubmission({ kind: 'answer', reply: { ...accepted, replayed } }), {
      code: 250,
      text: '2.0.0 accepted 01a1f8d8-8300-7000-8000-00000000000a',
    })
  t.match(answerSubmission({ kind: 'unavailable' }), { code: 451, text: /^4\.3\.0 unavailable / })
  t.match(answerSubmission({ kind: 'fault' }), { code: 451, text: /^4\.3\.0 internal_error / })
  t.match(answerSubmission({ kind: 'fault', isDamaged: true }), { code: 451, text: /^4\.3\.0 data_damaged / })
  t.equal(answerSubmission({ kind: 'silent' }), 'cut', 'nobody knows: no reply')
})

t.test('replies: one line of at most 512 octets, whatever a client wrote', async (t) => {
  const long = invalidMessage(`${'x'.repeat(600)}\r\n250 2.0.0 accepted`)
  t.ok(`554 ${long.text}\r\n`.length <= 512)
  t.notMatch(invalidMessage('a\r\n250 b').text, /[\r\n]/)
  t.match(
    answerRefusal({ code: 'domain_not_verified', extra: { domain: `${'ü'.repeat(600)}` } }).text,
    /^[ -~]{1,506}$/,
  )
})

/** The library's reply, and its replacement; null: it is unchanged. */
const CORRECTED: readonly (readonly [
  code: number,
  text: string,
  context: string | false | undefined,
  made: RegExp | null,
])[] = [
  [421, 'Timeout - closing connection', undefined, /^4\.4\.2 /],
  [421, 'Server shutting down', 'NOOP', /^4\.3\.2 /],
  [421, 'mx You talk too soon', 'EHLO', /^4\.7\.0 /],
  [421, 'HTTP requests not allowed', 'GET', /^4\.7\.0 /],
  [421, 'Error: too many unauthenticated commands', 'MAILBOX_FULL', /^4\.7\.0 /],
  [421, 'Error: Command line too long', undefined, /^4\.7\.0 /],
  [421, 'Error: whatever', undefined, /^4\.3\.0 /],
  [530, 'Error: authentication Required', undefined, /^5\.7\.0 unauthorized /],
  [538, 'Error: Must issue a STARTTLS command first', undefined, /^5\.7\.11 /],
  [552, 'Error: message exceeds fixed maximum message size 9', 'MESSAGE_TOO_BIG', /^5\.3\.4 message_too_large /],
  [250, 'Accepted', 'MAIL_FROM_OK', null],
  [501, 'Error: syntax', false, null],
]

for (const [code, text, context, made] of CORRECTED) {
  t.test(`replies: ${code} ${text} [submission.replies]`, async (t) => {
    const reply = correctReply(code, { text, context })
    if (made === null) t.same(reply, { text, context })
    else t.match(reply, { text: made, context: false })
  })
}

t.test('replies: our own words have their code; a command names no code; lists stay', async (t) => {
  t.same(correctReply(550, { text: '5.7.1 stream_paused', context: undefined }).context, false)
  t.same(correctReply(500, { text: 'Error: command not recognized', context: 'MAILBOX_FULL' }).context, undefined)
  t.same(correctReply(250, { text: ['a', 'SIZE'], context: false }), { text: ['a', 'SIZE'], context: false })
  t.equal(codeOfReply({ code: 250, text: '2.0.0 accepted x' }), '250')
})
