/** delivery-outcome - the table of effects of an attempt's end on a recipient, including stale attempts. */

import t from 'tap'
import { msOf, shortId } from '../../../cluster/id.ts'
import { type AttemptOutcome, reportOutcome } from '../../../src/actors/message/attempt-outcome.ts'
import { attemptOutcome } from '../../../src/actors/message/delivery-outcome.ts'
import { type AttemptJob, prepareAttempt } from '../../../src/actors/message/prepare-attempt.ts'
import { makeRefused, makeUnasked } from '../../../src/mail/classify.ts'
import { makeDeferred, makeDelivered, makeReturned } from '../../../src/mail/outcome.ts'
import { SIMULATED_RETRY_MS, simulatedOutcome } from '../../../src/mail/simulator.ts'
import { statusKey } from '../../../src/state/keys.ts'
import { bodyPlace } from '../../../src/state/message/content-part.ts'
import { packStatus, type RecipientState, statusField, unpackStatus } from '../../../src/state/message/status.ts'
import type { ServerCounters } from '../../../src/state/server.ts'
import { acceptedIds, hmacOf, makeItem, makeRecipient, makeTenant, send } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const HOUR_MS = 3_600_000
const STREAM = { streamId: '01a1f8d8-8300-7017-8000-0e7faee555a7', retryAfterMs: null }
const ADA = { ...STREAM, address: 'ada@example.net', sizeBytes: 900, hmac: () => hmacOf('ada@example.net') }

const LATER = { code: 451, response: '451 4.3.0 Try later' }
const delivered = reportOutcome(makeDelivered(250, '250 2.0.0 Ok: queued'), ADA)
const deferred = reportOutcome(makeRefused({ phase: 'rcpt', response: '451 4.3.0 Try later' }), ADA)
const noConnection = reportOutcome(makeDeferred('conn', 'NoAnswerFromHost', 'connect ETIMEDOUT'), ADA)
const bounced = reportOutcome(makeRefused({ phase: 'rcpt', response: '550 5.1.1 <Ada@example.net> unknown' }), ADA)
const unbuildable = reportOutcome(makeUnasked('unbuildable'), { ...ADA, sizeBytes: null })

interface Case {
  readonly name: string
  readonly outcome: AttemptOutcome | null
  readonly attempt?: number
  /** Hours after acceptance. */
  readonly hours?: number
  readonly status: string
  readonly last: object
}

const CASES: readonly Case[] = [
  {
    name: 'accepted by the server',
    outcome: delivered,
    status: 'delivered',
    last: { event: 'delivered', code: 250, response: '250 2.0.0 Ok: queued' },
  },
  { name: 'put off', outcome: deferred, status: 'deferred', last: { event: 'deferred', ...LATER } },
  {
    name: 'no connection',
    outcome: noConnection,
    status: 'deferred',
    last: { event: 'deferred', code: null, response: 'connect ETIMEDOUT' },
  },
  {
    name: 'put off at the fifteenth attempt',
    outcome: deferred,
    attempt: 15,
    hours: 47,
    status: 'bounced',
    last: { event: 'bounced', code: 451, response: '451 4.3.0 Try later', expired: true, hard: false },
  },
  {
    name: 'put off when the next would be past 48 h',
    outcome: deferred,
    attempt: 14,
    hours: 41,
    status: 'bounced',
    last: { event: 'bounced', expired: true, hard: false },
  },
  {
    name: 'no connection for 48 h',
    outcome: { ...noConnection, classification: null },
    attempt: 15,
    hours: 48,
    status: 'bounced',
    last: { code: null, classification: 'MessageExpired', expired: true },
  },
  {
    name: 'refused',
    outcome: bounced,
    status: 'bounced',
    last: {
      event: 'bounced',
      code: 550,
      response: '550 5.1.1 <<rcpt>> unknown',
      classification: 'InvalidRecipient',
      hard: true,
      expired: false,
    },
  },
  {
    name: 'not to be built',
    outcome: unbuildable,
    status: 'failed',
    last: { event: 'bounced', code: null, classification: 'Uncategorized', hard: false },
  },
  {
    name: 'abandoned',
    outcome: null,
    attempt: 5,
    status: 'failed',
    last: {
      event: 'bounced',
      code: null,
      response: null,
      classification: 'Uncategorized',
      hard: false,
      expired: false,
    },
  },
]

