/** erasure - spans in which events of a person were announced: bounded, and as little as can be read for nothing. */
import t from 'tap'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/state/calendar.ts'
import { type ToldSpan, toldAt, toldOf, WALK_BEGIN, type WalkPlace, withTold } from '../../src/state/erasure.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)

/** A place that came to know of events at these times, a few at a time. */
function knowing(times: readonly number[], each = 7): WalkPlace {
  let place = WALK_BEGIN
  for (let at = 0; at < times.length; at += each)
    place = withTold(place, times.slice(at, at + each).map(toldOf), NOW_MS)
  return place
}

/** Milliseconds of the spans from an instant on. */
const covered = (spans: readonly ToldSpan[], fromMs: number) =>
  spans.reduce((sum, [from, until]) => sum + Math.max(0, Math.min(until, NOW_MS) - Math.max(from, fromMs)), 0)

t.test('erasure: a mail a day for 13 months is looked at day by day where deliveries still wait', async (t) => {
  const times = Array.from({ length: 395 }, (_, day) => NOW_MS - (395 - day) * DAY_MS + ((day * 7) % 24) * MINUTE_MS)
  const told = toldAt(knowing(times))
  t.equal(told.length, 200)
  t.ok(times.every((ms) => told.some(([from, until]) => from <= ms && ms + HOUR_MS <= until)))
  t.equal(covered(told, NOW_MS - 30 * DAY_MS), 30 * HOUR_MS, 'an hour of each day')
})

t.test('erasure: of more than are kept the nearest to each other become one', async (t) => {
  const times = Array.from(
    { length: 300 },
    (_, n) => NOW_MS - 25 * DAY_MS + n * 2 * HOUR_MS - (n % 3 === 0 ? 50 * MINUTE_MS : 0),
  )
  const told = toldAt(knowing(times, 300))
  t.equal(told.length, 200)
  t.equal(covered(told, 0), 300 * HOUR_MS + 99 * 10 * MINUTE_MS + HOUR_MS)
})

t.test('erasure: where spans are not known all times are', async (t) => {
  const { told: _, ...place }: WalkPlace = WALK_BEGIN
  t.same(toldAt(place as WalkPlace), [[0, Number.MAX_SAFE_INTEGER]])
  t.same(toldAt(withTold(place, [toldOf(NOW_MS)], NOW_MS)), toldAt(place as WalkPlace))
})
