/**
 * store-status - for a shard, the right one of several stores: its clock, its silence, whether a shard there is stuck.
 */
import t from 'tap'
import type { Clock } from '../../../cluster/clock.ts'
import { AnswerTimes, type Primary } from '../../../cluster/primaries.ts'
import { StoreStatus } from '../../../cluster/worker/store-status.ts'

function clockAt(nowMs: number): Clock {
  return { nowMs: () => nowMs, monotonicMs: () => 0, set: () => undefined, after: () => () => undefined }
}

const WHOLE = { clock: clockAt(1), answeredAtMs: () => 90_000 }

t.test('storeStatus: one store is judged by heartbeats', async (t) => {
  const one = new StoreStatus(WHOLE, null)
  t.equal(one.nowMs(3), 1)
  t.equal(one.silentMs(3, 100_000), 10_000)
  t.equal(one.nameOf(3), '')
  for (let atMs = 0; atMs <= 12_000; atMs += 3_000) one.beat(atMs)
  t.ok(one.mayJudge(3, 12_500))
  t.same(
    [1, 10_000, 20_000].map((atMs) => one.stuck(3, atMs)),
    [false, false, true],
  )
})

t.test('storeStatus: each of several stores has its own clock, silence and count', async (t) => {
  const of = (name: string, answeredAtMs: number, steadySinceMs: number): Primary => ({
    name,
    answeredAtMs,
    steadySinceMs,
    clock: clockAt(name.length),
  })
  const places = [of('a', 99_000, 0), of('bb', 80_000, 0), of('ccc', 99_000, 95_000)]
  const several = new StoreStatus(WHOLE, { of: (shard) => places[shard] ?? null })
  t.same(
    [0, 1, 2, 3].map((shard) => several.nowMs(shard)),
    [1, 2, 3, 1],
  )
  t.same(
    [0, 1, 2, 3].map((shard) => several.silentMs(shard, 100_000)),
    [1_000, 20_000, 1_000, 10_000],
  )
  t.same(
    [0, 1, 2, 3].map((shard) => several.mayJudge(shard, 100_000)),
    [true, false, false, false],
  )
  t.same(
    [0, 10_000].map((atMs) => several.stuck(0, atMs)),
    [false, false],
  )
  t.same(
    [11_000, 15_000].map((atMs) => several.stuck(1, atMs)),
    [false, false],
  )
  t.equal(several.stuck(0, 20_000), true, 'three at one of them')
})

t.test('storeStatus: answers with a gap between them start again', async (t) => {
  const times = new AnswerTimes(0)
  for (const atMs of [10_000, 11_000, 14_000]) times.note(atMs)
  t.same([times.sinceMs, times.lastMs], [10_000, 14_000])
  times.note(18_500)
  t.equal(times.sinceMs, 18_500)
})
