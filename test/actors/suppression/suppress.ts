/** suppress - what a bounce or a complaint makes of the stream's list, of the person and of later sends. */

import t from 'tap'
import { msOf, shortId } from '../../../cluster/id.ts'
import { people } from '../../../src/actors/account/people.ts'
import { type AttemptOutcome, reportOutcome } from '../../../src/actors/message/attempt-outcome.ts'
import { attemptOutcome } from '../../../src/actors/message/delivery-outcome.ts'
import { type AttemptJob, prepareAttempt } from '../../../src/actors/message/prepare-attempt.ts'
import { makeRefused } from '../../../src/mail/classify.ts'
import { makeDelivered } from '../../../src/mail/outcome.ts'
import { statusKey } from '../../../src/state/keys.ts'
import { unpackStatus } from '../../../src/state/message/status.ts'
import type { StreamState } from '../../../src/state/stream.ts'
import { entryOf, listedPlaces, personOf } from '../../support/world/suppression.ts'
import {
  acceptedIds,
  changeState,
  hmacOf,
  makeItem,
  makeRecipient,
  makeTenant,
  send,
  type Tenant,
} from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'
import { seedWebhook, waiting } from '../../support/world/webhook-world.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const ADA = 'ada@example.net'
const BOB = 'Bob@example.net'
const GONE = { phase: 'rcpt', response: '550 5.1.1 <Ada@example.net> unknown' } as const

const report = (outcome: ReturnType<typeof makeRefused>, address: string, complaint?: string): AttemptOutcome =>
  reportOutcome(outcome, {
    address,
    sizeBytes: 900,
    retryAfterMs: null,
    hmac: () => hmacOf(address),
    ...(complaint !== undefined && { complaint }),
  })
const gone = (address: string) => report(makeRefused(GONE), address)
const complained = (address: string) => report(makeDelivered(250, '250 Ok'), address, 'abuse')

function begin() {
  const world = new World(NOW_MS)
  return { world, tenant: makeTenant(world) }
}

/** Sends to these addresses and ends each attempt as `end` says. Returns the message's id. */
function deliver(world: World, tenant: Tenant, addresses: string[], end: (address: string) => AttemptOutcome): string {
  const recipients = addresses.map((address) => makeRecipient(address))
  const [id = ''] = acceptedIds(send(world, tenant, { messages: [makeItem({ recipients })] }))
  for (const due of world.deliveries()) {
    const claim = world.claim<AttemptJob>(prepareAttempt, due)
    if (claim !== null) world.end(attemptOutcome, claim, end(claim.job.recipient.address))
  }
  return id
}

function statusesOf(world: World, tenant: Tenant, id: string, count: number) {
  const rows = world.hash(statusKey(world.shard, tenant.live.serverId, '202611-0-1'))
  return Array.from({ length: count }, (_, index) =>
    unpackStatus(rows.get(index === 0 ? shortId(id) : `${shortId(id)}.${index}`) ?? null, msOf(id)),
  )
}

t.test('suppress: a hard bounce lists the person, without the address [suppression.entry]', async (t) => {
  const { world, tenant } = begin()
  const id = deliver(world, tenant, [ADA], gone)
  const entry = entryOf(world, tenant, ADA)
  t.match(entry, {
    reason: 'hard_bounce',
    messageId: id,
    code: 550,
    response: '550 5.1.1 <<rcpt>> unknown',
  })
  t.same(listedPlaces(world, tenant), [{ streamId: tenant.live.streamId, hmac: hmacOf(ADA) }])
  t.equal(personOf(world, tenant, ADA)?.number, entry?.number)
  t.equal(personOf(world, tenant, ADA)?.suppressions, 1)
  t.equal((world.states.get(`stream:${tenant.live.streamId}`) as StreamState).hasSuppressions, true)
})

t.test('suppress: a soft bounce and a delivery list no address [message.hard]', async (t) => {
  const { world, tenant } = begin()
  deliver(world, tenant, [ADA, BOB], (address) =>
    address === ADA
      ? report(makeRefused({ phase: 'rcpt', response: '550 5.7.1 Blocked' }), address)
      : report(makeDelivered(250, '250 Ok'), address),
  )
  t.same(listedPlaces(world, tenant), [])
  t.equal(personOf(world, tenant, ADA)?.suppressions, 0)
  t.equal((world.states.get(`stream:${tenant.live.streamId}`) as StreamState).hasSuppressions, undefined)
})

