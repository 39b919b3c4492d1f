/** failover - which source takes a message after a block, and how an attempt ends without one. */

import t from 'tap'
import type { EgressBody } from '../../../schemas/operator/egress.ts'
import { makeRefused, makeUnasked } from '../../../src/mail/classify.ts'
import { makeDeferred, makeDelivered, makeReturned } from '../../../src/mail/outcome.ts'
import { attemptByPool, blockOf, type UnitHolder } from '../../../src/outbound/egress/failover.ts'
import { REST_MS } from '../../../src/outbound/egress/rests.ts'
import type { MailOutcome } from '../../../src/outbound/thread/thread-job.ts'
import { egressOf, egressPlan } from '../../support/world/egress.ts'

const reply = (response: string): MailOutcome => ({
  ...makeRefused({ phase: 'rcpt', response }),
  sizeBytes: 1,
  contact: 'answered',
})
const DELIVERED: MailOutcome = { ...makeDelivered(250, '250 ok'), sizeBytes: 1, contact: 'answered' }
const BLOCKED = reply('550 5.7.1 Service unavailable; client host [192.0.2.1] blocked using zen.spamhaus.org')
const UNKNOWN = reply('550 5.1.1 no such user')
const DEAD: MailOutcome = { ...makeDeferred('conn', 'NoAnswerFromHost', 'no'), sizeBytes: 1, contact: 'refused' }
const PAUSED: MailOutcome = { ...makeReturned('site', 'site is paused'), sizeBytes: null, afterMs: 7 }
const CEILING = { hour: null, day: null }

const POOL: Partial<EgressBody> = {
  sources: ['a', 'b', 'c'].map((name, at) => ({ name, address: `192.0.2.${at + 1}` })),
  pools: [{ name: 'all', sources: ['a', 'b', 'c'].map((source) => ({ source })) }],
  defaultPool: 'all',
}

function setUp(
  answers: Readonly<Record<string, MailOutcome>>,
  {
    body = POOL,
    ceilings = {},
    absent = [] as string[],
    hasDocument = true,
    during = async (_: UnitHolder) => {},
  } = {},
) {
  const clock = { nowMs: 1_000_000 }
  const tried: string[] = []
  const egress = egressOf(egressPlan(body), { nowMs: () => clock.nowMs })
  const attempt = (acceptedAtMs = clock.nowMs) =>
    attemptByPool(egress.failover, {
      pool: egress.plan().defaultPool,
      hasDocument,
      acceptedAtMs,
      mayGoOn: () => true,
      siteOf: () => 'x',
      ceilingsOf: ({ name }) => (ceilings as Record<string, typeof CEILING>)[name] ?? CEILING,
      mask: (text) => text,
      isHere: ({ name }) => !absent.includes(name),
      send: async ({ name }, unit) => {
        tried.push(name)
        await during(unit)
        return answers[name] ?? DELIVERED
      },
    })
  const triedNow = async (acceptedAtMs?: number) => {
    tried.length = 0
    return { outcome: await attempt(acceptedAtMs), tried: [...tried] }
  }
  return { attempt: triedNow, egress, clock }
}

t.test(
  'egress: after a block the next source sends in the same attempt, the first rests [egress.failover]',
  async (t) => {
    const { attempt, egress, clock } = setUp({ a: BLOCKED })
    t.same(await attempt(), { outcome: DELIVERED, tried: ['a', 'b'] })
    t.match(egress.rested, [{ source: 'a', site: 'x', isBegun: true }])
    t.same((await attempt()).tried, ['b'])
    clock.nowMs += REST_MS
    t.same((await attempt()).tried, ['a', 'b'], 'one attempt after the rest')
    t.same((await attempt()).tried, ['b'])
  },
)

