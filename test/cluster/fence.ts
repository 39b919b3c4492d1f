/** Tests of cluster/fence.ts. */
import { test } from 'tap'
import { Fence, makeFenceCells } from '../../cluster/fence.ts'

/** A fence by a clock that the test sets; a heartbeat was sent and answered at 1,000. */
function setUp() {
  const clock = { nowMs: 1_000 }
  const fence = new Fence(makeFenceCells(), () => clock.nowMs)
  const beat = (): boolean => fence.beatAnswered(fence.beatSent())
  return { clock, fence, beat }
}

test('fence: held before the first heartbeat, open for five seconds after its sending', async (t) => {
  const { clock, fence, beat } = setUp()
  const pass = fence.passOf(7)
  t.equal(fence.look(pass), 'held')
  t.equal(beat(), false)
  t.equal(fence.look(pass), 'open')
  clock.nowMs = 6_000
  t.equal(fence.look(pass), 'open')
  clock.nowMs = 6_001
  t.equal(fence.look(pass), 'held')
})

test('fence: heartbeats that lapsed shut every pass for good, whatever is answered later', async (t) => {
  const { clock, fence, beat } = setUp()
  beat()
  const [pass, other] = [fence.passOf(7), fence.passOf(255)]
  clock.nowMs = 9_000
  t.equal(beat(), false, 'eight seconds are none')
  t.equal(fence.look(pass), 'open')
  clock.nowMs = 17_001
  t.equal(beat(), true)
  t.same([fence.look(pass), fence.look(other)], ['shut', 'shut'])
  t.equal(fence.look(fence.passOf(7)), 'open', 'what is claimed now is its own')
  clock.nowMs = 18_000
  beat()
  t.equal(fence.look(pass), 'shut')
})

test('fence: a heartbeat that was under way for long counts from the one before', async (t) => {
  const { clock, fence, beat } = setUp()
  beat()
  const pass = fence.passOf(7)
  clock.nowMs = 4_000
  const sentAtMs = fence.beatSent()
  clock.nowMs = 18_000
  t.equal(fence.beatAnswered(sentAtMs), true, 'others saw nothing for so long')
  t.equal(fence.look(pass), 'shut')
})

test('fence: a closed connection holds all; back within three seconds, all goes on', async (t) => {
  const { clock, fence, beat } = setUp()
  beat()
  const pass = fence.passOf(7)
  fence.disconnected()
  t.equal(fence.look(pass), 'held')
  clock.nowMs = 4_000
  t.equal(beat(), false)
  t.equal(fence.look(pass), 'open')
  fence.disconnected()
  clock.nowMs = 7_001
  t.equal(beat(), true, 'without a connection others judge sooner')
  t.equal(fence.look(pass), 'shut')
})

test('fence: a heartbeat or a commit of the shard that is overdue holds what is to be finished', async (t) => {
  const { clock, fence, beat } = setUp()
  beat()
  const [pass, other] = [fence.passOf(7), fence.passOf(8)]
  fence.commitSent(7)
  clock.nowMs = 2_500
  t.equal(fence.look(pass), 'open')
  clock.nowMs = 2_501
  fence.commitSent(7)
  t.same([fence.look(pass), fence.look(other)], ['held', 'open'], 'sent again, it is as old as before')
  fence.commitAnswered(7)
  t.equal(fence.look(pass), 'open')
  const sentAtMs = fence.beatSent()
  clock.nowMs = 4_002
  fence.beatSent()
  t.equal(fence.look(other), 'held')
  fence.beatAnswered(sentAtMs)
  t.equal(fence.look(other), 'open')
})

test('fence: a shard that is lost shuts its own passes', async (t) => {
  const { fence, beat } = setUp()
  beat()
  const [pass, other] = [fence.passOf(7), fence.passOf(8)]
  fence.lost(7)
  t.same([fence.look(pass), fence.look(other)], ['shut', 'open'])
  t.equal(fence.look(fence.passOf(7)), 'open')
})

test('fence: a store that does not keep what it takes holds all, also while it answers', async (t) => {
  const { fence, beat } = setUp()
  beat()
  const pass = fence.passOf(7)
  fence.hold(true)
  beat()
  t.equal(fence.look(pass), 'held')
  fence.hold(false)
  t.equal(fence.look(pass), 'open')
})
