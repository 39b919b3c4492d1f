/** fence - the clock that threads share, and the cells. */

import t from 'tap'
import { monotonicMs, openFence } from '../../src/process/fence.ts'

t.test('fence: held before the first heartbeat; who has the cells sees the same', async (t) => {
  const fence = openFence()
  const other = openFence(fence.cells)
  const pass = fence.passOf(3)
  t.equal(other.look(pass), 'held')
  fence.beatAnswered(fence.beatSent())
  t.equal(other.look(pass), 'open')
  fence.lost(3)
  t.equal(other.look(pass), 'shut')
})

t.test('fence: the clock never goes back', async (t) => {
  const first = monotonicMs()
  t.ok(Number.isInteger(first))
  t.ok(monotonicMs() >= first)
})
