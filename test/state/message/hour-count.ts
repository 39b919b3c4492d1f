/** hour-count - the running hour of a server, and how it becomes rows of its month. */

import t from 'tap'
import { monthName } from '../../../src/state/calendar.ts'
import { statsKey } from '../../../src/state/keys.ts'
import { acceptedRow, addRows, classifyEvent, countInHour, rowOf } from '../../../src/state/message/hour-count.ts'
import { statsFact, statsOps, unpackStatsDay } from '../../../src/state/message/stats-rows.ts'
import type { HourCounters } from '../../../src/state/server.ts'
import { World } from '../../support/world/turn.ts'

const HOUR_MS = 3_600_000
const HOUR = 480_000
const NOW_MS = HOUR * HOUR_MS
const SERVER = '01a1f8d8-8300-7017-8000-0e7faee555a7'

t.test('hour-count: figures of an hour add up, stream by stream [stats.count]', async (t) => {
  let hour: HourCounters | null = null
  const counts = [
    ['0', acceptedRow(2, 1)],
    ['0', rowOf('delivered')],
    ['stream', rowOf('hardBounced')],
    ['0', rowOf('delivered')],
  ] as const
  for (const [stream, figures] of counts) {
    const counted = countInHour(hour, [{ stream, figures }], NOW_MS + 5)
    t.equal(counted.ended, null)
    hour = counted.value
  }
  t.same(hour, [HOUR, { 0: [2, 2, 0, 0, 0, 0, 0, 1], stream: [0, 0, 0, 1] }])
  t.same(addRows([1], [0, 2]), [1, 2])
  t.same(addRows([1, 2, 3], [4]), [5, 2, 3])
})

t.test('hour-count: a later hour ends the one before, a clock that goes back counts on', async (t) => {
  const before: HourCounters = [HOUR, { 0: [1] }]
  const one = [{ stream: '0', figures: [1] }]
  t.same(countInHour(before, one, NOW_MS + HOUR_MS), { value: [HOUR + 1, { 0: [1] }], ended: before })
  t.same(countInHour(before, one, NOW_MS - HOUR_MS), { value: [HOUR, { 0: [2] }], ended: null })
})

t.test('hour-count: more streams than a counter holds end it within the hour', async (t) => {
  let hour: HourCounters | null = null
  let ends = 0
  for (let n = 0; n < 100; n += 1) {
    const counted = countInHour(hour, [{ stream: `s${n % 50}`, figures: [1] }], NOW_MS)
    if (counted.ended !== null) ends += 1
    hour = counted.value
    t.ok(Object.keys(hour[1]).length <= 16)
  }
  t.equal(ends, 6, '16 streams at a time')
})

t.test('hour-count: the figure of each event', async (t) => {
  const bounce = { event: 'bounced', occurredAtMs: 1, code: null, response: null, classification: null } as const
  const deferred = { event: 'deferred', occurredAtMs: 1, code: 451, response: null } as const
  t.equal(classifyEvent({ ...bounce, hard: true, expired: false, status: 'bounced' }, []), 'hardBounced')
  t.equal(classifyEvent({ ...bounce, hard: false, expired: true, status: 'bounced' }, []), 'softBounced')
  t.equal(classifyEvent({ ...bounce, hard: false, expired: false, status: 'failed' }, []), null, 'it was never sent')
  t.equal(
    classifyEvent({ ...bounce, hard: true, expired: false, status: 'suppressed' }, []),
    null,
    'counted at acceptance',
  )
  t.equal(classifyEvent({ event: 'delivered', occurredAtMs: 1, code: 250, response: null }, [deferred]), 'delivered')
  t.equal(classifyEvent(deferred, []), 'deferred')
  t.equal(classifyEvent(deferred, [deferred]), null, 'once for each recipient')
  t.equal(classifyEvent({ event: 'spam_complaint', occurredAtMs: 1, feedbackType: null }, []), 'complained')
  t.equal(classifyEvent({ event: 'unsubscribed', occurredAtMs: 1, source: 'link' }, []), 'unsubscribed')
  t.equal(classifyEvent({ event: 'cancelled', occurredAtMs: 1 }, []), null)
})

t.test('stats-rows: an hour is added to its month, and to all streams together', async (t) => {
  const world = new World(NOW_MS)
  const place = { shard: world.shard, serverId: SERVER }
  const facts = { field: (key: string, field: string) => world.hash(key).get(field) ?? null } as never
  const move = (ended: HourCounters) => {
    for (const op of statsOps(facts, place, ended)) world.apply(op)
  }
  move([HOUR, { 0: [2, 1], s: [0, 0, 1] }])
  move([HOUR + 1, { 0: [1] }])
  move([HOUR, { 0: [1, 0, 0, 0, 0, 0, 0, 1] }])
  const key = statsKey(world.shard, SERVER, monthName(NOW_MS))
  t.equal(statsFact(place, [HOUR, {}]).key, key)
  const rows = Object.fromEntries([...world.hash(key)].map(([field, text]) => [field, [...unpackStatsDay(text)]]))
  t.same(rows, {
    '0.04': [
      [0, [3, 1, 0, 0, 0, 0, 0, 1]],
      [1, [1]],
    ],
    's.04': [[0, [0, 0, 1]]],
    '*.04': [
      [0, [3, 1, 1, 0, 0, 0, 0, 1]],
      [1, [1]],
    ],
  })
  t.same(statsOps(facts, place, [HOUR, {}]), [], 'an hour without a figure writes nothing')
})