t.test('egress: a block is final only if no source could have sent the message [egress.failover]', async (t) => {
  const { attempt, egress } = setUp({ a: BLOCKED, b: BLOCKED, c: BLOCKED })
  t.match(await attempt(), { outcome: { result: 'bounced', hard: false }, tried: ['a', 'b', 'c'] })
  const waits = await attempt()
  t.match(waits, { outcome: { result: 'returned', response: /no source may send now: a: .*spamhaus/ }, tried: [] })
  const spare = setUp({ a: BLOCKED, b: BLOCKED })
  spare.egress.failover.rests.blocked('c', 'x', { nowMs: 1_000_000, why: 'listed' })
  t.match(await spare.attempt(), { outcome: { result: 'deferred', hard: false, code: 550 } }, 'c only rests')
  const other = setUp({ a: BLOCKED, b: BLOCKED })
  other.egress.failover.rests.blocked('c', 'elsewhere', { nowMs: 1_000_000, why: 'listed' })
  t.match(await other.attempt(), { outcome: { result: 'delivered' }, tried: ['a', 'b', 'c'] })
  t.ok(egress.rested.every(({ isBegun }) => isBegun))
})

t.test('egress: a refusal of the recipient or the message tries no other source [egress.failover]', async (t) => {
  for (const outcome of [UNKNOWN, reply('550 5.7.1 message looks like spam'), reply('450 4.2.0 greylisted')]) {
    const { attempt, egress } = setUp({ a: outcome })
    t.same(await attempt(), { outcome, tried: ['a'] })
    t.same(egress.rested, [])
  }
  const lost = { ...makeDeferred('dot', 'BadConnection', 'lost'), sizeBytes: 1, contact: 'answered' } as const
  t.same((await setUp({ a: lost }).attempt()).tried, ['a'], 'the server may have taken it')
  const gone = { ...makeUnasked('unbuildable'), sizeBytes: null }
  t.same((await setUp({ a: gone }).attempt()).tried, ['a'])
})

t.test('egress: without a document a block ends one message, and nothing rests [egress.rest]', async (t) => {
  for (const outcome of [BLOCKED, reply('421 4.7.1 connection refused by policy'), DEAD]) {
    const { attempt, egress } = setUp({ default: outcome }, { body: {}, hasDocument: false })
    for (let n = 0; n < 3; n += 1) t.same(await attempt(), { outcome, tried: ['default'] })
    t.same(egress.rested, [])
  }
})

t.test('egress: a relay rests while it is down, not for its reply to one message [egress.rest]', async (t) => {
  const sources = [{ name: 'r', relay: 'smtp://relay.test' }]
  const body = { sources, pools: [{ name: 'all', sources: [{ source: 'r' }] }], defaultPool: 'all' }
  const { attempt, egress } = setUp({ r: BLOCKED }, { body })
  t.match(await attempt(), { outcome: { result: 'bounced' }, tried: ['r'] })
  t.same((await attempt()).tried, ['r'], 'the next message may be another')
  t.same(egress.rested, [])
  const down = setUp({ r: DEAD }, { body })
  t.same((await down.attempt()).tried, ['r'])
  t.same((await down.attempt()).tried, [])
})

t.test(
  'egress: a source of a family that the site lacks leaves the mail to the others [egress.failover]',
  async (t) => {
    const four: MailOutcome = {
      ...makeDeferred('dns', 'RoutingErrors', '4.4.4 no address'),
      sizeBytes: 1,
      contact: 'none',
    }
    const local: MailOutcome = { ...makeUnasked('private-only'), sizeBytes: 1, contact: 'none' }
    for (const outcome of [four, local]) {
      const { attempt, egress } = setUp({ a: outcome })
      t.same(await attempt(), { outcome: DELIVERED, tried: ['a', 'b'] })
      t.same(egress.rested, [])
    }
    t.match(await setUp({ a: BLOCKED, b: four, c: four }).attempt(), { outcome: BLOCKED, tried: ['a', 'b', 'c'] })
    t.match(await setUp({ a: four, b: four, c: four }).attempt(), { outcome: four })
  },
)

t.test('egress: after a rest one attempt goes first, also if several begin at once [egress.rest]', async (t) => {
  const { attempt, clock } = setUp({ a: BLOCKED, b: BLOCKED, c: BLOCKED })
  await attempt()
  clock.nowMs += REST_MS
  const { tried } = await Promise.all([attempt(), attempt(), attempt()]).then(([, , last]) => last)
  t.same([...tried].sort(), ['a', 'b', 'c'], 'each source once')
})

