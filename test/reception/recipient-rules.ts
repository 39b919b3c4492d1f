/** recipient-rules - the table of replies to RCPT, row by row, and which row answers where several hold. */
import t from 'tap'
import {
  type JoinedTransaction,
  judgeInboundRecipient,
  type RecipientCase,
} from '../../src/reception/recipient-rules.ts'
import { ACCOUNT_DEFAULTS } from '../../src/state/account.ts'
import { parseInboundLocalPart } from '../../src/state/received/local-part.ts'
import { makeStream } from '../../src/state/stream.ts'
import type { InboundAddressee } from '../../src/views/inbound/address.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12, 0, 30)
const MINUTE = Math.floor(NOW_MS / 60_000)
const ALONE: JoinedTransaction = { accountId: null, recipients: 0, hasReturnPaths: false }

const FOUND: InboundAddressee = {
  shard: 7,
  stream: makeStream({ streamId: 'stream', serverId: 'server', kind: 'inbound', name: 'Mail', createdAtMs: 1 }),
  server: {
    serverId: 'server',
    accountId: 'account',
    name: 'Live',
    mode: 'live',
    createdAtMs: 1,
    perMinuteLimit: null,
    monthlyCap: null,
    defaultStreamId: 'default',
    keys: [],
  },
  account: {
    ...ACCOUNT_DEFAULTS,
    accountId: 'account',
    name: 'Acme',
    status: 'active',
    createdAtMs: 1,
    keys: [],
    servers: 1,
    held: false,
  },
  counters: { inboundMinute: [MINUTE, 299] },
}

/** The faults in the order of their replies. Each case has its own fault and all later ones. */
const ROWS: readonly [reply: string | null, (one: RecipientCase) => RecipientCase][] = [
  ['451 4.3.0', (one) => ({ ...one, addressee: 'unavailable' })],
  ['550 5.1.1', (one) => ({ ...one, addressee: null })],
  ['550 5.1.1', (one) => withFound(one, ({ stream }) => ({ stream: { ...stream, kind: 'transactional' } }))],
  ['550 5.2.1', (one) => withFound(one, ({ stream }) => ({ stream: { ...stream, archivedAtMs: 1 } }))],
  ['550 5.2.1', (one) => withFound(one, ({ server }) => ({ server: { ...server, removedAtMs: 1 } }))],
  ['550 5.7.1', (one) => withFound(one, ({ account }) => ({ account: { ...account, status: 'closed' } }))],
  ['452 4.5.3', (one) => ({ ...one, joined: { ...one.joined, hasReturnPaths: true } })],
  ['452 4.5.3', (one) => ({ ...one, joined: { ...one.joined, accountId: 'another' } })],
  ['451 4.7.1', (one) => ({ ...one, joined: { ...one.joined, accountId: 'account', recipients: 1 } })],
  ['451 4.7.1', (one) => withFound(one, () => ({ counters: { inboundMinute: [MINUTE, 300] } }))],
  ['452 4.3.1', (one) => ({ ...one, hasRoom: false })],
]

function withFound(one: RecipientCase, change: (found: InboundAddressee) => Partial<InboundAddressee>): RecipientCase {
  const { addressee } = one
  if (addressee === null || addressee === 'unavailable') return one
  return { ...one, addressee: { ...addressee, ...change(addressee) } }
}

const GOOD: RecipientCase = { addressee: FOUND, joined: ALONE, hasRoom: true, nowMs: NOW_MS }
const replyOf = (one: RecipientCase): string | null => {
  const answer = judgeInboundRecipient(one)
  return answer === null ? null : `${answer.code} ${answer.text.split(' ')[0]}`
}

t.test(
  'recipient-rules: every row by itself, and over all rows below it [inbound.recipient] [inbound.limit]',
  async (t) => {
    t.equal(replyOf(GOOD), null)
    for (const [place, [reply, spoil]] of ROWS.entries()) {
      t.equal(replyOf(spoil(GOOD)), reply, `row ${place} alone`)
      const all = ROWS.slice(place).reduceRight((one, [, worse]) => worse(one), GOOD)
      t.equal(replyOf(all), reply, `row ${place} before those below it`)
    }
  },
)

t.test('recipient-rules: no reasons for a refusal [inbound.recipient]', async (t) => {
  const taken: readonly ((one: RecipientCase) => RecipientCase)[] = [
    (one) => withFound(one, ({ account }) => ({ account: { ...account, status: 'paused', held: true } })),
    (one) => withFound(one, ({ account }) => ({ account: { ...account, subscriptionActive: false } })),
    (one) => withFound(one, ({ stream }) => ({ stream: { ...stream, pausedAtMs: 1 } })),
    (one) => withFound(one, () => ({ counters: null })),
    (one) => withFound(one, () => ({ counters: { inboundMinute: [MINUTE - 1, 300] } })),
    (one) => ({ ...one, joined: { ...one.joined, accountId: 'account' } }),
  ]
  for (const [place, change] of taken.entries()) t.equal(replyOf(change(GOOD)), null, `case ${place}`)
})

const UUID = '01a1f8d8-8300-7000-8000-0e7faee555a7'
const LOCAL_PARTS: readonly [string, object | null][] = [
  [UUID, { streamId: UUID, spelledId: null, mailboxHash: null }],
  [UUID.toUpperCase(), { streamId: UUID, spelledId: UUID.toUpperCase(), mailboxHash: null }],
  [`${UUID}+`, { streamId: UUID, spelledId: null, mailboxHash: null }],
  [`${UUID}+Order+7`, { streamId: UUID, spelledId: null, mailboxHash: 'Order+7' }],
  [`${UUID}+${'h'.repeat(255)}`, { streamId: UUID, spelledId: null, mailboxHash: 'h'.repeat(255) }],
  [`${UUID}+${'h'.repeat(256)}`, null],
  [`${UUID}-`, null],
  [UUID.slice(1), null],
  [UUID.replaceAll('-', ''), null],
  ['+x', null],
  ['', null],
]
for (const [localPart, expected] of LOCAL_PARTS)
  t.test(`recipient-rules: ${localPart.slice(0, 60)} [inbound.recipient]`, async (t) => {
    t.same(parseInboundLocalPart(localPart), expected)
  })
