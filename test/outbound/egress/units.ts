/** units - ceilings that no process and no hour exceeds. */

import t from 'tap'
import { type UnitCounts, Units, windowNames } from '../../../src/outbound/egress/units.ts'
import { WARM_UP_SCHEDULE, warmUpCeiling } from '../../../src/outbound/egress/warm-up.ts'
import { countsInMemory } from '../../support/world/egress.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const START_MS = Date.parse('2026-12-01T00:00:00Z')

function setUp(processes = 1) {
  const clock = { nowMs: START_MS }
  const { counts, used } = countsInMemory()
  const all = Array.from(
    { length: processes },
    () => new Units({ counts, nowMs: () => clock.nowMs, sharers: () => processes }),
  )
  return { clock, counts, used, units: all[0]!, all }
}

const isUnit = (taken: object) => !('why' in taken)

t.test('egress: windows are named by hour and day', async (t) => {
  t.same(windowNames(START_MS + 5 * HOUR_MS), { hour: '2026120105', day: '20261201' })
  t.same(windowNames(START_MS + DAY_MS - 1), { hour: '2026120123', day: '20261201' })
})

t.test('egress: 30 days of warm-up send exactly the schedule, with two processes [egress.warmup]', async (t) => {
  const { clock, all } = setUp(2)
  const warmUp = { startMs: START_MS, schedule: WARM_UP_SCHEDULE.map((value) => Math.ceil(value / 500)) }
  for (const [day, expected] of warmUp.schedule.entries()) {
    let sent = 0
    for (let hour = 0; hour < 24; hour += 1) {
      clock.nowMs = START_MS + day * DAY_MS + hour * HOUR_MS
      const ceilings = { hour: null, day: warmUpCeiling(warmUp, clock.nowMs) }
      for (let n = 0; n < Math.ceil(expected / 20) + 1; n += 1)
        for (const units of all) if (isUnit(await units.take('a', 'x', ceilings))) sent += 1
    }
    t.equal(sent, expected, `day ${day + 1}`)
  }
})

t.test('egress: no unit of one hour is used in the next [egress.ceiling]', async (t) => {
  const { clock, units } = setUp()
  const ceilings = { hour: 100, day: null }
  const sent = [0, 0]
  for (let n = 0; n < 10; n += 1) if (isUnit(await units.take('a', 'x', ceilings))) sent[0]! += 1
  const late = await units.take('a', 'x', ceilings)
  clock.nowMs += HOUR_MS
  t.notOk('why' in late ? true : late.isCurrent(), 'an attempt that waited asks again')
  if (!('why' in late)) late.release()
  for (let n = 0; n < 300; n += 1) if (isUnit(await units.take('a', 'x', ceilings))) sent[1]! += 1
  t.same(sent, [10, 100])
})

t.test('egress: units that are not proven unused stay counted, released ones are used again', async (t) => {
  const { clock, counts, units } = setUp()
  const ceilings = { hour: null, day: 20 }
  const taken = []
  for (let n = 0; n < 20; n += 1) taken.push(await units.take('a', 'x', ceilings))
  t.ok(taken.every(isUnit))
  t.match(await units.take('a', 'x', ceilings), { why: /20 messages a day/, untilMs: START_MS + DAY_MS })
  const [first] = taken
  if (first && !('why' in first)) first.release()
  t.ok(isUnit(await units.take('a', 'x', ceilings)))
  // A process that was killed gives nothing back.
  const next = new Units({ counts, nowMs: () => clock.nowMs, sharers: () => 1 })
  t.notOk(isUnit(await next.take('a', 'x', ceilings)))
})

t.test('egress: a stop gives unused units back, and a lower ceiling counts at once [egress.ceiling]', async (t) => {
  const { clock, counts, units, used } = setUp()
  t.ok(isUnit(await units.take('a', 'x', { hour: null, day: 800 })))
  t.equal(used.get('20261201 a|x'), 100)
  t.notOk(isUnit(await units.take('a', 'x', { hour: null, day: 1 })), 'of its hundred units one was used')
  t.equal(used.get('20261201 a|x'), 1)
  const other = new Units({ counts, nowMs: () => clock.nowMs, sharers: () => 1 })
  t.ok(isUnit(await other.take('a', 'y', { hour: 10, day: 800 })))
  await other.close()
  t.equal(used.get('20261201 a|y'), 1)
  t.equal(used.get('2026120100 a|y'), 1)
})

t.test('egress: attempts that wait at a stop give their units back as well [egress.ceiling]', async (t) => {
  const { units, used } = setUp()
  const ceilings = { hour: null, day: 50 }
  const waiting = await Promise.all(Array.from({ length: 20 }, () => units.take('a', 'x', ceilings)))
  const late = units.take('a', 'y', ceilings)
  await units.close()
  for (const one of waiting) if (!('why' in one)) one.release()
  t.match(await late, { why: /stopping/ })
  t.match(await units.take('a', 'z', ceilings), { why: /stopping/ })
  t.same([...used.values()], [0, 0])
})

t.test('egress: without the store nothing with a ceiling is sent', async (t) => {
  const counts: UnitCounts = { take: () => Promise.reject(new Error('down')), give: async () => undefined }
  const units = new Units({ counts, nowMs: () => START_MS, sharers: () => 1 })
  t.match(await units.take('a', 'x', { hour: 5, day: null }), { why: /did not answer/ })
  t.ok(isUnit(await units.take('a', 'x', { hour: null, day: null })), 'what has none is sent')
})
