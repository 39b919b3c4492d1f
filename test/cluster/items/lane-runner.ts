/** Tests of cluster/runner.ts. */
import { test } from 'tap'
import type { LaneType } from '../../../cluster/behaviour.ts'
import { Fence, makeFenceCells } from '../../../cluster/fence.ts'
import { type Claim, LaneRunner, LOST_CLAIM } from '../../../cluster/items/lane-runner.ts'

interface Ends {
  end(outcome: string): void
  fail(): void
  signal: AbortSignal
}

/** A runner over one family of lanes with two performers, whose attempts end when the test ends them. */
function makeLaneRunner() {
  const started = new Map<string, Ends>()
  const failed: string[] = []
  const command = { name: 'none', entities: () => [], counters: () => [], facts: () => [] }
  const lane: LaneType = {
    prefix: 'send',
    holdMs: 1_000,
    claimsStand: false,
    prepare: { ...command, decide: () => ({ kind: 'done', reply: null }) },
    outcome: { ...command, decide: () => ({ kind: 'done', reply: null }) },
    room: () => 2,
    perform: (job, { item, signal }) => {
      if (job === 'throws') throw new Error('Thrown at once')
      return new Promise((resolve, reject) => {
        started.set(item, { end: resolve, fail: () => reject(new Error('Failed')), signal })
      })
    },
  }
  const fence = new Fence(makeFenceCells(), () => 1)
  return { runner: new LaneRunner([lane], { failed: ({ item }) => failed.push(item), fence }), started, failed, fence }
}

const claimOf = (item: string, job: unknown = 'job'): Claim => ({ lane: 'send/a', item, attempt: 1, job })
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('runner: room counts what is staged, per lane', async (t) => {
  const { runner } = makeLaneRunner()
  t.equal(runner.room('send/a'), 2)
  runner.reserve('send/a')
  t.same([runner.room('send/a'), runner.room('send/b')], [1, 2])
  runner.release('send/a')
  t.equal(runner.room('send/a'), 2)
  t.throws(() => runner.release('send/a'), { name: 'Fault' })
  t.equal(runner.room('unknown'), 0)
})

test('runner: there is no room while heartbeats have lapsed, because the next one shuts what is claimed now', async (t) => {
  const clock = { nowMs: 1_000 }
  const fence = new Fence(makeFenceCells(), () => clock.nowMs)
  const lane = { prefix: 'send', room: () => 2 } as unknown as LaneType
  const runner = new LaneRunner([lane], { failed: () => undefined, fence })
  t.equal(runner.room('send/a'), 2, 'before the first heartbeat')
  fence.beatAnswered(fence.beatSent())
  clock.nowMs += 8_000
  t.equal(runner.room('send/a'), 2)
  clock.nowMs += 1
  t.equal(runner.room('send/a'), 0)
  const pass = fence.passOf(0)
  t.equal(fence.beatAnswered(fence.beatSent()), true)
  t.equal(fence.look(pass), 'shut')
  t.equal(runner.room('send/a'), 2)
})

test('runner: an outcome is reported, once the attempt has ended', async (t) => {
  const { runner, started } = makeLaneRunner()
  const reported: unknown[] = []
  runner.start(claimOf('i1'), { shard: 0, report: ({ item }, outcome) => reported.push([item, outcome]) })
  t.equal(runner.performing('i1'), true)
  started.get('i1')?.end('done')
  await settled()
  t.same(reported, [['i1', 'done']])
  t.same([runner.performing('i1'), runner.size], [false, 0])
})

test('runner: an item is not performed twice at once', async (t) => {
  const { runner, started } = makeLaneRunner()
  runner.start(claimOf('i1'), { shard: 0, report: () => undefined })
  const first = started.get('i1')
  runner.start(claimOf('i1'), { shard: 0, report: () => t.fail('reported the second') })
  t.equal(started.get('i1'), first)
  t.equal(runner.size, 1)
})

test('runner: an attempt that fails or throws reports nothing', async (t) => {
  const { runner, started, failed } = makeLaneRunner()
  runner.start(claimOf('i1'), { shard: 0, report: () => t.fail('reported') })
  runner.start(claimOf('i2', 'throws'), { shard: 0, report: () => t.fail('reported') })
  started.get('i1')?.fail()
  await settled()
  t.same(failed.sort(), ['i1', 'i2'])
  t.equal(runner.size, 0)
})

test('runner: what need not wait is performed and reported at once, or thrown', async (t) => {
  const failed: string[] = []
  const perform = (): Promise<string> => Promise.resolve('later')
  const performAtOnce = (job: unknown): string | undefined => {
    if (job === 'throws') throw new Error('Thrown at once')
    return job === 'waits' ? undefined : 'now'
  }
  const lane = { prefix: 'send', room: () => 1, perform, performAtOnce } as unknown as LaneType
  const runner = new LaneRunner([lane], { failed: ({ item }) => failed.push(item) })
  const reported: string[] = []
  const report = ({ item }: Claim, outcome: unknown) => reported.push(`${item} ${outcome}`)
  runner.start(claimOf('i1'), { shard: 0, report })
  t.same([reported, runner.performing('i1')], [['i1 now'], false])
  runner.start(claimOf('i2', 'waits'), { shard: 0, report })
  runner.start(claimOf('i3', 'throws'), { shard: 0, report })
  t.same([runner.performing('i2'), failed], [true, ['i3']])
  await settled()
  t.same(reported, ['i1 now', 'i2 later'])
})

test('runner: closed, it has no room; aborted, its attempts hear of it', async (t) => {
  const { runner, started } = makeLaneRunner()
  runner.start(claimOf('i1'), { shard: 0, report: () => undefined })
  runner.close()
  t.equal(runner.room('send/a'), 0)
  runner.abortAll()
  t.equal(started.get('i1')?.signal.aborted, true)
})

test('runner: what has lost its claim is cut, with a reason that spares the final answer', async (t) => {
  const { runner, started, fence } = makeLaneRunner()
  runner.start(claimOf('i1'), { shard: 0, report: () => undefined })
  runner.start(claimOf('i2'), { shard: 1, report: () => undefined })
  const cut = () => [...started.values()].map(({ signal }) => signal.aborted)
  runner.abortLost()
  t.same(cut(), [false, false])
  fence.lost(1)
  runner.abortLost()
  t.same(cut(), [false, true])
  t.equal(started.get('i2')?.signal.reason, LOST_CLAIM)
  runner.abortAll()
  t.same(cut(), [true, true])
})