t.test('suppress: a later send skips a listed address, in any case, and reports it [send.suppressed]', async (t) => {
  const { world, tenant } = begin()
  deliver(world, tenant, [BOB], gone)
  const recipients = [ADA, 'bob@example.net', 'eve@example.net'].map((address) => makeRecipient(address))
  const attachments = [{ name: 'a.txt', contentType: null, contentId: null, size: 3, inline: false }]
  const message = makeItem({ recipients, attachments })
  const [id = ''] = acceptedIds(send(world, tenant, { messages: [message] }))
  t.equal(world.rounds, 2, 'the list is read with all else, then the log of events')
  t.same(
    world.deliveries().map(({ job }) => (job as AttemptJob).recipient.address),
    [ADA, 'eve@example.net'],
  )
  const [ada, bob] = statusesOf(world, tenant, id, 2)
  t.equal(ada?.status, 'accepted')
  t.same(bob, {
    attempts: 0,
    nextAttemptAtMs: null,
    status: 'suppressed',
    statusAtMs: NOW_MS,
    sizeBytes: null,
    events: [
      {
        event: 'bounced',
        occurredAtMs: NOW_MS,
        code: null,
        response: null,
        classification: 'Suppressed',
        hard: true,
        expired: false,
        status: 'suppressed',
      },
    ],
  })
  t.match(world.counters.get(`account:${tenant.accountId}`), { minute: [/\d/, 4] }, 'it counts against the limits')
  for (const due of world.deliveries()) {
    const claim = world.claim<AttemptJob>(prepareAttempt, due)
    if (claim !== null) world.end(attemptOutcome, claim, complained(claim.job.recipient.address))
  }
  t.same(world.deliveries(), [])
})

t.test(
  'suppress: webhooks of the stream get the skipped recipients, along with a warning of the cap [event.announce]',
  async (t) => {
    const { world, tenant } = begin()
    deliver(world, tenant, [ADA, BOB], gone)
    const { webhookId } = seedWebhook(world, tenant, { streamId: tenant.live.streamId })
    const other = seedWebhook(world, tenant, { streamId: tenant.test.streamId, events: ['bounced'] })
    changeState(world, 'account', tenant.accountId, { monthlyCap: 5 })
    const recipients = [ADA, BOB].map((address) => makeRecipient(address))
    const [id = ''] = acceptedIds(send(world, tenant, { messages: [makeItem({ recipients })] }))
    const told = waiting(world)
    t.notOk(told.some((one) => one.webhookId === other.webhookId))
    t.same(
      told.map(({ reference }) => reference.event),
      ['cap_warning', 'bounced', 'bounced'],
    )
    t.match(told.slice(1), [
      { reference: { messageId: id, recipient: 0, index: 0 } },
      { reference: { messageId: id, recipient: 1, index: 0 } },
    ])
    t.match(world.counters.get(`webhook:${webhookId}`), { pending: 3 })
  },
)

t.test(
  'suppress: a message without a deliverable recipient keeps its text and no attachment [send.suppressed]',
  async (t) => {
    const { world, tenant } = begin()
    deliver(world, tenant, [ADA], gone)
    const attachments = [{ name: 'a.txt', contentType: null, contentId: null, size: 3, inline: false }]
    const parts = [
      { part: 'body', chunks: 1, blob: 0 },
      { part: 'a0', chunks: 1, blob: 0 },
    ]
    send(world, tenant, { messages: [makeItem({ attachments, content: { parts, stored: null } })] })
    t.same(world.deliveries(), [])
    t.ok(world.ops.some(({ key }) => key.includes(':bodies:')))
    t.notOk(world.ops.some(({ key }) => key.includes(':content:')))
    const stored = { key: 'sealed', body: false, files: true }
    send(world, tenant, { messages: [makeItem({ attachments, content: { parts: parts.slice(0, 1), stored } })] })
    t.equal(
      [...world.items.keys()].filter((key) => key.startsWith('unlink ')).length,
      1,
      'those in the content store go',
    )
  },
)

t.test('suppress: a stream without a list costs a send nothing [send.suppressed]', async (t) => {
  const { world, tenant } = begin()
  send(world, tenant)
  t.equal(world.rounds, 1)
  t.notOk([...world.keys.keys()].some((key) => key.includes('suppress')))
})

t.test('suppress: a worse reason replaces an entry, a lighter one does not [suppression.worse]', async (t) => {
  const { world, tenant } = begin()
  const waiting = acceptedIds(send(world, tenant, { messages: [makeItem(), makeItem(), makeItem()] }))
  const [first, second, third] = world.deliveries()
  const end = (due: typeof first, outcome: AttemptOutcome) => {
    world.nowMs += 1000
    const claim = due === undefined ? null : world.claim<AttemptJob>(prepareAttempt, due)
    if (claim !== null) world.end(attemptOutcome, claim, outcome)
  }
  end(first, gone(ADA))
  const before = entryOf(world, tenant, ADA)
  end(second, complained(ADA))
  const worse = entryOf(world, tenant, ADA)
  t.same(worse, { ...before, reason: 'spam_complaint', messageId: waiting[1], code: null, response: null })
  end(third, gone(ADA))
  t.same(entryOf(world, tenant, ADA), worse)
  t.equal(listedPlaces(world, tenant).length, 1)
  t.equal(personOf(world, tenant, ADA)?.suppressions, 1)
})

