/** day-count - the last 24 hours of a server, hour by hour. */

import t from 'tap'
import { attemptOutcome, reportOutcome } from '../../../src/actors/message/attempted.ts'
import { recordReport } from '../../../src/actors/message/record-report.ts'
import { makeRefused } from '../../../src/mail/classify.ts'
import { makeDelivered } from '../../../src/mail/outcome.ts'
import { countInDay, type DayCounters, dayCountOf, dayEventOf } from '../../../src/state/message/day-count.ts'
import { makeTenant, send } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const HOUR_MS = 3_600_000
const NOW_MS = 480_000 * HOUR_MS

t.test('day-count: events of an hour add up, and are gone 24 hours later [account.detail]', async (t) => {
  let day: DayCounters | null = null
  for (const event of ['delivered', 'delivered', 'bounced', 'complained'] as const) day = countInDay(day, event, NOW_MS)
  t.same(day, [[480_000, 2, 1, 1]])
  t.same(dayCountOf(day, NOW_MS + 23 * HOUR_MS), { delivered: 2, bounced: 1, complained: 1 })
  t.same(dayCountOf(day, NOW_MS + 24 * HOUR_MS), { delivered: 0, bounced: 0, complained: 0 })
  const later = countInDay(day, 'delivered', NOW_MS + 24 * HOUR_MS)
  t.same(later, [[480_024, 1, 0, 0]], 'what is past its hour is dropped')
})

t.test('day-count: at most 24 hours are kept, and a clock that goes back counts on', async (t) => {
  let day: DayCounters | null = null
  for (let hour = 0; hour < 100; hour += 1) day = countInDay(day, 'bounced', NOW_MS + hour * HOUR_MS)
  t.equal(day?.length, 24)
  t.same(countInDay(day, 'delivered', NOW_MS).at(-1), [480_099, 1, 1, 0])
  t.same(dayCountOf(null, NOW_MS), { delivered: 0, bounced: 0, complained: 0 })
})

t.test('day-count: what counts as what', async (t) => {
  const bounce = { event: 'bounced', occurredAtMs: 1, code: null, response: null, classification: null } as const
  const more = { hard: true, expired: false } as const
  t.equal(dayEventOf({ ...bounce, ...more, status: 'bounced' }), 'bounced')
  t.equal(dayEventOf({ ...bounce, ...more, status: 'failed' }), null, 'it was never sent')
  t.equal(dayEventOf({ event: 'delivered', occurredAtMs: 1, code: 250, response: null }), 'delivered')
  t.equal(dayEventOf({ event: 'deferred', occurredAtMs: 1, code: 451, response: null }), null)
  t.equal(dayEventOf({ event: 'spam_complaint', occurredAtMs: 1, feedbackType: null }), 'complained')
})

t.test('day-count: outcomes of live mail count for its server, of test mail for none [account.detail]', async (t) => {
  const told = { address: 'ada@example.net', sizeBytes: 9, retryAfterMs: null, hmac: () => 'x'.repeat(22) }
  const cases = [
    [makeDelivered(250, '250 2.0.0 Ok'), [[480_000, 1, 0, 0]]],
    [makeRefused({ phase: 'rcpt', response: '452 4.2.2 full' }), undefined],
  ] as const
  for (const [outcome, day] of cases) {
    for (const test of [false, true]) {
      const world = new World(NOW_MS)
      const tenant = makeTenant(world)
      send(world, tenant, { test })
      world.end(attemptOutcome, { ...world.deliveries()[0]!, attempt: 1 }, reportOutcome(outcome, told))
      const { serverId } = test ? tenant.test : tenant.live
      t.same(world.counters.get(`day:${serverId}`), test ? undefined : day)
    }
  }
})

t.test('day-count: a complaint that is reported later counts too [account.detail]', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  send(world, tenant)
  const due = world.deliveries()[0]!
  const told = { address: 'ada@example.net', sizeBytes: 9, retryAfterMs: null, hmac: () => 'x'.repeat(22) }
  world.end(attemptOutcome, { ...due, attempt: 1 }, reportOutcome(makeDelivered(250, '250 2.0.0 Ok'), told))
  world.nowMs += HOUR_MS
  const body = { item: due.item, hmac: null, report: { kind: 'complaint', feedbackType: 'abuse' } } as const
  t.equal(world.run(recordReport, body), 'recorded')
  const day = world.counters.get(`day:${tenant.live.serverId}`) as DayCounters
  t.same(day, [
    [480_000, 1, 0, 0],
    [480_001, 0, 0, 1],
  ])
})