for (const { name, outcome, attempt = 1, hours = 0, status, last } of CASES) {
  t.test(`outcome: ${name} -> ${status}`, async (t) => {
    const { world, tenant, id, due } = begin()
    due.claims = attempt
    if (attempt > 1 && outcome !== null) seedAttempts(world, { tenant, id, attempts: attempt - 1 })
    world.nowMs += hours * HOUR_MS + 100
    world.end(attemptOutcome, { ...due, attempt }, outcome)
    const state = stateOf(world, tenant, id)
    t.equal(state.status, status)
    t.equal(state.attempts, attempt)
    t.equal(state.events.length, 1)
    t.match(state.events[0], { ...last, occurredAtMs: world.nowMs })
    t.equal(state.statusAtMs, world.nowMs)
    t.equal(state.sizeBytes, outcome?.sizeBytes ?? null)
    t.equal(world.deliveries().length, status === 'deferred' ? 1 : 0)
    t.equal(state.nextAttemptAtMs, status === 'deferred' ? (world.deliveries()[0]?.atMs ?? 0) : null)
  })
}

t.test('outcome: the next attempt follows the schedule, within a tenth, the same when decided again', async (t) => {
  const times = [0, 1].map(() => {
    const { world, due } = begin()
    world.claim(prepareAttempt, due)
    world.end(attemptOutcome, { ...due, attempt: 1 }, deferred)
    return (world.deliveries()[0]?.atMs ?? 0) - world.nowMs
  })
  t.equal(times[0], times[1])
  t.ok(times[0]! >= 54_000 && times[0]! <= 66_000, `${times[0]} ms`)
})

t.test('outcome: a returned item waits again, without an event [delivery.returned]', async (t) => {
  const { world, tenant, id, due } = begin()
  world.claim(prepareAttempt, due)
  const returned = reportOutcome(makeReturned('site', 'paused'), { ...ADA, retryAfterMs: 60_000 })
  world.end(attemptOutcome, { ...due, attempt: 1 }, returned)
  t.match(stateOf(world, tenant, id), { status: 'accepted', attempts: 0, events: [] })
  t.equal((world.deliveries()[0]?.atMs ?? 0) - world.nowMs, 60_000)
  world.nowMs += 60_000
  world.claim(prepareAttempt, due)
  world.end(attemptOutcome, { ...due, attempt: 2 }, deferred)
  t.equal(stateOf(world, tenant, id).attempts, 1, 'one attempt came to something')
  const delayMs = (world.deliveries()[0]?.atMs ?? 0) - world.nowMs
  t.ok(delayMs <= 66_000, 'and the schedule is at its beginning')
  world.end(attemptOutcome, { ...due, attempt: 1 }, returned)
  t.equal((world.deliveries()[0]?.atMs ?? 0) - world.nowMs, delayMs, 'a stale one changes nothing')
})

/** The last reply before the site was left alone -> the class at the end. */
const WAITED: readonly (readonly [phase: 'conn' | 'rcpt', response: string | null, classification: string])[] = [
  ['rcpt', null, 'MessageExpired'],
  ['rcpt', '452 4.2.2 Mailbox full', 'QuotaIssues'],
  ['rcpt', '450 4.1.1 User unknown', 'InvalidRecipient'],
  ['conn', '554 5.7.1 blocked using zen.spamhaus.org', 'SpamBlock'],
  ['conn', '550', 'Uncategorized'],
]
for (const [phase, response, classification] of WAITED)
  t.test(`outcome: waits past 48 hours after ${response} -> ${classification} [delivery.expiry]`, async (t) => {
    const { world, tenant, id, due } = begin()
    const refused = { ...makeRefused({ phase, response: response ?? '' }), result: 'deferred', hard: false } as const
    world.claim(prepareAttempt, due)
    world.end(attemptOutcome, { ...due, attempt: 1 }, response === null ? noConnection : reportOutcome(refused, ADA))
    world.nowMs += 48 * HOUR_MS
    world.claim(prepareAttempt, due)
    const returned = reportOutcome(makeReturned('site', 'paused'), { ...ADA, retryAfterMs: 60_000 })
    world.end(attemptOutcome, { ...due, attempt: 2 }, returned)
    const state = stateOf(world, tenant, id)
    const told = { event: 'bounced', response: response ?? noConnection.response, classification, expired: true }
    t.match(state.events.at(-1), { ...told, hard: false })
    t.same([state.status, world.deliveries().length], ['bounced', 0])
  })