t.test(
  'suppress: a simulated complaint is announced after the delivery, and lists the address [send.simulator]',
  async (t) => {
    const { world, tenant } = begin()
    const id = deliver(world, tenant, [ADA], complained)
    const [state] = statusesOf(world, tenant, id, 1)
    t.equal(state?.status, 'delivered')
    t.match(state?.events, [{ event: 'delivered' }, { event: 'spam_complaint', feedbackType: 'abuse' }])
    t.equal(entryOf(world, tenant, ADA)?.reason, 'spam_complaint')
  },
)

t.test(
  'suppress: a listed person is kept beyond the months after which others are deleted [retention.person]',
  async (t) => {
    const { world, tenant } = begin()
    deliver(world, tenant, [ADA, 'eve@example.net'], (address) =>
      address === ADA ? gone(address) : report(makeDelivered(250, '250 Ok'), address),
    )
    world.nowMs = Date.UTC(2030, 0, 1)
    world.run(people, { item: `people:${tenant.accountId}:0` })
    t.equal(personOf(world, tenant, ADA)?.suppressions, 1)
    t.equal(personOf(world, tenant, 'eve@example.net'), null)
  },
)

t.test('suppress: complaints pause a broadcast stream once they are too many [stream.brake]', async (t) => {
  const { world, tenant } = begin()
  const { streamId } = tenant.live
  changeState(world, 'stream', streamId, { kind: 'broadcast' })
  const stream = () => world.states.get(`stream:${streamId}`) as StreamState
  const hours = () => (world.counters.get(`stream:${streamId}`) as { hours: number[][] }).hours
  deliver(world, tenant, [BOB], (address) => report(makeDelivered(250, '250 Ok'), address))
  t.same(
    hours().map(([, ...counts]) => counts),
    [[1, 0]],
  )
  world.counters.set(`stream:${streamId}`, { hours: [[NOW_MS / 3_600_000, 998, 0]] })
  const waiting = ['a', 'b', 'c'].map((name) => `${name}@example.net`)
  const recipients = waiting.map((address) => makeRecipient(address))
  send(world, tenant, { messages: [makeItem({ recipients })] })
  const end = (due: ReturnType<World['deliveries']>[number] | undefined) => {
    const claim = due === undefined ? null : world.claim<AttemptJob>(prepareAttempt, due)
    if (claim !== null) world.end(attemptOutcome, claim, complained(claim.job.recipient.address))
  }
  const [one, two, three] = world.deliveries()
  end(one)
  t.equal(stream().pausedAtMs, null, '1 of 999')
  end(two)
  t.equal(stream().pausedAtMs, NOW_MS, '2 of 1000')
  world.nowMs += 5000
  end(three)
  t.equal(stream().pausedAtMs, NOW_MS, 'the first reason counts')
  t.match(hours(), [[NOW_MS / 3_600_000, 1001, 3]])
})

t.test('suppress: the delivery that reaches the minimum can pause a stream too [stream.brake]', async (t) => {
  const { world, tenant } = begin()
  const { streamId } = tenant.live
  changeState(world, 'stream', streamId, { kind: 'broadcast' })
  const stream = () => world.states.get(`stream:${streamId}`) as StreamState
  const hour = NOW_MS / 3_600_000
  // A paused stream accepts no messages, so all are sent before.
  const recipients = ['a', 'b', 'c', 'd'].map((name) => makeRecipient(`${name}@example.net`))
  send(world, tenant, { messages: [makeItem({ recipients })] })
  const waiting = [...world.deliveries()]
  const after = (deliveries: number, complaints: number): number | null => {
    world.counters.set(`stream:${streamId}`, { hours: [[hour, deliveries, complaints]] })
    const due = waiting.shift()
    const claim = due === undefined ? null : world.claim<AttemptJob>(prepareAttempt, due)
    if (claim === null) throw new Error('Nothing waits')
    world.end(attemptOutcome, claim, report(makeDelivered(250, '250 Ok'), claim.job.recipient.address))
    return stream().pausedAtMs
  }
  t.equal(after(998, 2), null, '2 of 999')
  t.equal(after(999, 1), null, '1 of 1000')
  t.equal(after(999, 2), NOW_MS, '2 of 1000')
  world.nowMs += 5000
  t.equal(after(1000, 2), NOW_MS, 'the first reason counts')
  t.match(world.counters.get(`stream:${streamId}`), { hours: [[hour, 1001, 2]] }, 'deliveries count on')
})
