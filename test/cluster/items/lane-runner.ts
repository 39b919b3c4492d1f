/** Tests of cluster/pump.ts. */
import { test } from 'tap'
import type { LaneType } from '../../../cluster/behaviour.ts'
import { Fence, makeFenceCells } from '../../../cluster/fence.ts'
import { type Claim, LOST_CLAIM, Pump } from '../../../cluster/items/lane-runner.ts'

interface Ends {
  end(outcome: string): void
  fail(): void
  signal: AbortSignal
}

/** A pump over one family of lanes with two performers, whose attempts end when the test ends them. */
function makePump() {
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
  return { pump: new Pump([lane], { failed: ({ item }) => failed.push(item), fence }), started, failed, fence }
}

const claimOf = (item: string, job: unknown = 'job'): Claim => ({ lane: 'send/a', item, attempt: 1, job })
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('pump: room counts what is staged, per lane', async (t) => {
  const { pump } = makePump()
  t.equal(pump.room('send/a'), 2)
  pump.reserve('send/a')
  t.same([pump.room('send/a'), pump.room('send/b')], [1, 2])
  pump.release('send/a')
  t.equal(pump.room('send/a'), 2)
  t.throws(() => pump.release('send/a'), { name: 'Fault' })
  t.equal(pump.room('unknown'), 0)
})

test('pump: an outcome is reported, once the attempt has ended', async (t) => {
  const { pump, started } = makePump()
  const reported: unknown[] = []
  pump.start(claimOf('i1'), { shard: 0, report: ({ item }, outcome) => reported.push([item, outcome]) })
  t.equal(pump.performing('i1'), true)
  started.get('i1')?.end('done')
  await settled()
  t.same(reported, [['i1', 'done']])
  t.same([pump.performing('i1'), pump.size], [false, 0])
})

test('pump: an item is not performed twice at once', async (t) => {
  const { pump, started } = makePump()
  pump.start(claimOf('i1'), { shard: 0, report: () => undefined })
  const first = started.get('i1')
  pump.start(claimOf('i1'), { shard: 0, report: () => t.fail('reported the second') })
  t.equal(started.get('i1'), first)
  t.equal(pump.size, 1)
})

test('pump: an attempt that fails or throws reports nothing', async (t) => {
  const { pump, started, failed } = makePump()
  pump.start(claimOf('i1'), { shard: 0, report: () => t.fail('reported') })
  pump.start(claimOf('i2', 'throws'), { shard: 0, report: () => t.fail('reported') })
  started.get('i1')?.fail()
  await settled()
  t.same(failed.sort(), ['i1', 'i2'])
  t.equal(pump.size, 0)
})

test('pump: what need not wait is performed and reported at once, or thrown', async (t) => {
  const failed: string[] = []
  const perform = (): Promise<string> => Promise.resolve('later')
  const performAtOnce = (job: unknown): string | undefined => {
    if (job === 'throws') throw new Error('Thrown at once')
    return job === 'waits' ? undefined : 'now'
  }
  const lane = { prefix: 'send', room: () => 1, perform, performAtOnce } as unknown as LaneType
  const pump = new Pump([lane], { failed: ({ item }) => failed.push(item) })
  const reported: string[] = []
  const report = ({ item }: Claim, outcome: unknown) => reported.push(`${item} ${outcome}`)
  pump.start(claimOf('i1'), { shard: 0, report })
  t.same([reported, pump.performing('i1')], [['i1 now'], false])
  pump.start(claimOf('i2', 'waits'), { shard: 0, report })
  pump.start(claimOf('i3', 'throws'), { shard: 0, report })
  t.same([pump.performing('i2'), failed], [true, ['i3']])
  await settled()
  t.same(reported, ['i1 now', 'i2 later'])
})

test('pump: closed, it has no room; aborted, its attempts hear of it', async (t) => {
  const { pump, started } = makePump()
  pump.start(claimOf('i1'), { shard: 0, report: () => undefined })
  pump.close()
  t.equal(pump.room('send/a'), 0)
  pump.abortAll()
  t.equal(started.get('i1')?.signal.aborted, true)
})

test('pump: what has lost its claim is cut, with a reason that spares the final answer', async (t) => {
  const { pump, started, fence } = makePump()
  pump.start(claimOf('i1'), { shard: 0, report: () => undefined })
  pump.start(claimOf('i2'), { shard: 1, report: () => undefined })
  const cut = () => [...started.values()].map(({ signal }) => signal.aborted)
  pump.abortLost()
  t.same(cut(), [false, false])
  fence.lost(1)
  pump.abortLost()
  t.same(cut(), [false, true])
  t.equal(started.get('i2')?.signal.reason, LOST_CLAIM)
  pump.abortAll()
  t.same(cut(), [true, true])
})