t.test('outcome: a server that names its patience gets it', async (t) => {
  const { world, due } = begin()
  world.claim(prepareAttempt, due)
  const patient = { ...deferred, response: '451 4.7.1 Greylisted, try again in 600 seconds' }
  world.end(attemptOutcome, { ...due, attempt: 1 }, patient)
  t.equal((world.deliveries()[0]?.atMs ?? 0) - world.nowMs, 610_000)
})

/** Two attempts were made; attempt 1 is stale. */
const STALE: readonly { name: string; attempt: number; outcome: AttemptOutcome; status: string; left: number }[] = [
  { name: 'delivered by the stale one', attempt: 1, outcome: delivered, status: 'delivered', left: 0 },
  { name: 'bounced by the stale one', attempt: 1, outcome: bounced, status: 'bounced', left: 0 },
  { name: 'put off by the stale one', attempt: 1, outcome: deferred, status: 'accepted', left: 1 },
  { name: 'put off by the current one', attempt: 2, outcome: deferred, status: 'deferred', left: 1 },
]

for (const { name, attempt, outcome, status, left } of STALE) {
  t.test(`outcome: ${name} -> ${status}`, async (t) => {
    const { world, tenant, id, due } = begin()
    world.claim(prepareAttempt, due)
    world.claim(prepareAttempt, due)
    world.end(attemptOutcome, { ...due, attempt }, outcome)
    t.equal(stateOf(world, tenant, id).status, status)
    t.equal(world.deliveries().length, left)
  })
}

t.test('outcome: a final recipient does not change', async (t) => {
  const { world, tenant, id, due } = begin()
  world.claim(prepareAttempt, due)
  world.end(attemptOutcome, { ...due, attempt: 1 }, delivered)
  const before = stateOf(world, tenant, id)
  for (const outcome of [bounced, deferred, delivered, null]) {
    world.nowMs += 1000
    world.end(attemptOutcome, { ...due, attempt: 2 }, outcome)
    t.same(stateOf(world, tenant, id), before)
    t.same(world.deliveries(), [])
  }
})

t.test('outcome: the first one writes the row, and reads nothing else', async (t) => {
  const { world, tenant, id, due } = begin()
  const key = statusKey(world.shard, tenant.live.serverId, '202611-0-1')
  t.notOk(world.keys.has(key))
  world.claim(prepareAttempt, due)
  t.notOk(world.keys.has(key), 'a claim is no outcome')
  world.end(attemptOutcome, { ...due, attempt: 1 }, delivered)
  t.equal(world.rounds, 1)
  t.same([...world.hash(key).keys()], [shortId(id)])
  t.same(world.forgets, [{ key, fields: [shortId(id)] }])
  t.equal(stateOf(world, tenant, id).status, 'delivered')
})

t.test('outcome: a message that left the log gets no write, and its item is removed', async (t) => {
  for (const outcome of [delivered, deferred, bounced, null]) {
    const { world, tenant, due } = begin()
    world.claim(prepareAttempt, due)
    world.nowMs = Date.UTC(2027, 11, 20, 12, 1, 1)
    world.fireTimers()
    t.same(
      world.keyNames().filter((key) => key.includes(tenant.live.serverId) && /:(log|head|status):/.test(key)),
      [],
      'it was swept while its attempt was under way',
    )
    world.end(attemptOutcome, { ...due, attempt: 1 }, outcome)
    t.same(world.ops, [])
    t.same(world.deliveries(), [])
  }
})