t.test('egress: a throttled or paused source does not rest, and the next one sends at once', async (t) => {
  const busy = reply('421 4.7.0 too many messages, slow down')
  for (const outcome of [busy, PAUSED]) {
    const { attempt, egress } = setUp({ a: outcome })
    t.same((await attempt()).tried, ['a', 'b'])
    t.same(egress.rested, [])
  }
  t.equal(blockOf(busy), null)
  t.ok(blockOf(reply('421 4.7.1 connection refused by policy')), 'of the policy family')
  t.match(await setUp({ a: PAUSED, b: PAUSED, c: PAUSED }).attempt(), { outcome: PAUSED })
})

t.test('egress: a source that cannot connect rests once another one could [egress.failover]', async (t) => {
  const { attempt, egress } = setUp({ a: DEAD })
  t.same((await attempt()).tried, ['a', 'b'])
  t.match(egress.rested, [{ source: 'a' }])
  const dead = setUp({ a: DEAD, b: DEAD, c: DEAD })
  t.match(await dead.attempt(), { outcome: DEAD, tried: ['a', 'b', 'c'] })
  t.same(dead.egress.rested, [], 'the site itself is down')
  const shared = setUp({ a: { ...DEAD, contact: 'none', isShared: true } })
  t.same((await shared.attempt()).tried, ['a', 'b'], 'one that waited for the connection of another attempt')
})

t.test('egress: mail above a ceiling takes another source, or waits with its reason [egress.ceiling]', async (t) => {
  const ceilings = { a: { hour: null, day: 1 }, b: { hour: 1, day: null }, c: { hour: 2, day: null } }
  const { attempt } = setUp({}, { ceilings })
  t.same((await attempt()).tried, ['a'])
  t.same((await attempt()).tried, ['b'])
  t.same((await attempt()).tried, ['c'])
  t.same((await attempt()).tried, ['c'])
  const { outcome } = await attempt()
  t.match(outcome, { result: 'returned', response: /b: 1 messages an hour/ })
  t.ok((outcome.afterMs ?? 0) > 60_000)
  t.match((await attempt(1_000_000 - 49 * 3_600_000)).outcome, { result: 'deferred' }, 'it is too old to wait')
})

t.test('egress: nothing sent gives the unit back, an interrupted attempt does not', async (t) => {
  const one = { a: { hour: null, day: 1 }, b: { hour: null, day: 0 }, c: { hour: null, day: 0 } }
  const dead = setUp({ a: DEAD }, { ceilings: one })
  for (let n = 0; n < 3; n += 1) t.same((await dead.attempt()).tried, ['a'])
  const cut = setUp({ a: { ...makeReturned('abort', 'cut'), sizeBytes: null, contact: 'none' } }, { ceilings: one })
  t.same((await cut.attempt()).tried, ['a'])
  t.same((await cut.attempt()).tried, [], 'it may have been sent')
})

t.test('egress: an attempt that waits into the next hour has one message of the day [egress.ceiling]', async (t) => {
  const ceilings = { a: { hour: 1, day: 2 }, b: { hour: 0, day: null }, c: { hour: 0, day: null } }
  const during = async (unit: UnitHolder) => {
    clock.nowMs += 3_600_000
    t.equal(await unit.renew(), null)
  }
  const { attempt, clock } = setUp({}, { ceilings, during })
  for (let n = 0; n < 2; n += 1) {
    t.same((await attempt()).tried, ['a'])
    clock.nowMs += 3_600_000
  }
  t.same((await attempt()).tried, [], 'the day is used up, and no hour is')
})

t.test('egress: a machine without the address of a source does without it', async (t) => {
  t.same((await setUp({}, { absent: ['a'] }).attempt()).tried, ['b'])
  t.match(await setUp({}, { absent: ['a', 'b', 'c'] }).attempt(), {
    outcome: { result: 'returned', response: /none of the addresses/ },
  })
  const { outcome } = await setUp({ a: BLOCKED }, { absent: ['b', 'c'] }).attempt()
  t.match(outcome, { result: 'bounced' }, 'a source that is not here is no other source')
})
