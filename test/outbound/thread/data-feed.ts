/** data-feed - the message is read in order, and its end is held back until everything before it has left. */

import t from 'tap'
import type { FenceState } from '../../../cluster/fence.ts'
import { makeFeed } from '../../../src/outbound/thread/data-feed.ts'
import { until } from '../../support/machine/until.ts'

function setUp(message: Buffer, world: { pending: number; mayFinish: FenceState }) {
  const told: string[] = []
  const feed = makeFeed({
    message,
    pendingBytes: () => world.pending,
    mayFinish: () => {
      told.push('ask')
      return world.mayFinish
    },
    onStart: () => told.push('start'),
    onProgress: () => undefined,
    onEnd: () => told.push('end'),
    onFenced: () => told.push('fenced'),
  })
  const chunks: Buffer[] = []
  let hasEnded = false
  const flow = () =>
    feed
      .on('data', (chunk: Buffer) => chunks.push(chunk))
      .on('end', () => {
        hasEnded = true
      })
  return { feed, told, flow, read: () => Buffer.concat(chunks), hasEnded: () => hasEnded }
}

t.test('feed: nothing is reported before the first read; then all bytes, the question, the end', async (t) => {
  for (const bytes of [1, 65_536, 65_537, 1_000_000]) {
    const message = Buffer.alloc(bytes, 'ab')
    const one = setUp(message, { pending: 0, mayFinish: 'open' as FenceState })
    t.same(one.told, [])
    one.flow()
    await until(one.hasEnded, 5000)
    t.same(one.told, ['start', 'ask', 'end'])
    t.ok(one.read().equals(message))
  }
})

t.test('feed: the question waits for the bytes before the end', async (t) => {
  const world = { pending: 10, mayFinish: 'open' as FenceState }
  const one = setUp(Buffer.from('message'), world)
  one.flow()
  await until(() => one.read().length === 7, 5000)
  t.same(one.told, ['start'])
  world.pending = 0
  await until(one.hasEnded, 5000)
  t.same(one.told, ['start', 'ask', 'end'])
})

t.test('feed: a no means that the end is never given', async (t) => {
  const one = setUp(Buffer.from('message'), { pending: 0, mayFinish: 'shut' })
  one.flow()
  await until(() => one.told.includes('fenced'), 5000)
  t.same(one.told, ['start', 'ask', 'fenced'])
  t.notOk(one.hasEnded())
  one.feed.destroy()
})

t.test('feed: while it is held the end waits, and is asked for again', async (t) => {
  const world = { pending: 0, mayFinish: 'held' as FenceState }
  const one = setUp(Buffer.from('message'), world)
  one.flow()
  await until(() => one.told.filter((what) => what === 'ask').length > 2, 5000)
  t.notOk(one.hasEnded())
  world.mayFinish = 'open'
  await until(one.hasEnded, 5000)
  t.same(one.told.slice(-2), ['ask', 'end'])
})

t.test('feed: a destroyed one asks nothing any more', async (t) => {
  const world = { pending: 1, mayFinish: 'open' as FenceState }
  const one = setUp(Buffer.from('message'), world)
  one.flow()
  await until(() => one.read().length === 7, 5000)
  one.feed.destroy()
  world.pending = 0
  await until(() => one.feed.closed, 5000)
  t.same(one.told, ['start'])
})