t.test('outcome: for a message past its age nothing is written, even before the sweep', async (t) => {
  const { world, due } = begin()
  world.claim(prepareAttempt, due)
  world.nowMs = Date.UTC(2027, 11, 20, 12, 0, 0)
  world.run(attemptOutcome, { ...due, attempt: 1, current: true, outcome: delivered })
  t.equal(world.ops.length, 3, 'in its last millisecond it still counts')
  world.nowMs += 1
  const other = begin()
  other.world.nowMs = world.nowMs
  other.world.run(attemptOutcome, { ...other.due, attempt: 1, current: true, outcome: bounced })
  t.same(other.world.ops, [])
})

t.test('outcome: for a removed server nothing is written', async (t) => {
  const { world, tenant, due } = begin()
  world.claim(prepareAttempt, due)
  world.counters.delete(`server:${tenant.live.serverId}`)
  world.end(attemptOutcome, { ...due, attempt: 1 }, delivered)
  t.same(world.ops, [])
  t.same(world.deliveries(), [])
})

t.test('outcome: recipients end apart; the size is stored with the first, whichever is built first', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const recipients = [makeRecipient('a@example.net'), makeRecipient('b@example.net')]
  const [id = ''] = acceptedIds(send(world, tenant, { messages: [makeItem({ recipients })] }))
  const [first, second] = world.deliveries()
  world.end(attemptOutcome, { lane: second!.lane, item: second!.item, attempt: 1 }, bounced)
  t.match(stateOf(world, tenant, id), { status: 'accepted', sizeBytes: 900 })
  t.match(stateOf(world, tenant, id, 1), { status: 'bounced', sizeBytes: null })
  const fields = world.forgets.flatMap((one) => one.fields)
  t.same(fields, [statusField(shortId(id), 1)], 'nobody asks for it again')
  world.end(attemptOutcome, { lane: first!.lane, item: first!.item, attempt: 1 }, { ...delivered, sizeBytes: 901 })
  t.same(world.forgets, [], 'the outcomes of the others look at the first')
  t.match(stateOf(world, tenant, id), { status: 'delivered', sizeBytes: 900 })
})

t.test('outcome: attachments stay until the last recipient has ended [retention.attachments]', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const parts = ['body', 'a0', 'a1'].map((part, blob) => ({ part, chunks: part === 'a1' ? 2 : 1, blob }))
  const file = { name: 'f', contentType: null, contentId: null, inline: false }
  const attachments = [
    { ...file, size: 3 },
    { ...file, size: 256 * 1024 },
  ]
  const recipients = ['a', 'b', 'c'].map((name) => makeRecipient(`${name}@example.net`))
  const messages = [makeItem({ recipients, attachments, content: { parts, stored: null } })]
  const blobs = [0, 1, 2, 3].map(() => Buffer.from('x'))
  acceptedIds(send(world, tenant, { messages }, { blobs, cmdId: 'mwoxfuo00abcdefghi' }))
  const content = () => world.keyNames().filter((key) => key.includes(':content:')).length
  t.equal(content(), 3)
  const [first, second, third] = world.deliveries()
  for (const due of [first, second, third]) world.claim(prepareAttempt, due!)
  world.end(attemptOutcome, { ...third!, attempt: 1 }, delivered)
  world.end(attemptOutcome, { ...first!, attempt: 1 }, deferred)
  world.end(attemptOutcome, { ...second!, attempt: 1 }, bounced)
  t.equal(content(), 3)
  world.claim(prepareAttempt, first!)
  world.end(attemptOutcome, { ...first!, attempt: 2 }, null)
  t.equal(content(), 0)
  const { key, field } = bodyPlace(world.shard, 'mwoxfuo00abcdefghi-0', false)
  t.ok(world.hash(key).has(field), 'the body stays')
})

