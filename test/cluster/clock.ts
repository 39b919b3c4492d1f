/** Tests of cluster/clock.ts. */
import { test } from 'tap'
import { makeClock } from '../../cluster/clock.ts'

test('clock: the store says what time it is', async (t) => {
  const clock = makeClock()
  const sentAtMs = clock.monotonicMs()
  clock.set(1_000_000, sentAtMs)
  t.ok(clock.nowMs() >= 1_000_000 && clock.nowMs() < 1_060_000)
  clock.set(500_000, clock.monotonicMs())
  t.ok(clock.nowMs() < 1_000_000, 'it may say that it is earlier')
})

test('clock: the answer of a question counts from half its way', async (t) => {
  const clock = makeClock()
  const arrivedAtMs = clock.monotonicMs()
  clock.set(1_000_000, arrivedAtMs - 4_000)
  t.ok(clock.nowMs() >= 1_001_999, 'two of the four seconds have passed since the store looked')
})

test('clock: an answer that was slow does not set it back', async (t) => {
  const clock = makeClock()
  clock.set(1_000_000, clock.monotonicMs())
  const before = clock.nowMs()
  // The store read its clock early or late in the round trip. Neither contradicts the result.
  clock.set(998_000, clock.monotonicMs() - 4_000)
  t.ok(clock.nowMs() >= before)
  clock.set(before, clock.monotonicMs() - 4_000)
  t.ok(clock.nowMs() >= before && clock.nowMs() < before + 2_000)
  clock.set(1_300_000, clock.monotonicMs() - 4_000)
  t.ok(clock.nowMs() >= 1_300_000, 'it is at least what the store said')
  clock.set(1_200_000, clock.monotonicMs() - 4_000)
  t.ok(clock.nowMs() <= 1_204_500, 'and at most that and the whole way')
})

test('clock: calls back once, or not when it was cancelled', async (t) => {
  const clock = makeClock()
  const called: string[] = []
  const cancel = clock.after(1, () => called.push('cancelled'))
  cancel()
  await new Promise<void>((resolve) => clock.after(-5, resolve))
  await new Promise<void>((resolve) => clock.after(5, resolve))
  t.same(called, [])
})
