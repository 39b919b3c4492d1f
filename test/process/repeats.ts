/**
 * repeats - a sentence that is said again and again is counted, each one for itself, and told at the end of its time.
 */
import t from 'tap'
import { Repeats } from '../../src/process/repeats.ts'
import { until } from '../support/machine/until.ts'

const TIMES_MAX = 20

t.test('repeats: twenty of a sentence in a minute, the others counted', async (t) => {
  let nowMs = 0
  const repeats = new Repeats(() => nowMs)
  const said = (sentence: string, times: number): number =>
    Array.from({ length: times }, () => repeats.maySay(sentence, () => undefined)).filter(Boolean).length
  t.equal(said('Lost', 300), TIMES_MAX)
  t.equal(said('Found', 5), 5, 'another one is another one')
  nowMs = 59_999
  t.equal(said('Lost', 1), 0)
  nowMs = 60_000
  t.equal(said('Lost', 300), TIMES_MAX, 'a minute later it is said again')
})

t.test('repeats: how often it was not said is told once its time is over', async (t) => {
  const repeats = new Repeats(() => performance.now(), 50)
  const told: number[] = []
  for (let n = 0; n < 100; n += 1) repeats.maySay('Lost', (times) => told.push(times))
  await until(() => told.length > 0, 5_000)
  t.same(told, [100 - TIMES_MAX])
})

t.test('repeats: words that change do not fill the memory', async (t) => {
  const repeats = new Repeats(() => 0)
  for (let n = 0; n < 10_000; n += 1) repeats.maySay(`Sentence ${n}`, () => undefined)
  t.ok(repeats.size <= 500)
})
