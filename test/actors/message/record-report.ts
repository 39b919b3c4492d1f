/** record-report - the table of effects of a report on a recipient, in each of its states. */

import t from 'tap'
import { msOf, shortId } from '../../../cluster/id.ts'
import { type AttemptOutcome, reportOutcome } from '../../../src/actors/message/attempt-outcome.ts'
import { attemptOutcome } from '../../../src/actors/message/delivery-outcome.ts'
import { prepareAttempt } from '../../../src/actors/message/prepare-attempt.ts'
import { type Report, type ReportReply, recordReport } from '../../../src/actors/message/record-report.ts'
import { makeRefused } from '../../../src/mail/classify.ts'
import { makeDelivered } from '../../../src/mail/outcome.ts'
import { statusKey } from '../../../src/state/keys.ts'
import { type RecipientState, unpackStatus } from '../../../src/state/message/status.ts'
import { entryOf, listedPlaces } from '../../support/world/suppression.ts'
import { acceptedIds, changeState, hmacOf, makeTenant, send, type Tenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'
import { seedWebhook, waiting } from '../../support/world/webhook-world.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const DAY_MS = 86_400_000
const ADA = 'ada@example.net'
const REST = { address: ADA, sizeBytes: 900, retryAfterMs: null, hmac: () => hmacOf(ADA) }
const delivered = reportOutcome(makeDelivered(250, '250 Ok'), REST)
const deferred = reportOutcome(makeRefused({ phase: 'rcpt', response: '451 4.3.0 Later' }), REST)
const refused = reportOutcome(makeRefused({ phase: 'rcpt', response: '550 5.7.1 Blocked' }), REST)

const BOUNCE: Report = {
  kind: 'bounce',
  code: 550,
  response: '550 5.1.1 <<rcpt>> unknown',
  classification: 'InvalidRecipient',
  hard: true,
  expired: false,
}
const COMPLAINT: Report = { kind: 'complaint', feedbackType: 'abuse' }

interface Case {
  readonly name: string
  /** How the first attempt ended; null: it is still under way. */
  readonly end: AttemptOutcome | null
  readonly report: Report
  /** Days after that. */
  readonly days?: number
  readonly reply: ReportReply
  readonly status: RecipientState['status']
  readonly reason?: string
}

const CASES: readonly Case[] = [
  {
    name: 'bounce of a delivered one [bounce.once]',
    end: delivered,
    report: BOUNCE,
    reply: 'recorded',
    status: 'bounced',
    reason: 'hard_bounce',
  },
  {
    name: 'bounce that is not hard',
    end: delivered,
    report: { ...BOUNCE, hard: false },
    reply: 'recorded',
    status: 'bounced',
  },
  {
    name: 'bounce on the last day [bounce.late]',
    end: delivered,
    report: BOUNCE,
    days: 14,
    reply: 'recorded',
    status: 'bounced',
    reason: 'hard_bounce',
  },
  {
    name: 'bounce after that [bounce.late]',
    end: delivered,
    report: BOUNCE,
    days: 14.01,
    reply: 'ignored',
    status: 'delivered',
  },
  { name: 'bounce of a refused one [bounce.once]', end: refused, report: BOUNCE, reply: 'ignored', status: 'bounced' },
  {
    name: 'bounce before the attempt was recorded [bounce.once]',
    end: null,
    report: BOUNCE,
    reply: 'open',
    status: 'accepted',
  },
  { name: 'bounce of a deferred one [bounce.once]', end: deferred, report: BOUNCE, reply: 'open', status: 'deferred' },
  {
    name: 'complaint about a delivered one [complaint.once]',
    end: delivered,
    report: COMPLAINT,
    reply: 'recorded',
    status: 'delivered',
    reason: 'spam_complaint',
  },
  {
    name: 'complaint a month later [complaint.once]',
    end: delivered,
    report: COMPLAINT,
    days: 31,
    reply: 'recorded',
    status: 'delivered',
    reason: 'spam_complaint',
  },
  {
    name: 'complaint before the attempt was recorded',
    end: null,
    report: COMPLAINT,
    reply: 'recorded',
    status: 'accepted',
    reason: 'spam_complaint',
  },
  {
    name: 'complaint past the message’s age [retention.message]',
    end: delivered,
    report: COMPLAINT,
    days: 400,
    reply: 'ignored',
    status: 'delivered',
  },
]

for (const { name, end, report, days = 0, reply, status, reason } of CASES) {
  t.test(`record-report: ${name} -> ${reply}`, async (t) => {
    const { world, tenant, id, item } = begin(end)
    world.nowMs += days * DAY_MS
    const before = stateOf(world, tenant, id)
    t.equal(world.run(recordReport, { item, hmac: hmacOf(ADA), report }), reply)
    const after = stateOf(world, tenant, id)
    t.equal(after.status, status)
    t.equal(entryOf(world, tenant, ADA)?.reason, reason)
    if (reply !== 'recorded') return t.same(after, before)
    const { kind: _, ...details } = report
    t.match(after.events.at(-1), { ...details, occurredAtMs: world.nowMs })
    t.equal(after.events.length, before.events.length + 1)
    t.equal(after.attempts, before.attempts)
    t.equal(after.sizeBytes, before.sizeBytes)
    t.equal(world.run(recordReport, { item, hmac: hmacOf(ADA), report }), 'ignored', 'the second time')
    t.same(stateOf(world, tenant, id), after)
  })
}

t.test(
  'record-report: a bounce, then a complaint; both are announced, the worse reason stays [suppression.worse]',
  async (t) => {
    const { world, tenant, id, item } = begin(delivered)
    const run = (report: Report) => world.run(recordReport, { item, hmac: hmacOf(ADA), report })
    t.same([run(BOUNCE), run(COMPLAINT), run(BOUNCE)], ['recorded', 'recorded', 'ignored'])
    t.same(
      stateOf(world, tenant, id).events.map(({ event }) => event),
      ['delivered', 'bounced', 'spam_complaint'],
    )
    t.equal(entryOf(world, tenant, ADA)?.reason, 'spam_complaint')
    t.equal(listedPlaces(world, tenant).length, 1)
  },
)

t.test('record-report: webhooks get it in the commit that lists the address [event.announce]', async (t) => {
  const { world, tenant, id, item } = begin(delivered)
  seedWebhook(world, tenant)
  t.equal(world.run(recordReport, { item, hmac: hmacOf(ADA), report: BOUNCE }), 'recorded')
  t.match(waiting(world), [{ reference: { event: 'bounced', messageId: id, recipient: 0, index: 1 } }])
  t.equal(entryOf(world, tenant, ADA)?.reason, 'hard_bounce')
  t.equal(world.run(recordReport, { item, hmac: hmacOf(ADA), report: BOUNCE }), 'ignored')
  t.equal(waiting(world).length, 1)
})

t.test('record-report: for an erased address the event is announced, and nothing is listed', async (t) => {
  const { world, tenant, id, item } = begin(delivered)
  t.equal(world.run(recordReport, { item, hmac: null, report: BOUNCE }), 'recorded')
  t.equal(stateOf(world, tenant, id).status, 'bounced')
  t.same(listedPlaces(world, tenant), [])
})

const FEEDBACK: [type: string, onTransactional: ReportReply, onBroadcast: ReportReply][] = [
  ['abuse', 'recorded', 'recorded'],
  ['fraud', 'recorded', 'recorded'],
  ['other', 'recorded', 'recorded'],
  ['x-unheard-of', 'recorded', 'recorded'],
  ['opt-out', 'ignored', 'recorded'],
  ['opt-out-list', 'ignored', 'recorded'],
  ['not-spam', 'ignored', 'ignored'],
  ['auth-failure', 'ignored', 'ignored'],
  ['dmarc', 'ignored', 'ignored'],
  ['virus', 'ignored', 'ignored'],
  ['miscategorized', 'ignored', 'ignored'],
]
for (const [feedbackType, ...replies] of FEEDBACK)
  t.test(`record-report: feedback of type ${feedbackType} [complaint.arf]`, async (t) => {
    for (const [index, kind] of (['transactional', 'broadcast'] as const).entries()) {
      const { world, tenant, id, item } = begin(delivered, kind)
      const report: Report = { kind: 'complaint', feedbackType }
      t.equal(world.run(recordReport, { item, hmac: hmacOf(ADA), report }), replies[index], kind)
      const isTold = replies[index] === 'recorded'
      t.equal(stateOf(world, tenant, id).events.length, isTold ? 2 : 1)
      t.equal(entryOf(world, tenant, ADA)?.reason, isTold ? 'spam_complaint' : undefined)
    }
  })

function begin(end: AttemptOutcome | null, kind: 'transactional' | 'broadcast' = 'transactional') {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  if (kind === 'broadcast') changeState(world, 'stream', tenant.live.streamId, { kind })
  const [id = ''] = acceptedIds(send(world, tenant))
  const [due] = world.deliveries()
  if (due === undefined) throw new Error('Nothing is due')
  const claim = world.claim(prepareAttempt, due)
  if (end !== null && claim !== null) world.end(attemptOutcome, claim, end)
  return { world, tenant, id, item: due.item }
}

function stateOf(world: World, tenant: Tenant, id: string): RecipientState {
  const rows = world.hash(statusKey(world.shard, tenant.live.serverId, '202611-0-1'))
  return unpackStatus(rows.get(shortId(id)) ?? null, msOf(id))
}