t.test('outcome: the simulator’s script, from acceptance to the end', async (t) => {
  const scripts: readonly (readonly [localPart: string, events: readonly string[], status: string])[] = [
    ['delivered', ['delivered'], 'delivered'],
    ['bounce', ['bounced'], 'bounced'],
    ['deferred', ['deferred', 'deferred', 'delivered'], 'delivered'],
    ['expired', ['deferred', 'deferred', 'bounced'], 'bounced'],
  ]
  for (const [localPart, events, status] of scripts) {
    const world = new World(NOW_MS)
    const tenant = makeTenant(world)
    const recipients = [makeRecipient(`${localPart}@simulator.test`)]
    const messages = [makeItem({ recipients, lane: 'simulate' })]
    const [id = ''] = acceptedIds(send(world, tenant, { test: true, messages }))
    for (let due = world.deliveries()[0]; due !== undefined; due = world.deliveries()[0]) {
      world.nowMs = Math.max(world.nowMs, due.atMs)
      const claim = world.claim<AttemptJob>(prepareAttempt, due)
      if (claim === null) break
      const { address } = claim.job.recipient
      const outcome = simulatedOutcome({ address, attempt: claim.attempt })
      const retryAfterMs = outcome.result === 'deferred' ? SIMULATED_RETRY_MS : null
      world.end(
        attemptOutcome,
        claim,
        reportOutcome(outcome, { address, sizeBytes: 700, retryAfterMs, hmac: () => hmacOf(address) }),
      )
    }
    const packed = world.hash(statusKey(world.shard, tenant.test.serverId, '20261120-0-1'))
    const state = unpackStatus(packed.get(shortId(id)) ?? null, msOf(id))
    t.same(
      state.events.map(({ event }) => event),
      events,
    )
    t.equal(state.status, status)
    t.equal(world.nowMs, NOW_MS + (events.length - 1) * 1000)
    t.equal(state.events.at(-1)?.event === 'bounced' && localPart === 'expired', localPart === 'expired')
  }
})

t.test('outcome: the growth of statuses is counted in the open segment, and in no other', async (t) => {
  const { world, tenant, due } = begin()
  const counters = () => world.counters.get(`server:${tenant.live.serverId}`) as ServerCounters
  const before = counters().segment?.bytes ?? 0
  world.claim(prepareAttempt, due)
  world.end(attemptOutcome, { ...due, attempt: 1 }, deferred)
  t.equal(counters().segment?.bytes, before, 'a short status is allowed for')
  world.claim(prepareAttempt, due)
  world.end(attemptOutcome, { ...due, attempt: 2 }, { ...deferred, response: `451 ${'x'.repeat(400)}` })
  const grown = (counters().segment?.bytes ?? 0) - before
  t.ok(grown > 300 && grown < 420, `${grown} bytes`)
  const segment = { name: '202611-1-1', recipients: 0, bytes: 0, lastMs: 0 }
  world.counters.set(`server:${tenant.live.serverId}`, { segment })
  world.claim(prepareAttempt, due)
  world.end(attemptOutcome, { ...due, attempt: 3 }, { ...deferred, response: `452 ${'x'.repeat(400)}` })
  t.equal(counters().segment?.bytes, 0)
})

type Tenant = ReturnType<typeof makeTenant>

function begin() {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const [id = ''] = acceptedIds(send(world, tenant))
  const due = world.deliveries()[0]
  if (due === undefined) throw new Error('Nothing is due')
  return { world, tenant, id, due }
}

/** Attempts without an outcome that is announced. */
function seedAttempts(world: World, { tenant, id, attempts }: { tenant: Tenant; id: string; attempts: number }): void {
  const state = { attempts, nextAttemptAtMs: null, events: [], sizeBytes: null }
  const fields = new Map([[statusField(shortId(id), 0), packStatus(state, msOf(id))]])
  world.keys.set(statusKey(world.shard, tenant.live.serverId, '202611-0-1'), { type: 'hash', fields })
}

function stateOf(world: World, tenant: Tenant, id: string, recipient = 0): RecipientState {
  const row = world
    .hash(statusKey(world.shard, tenant.live.serverId, '202611-0-1'))
    .get(statusField(shortId(id), recipient))
  return unpackStatus(row ?? null, msOf(id))
}
