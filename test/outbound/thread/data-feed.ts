/** feed - the message is read in order, and its end is held back until everything before it has left. */

import t from 'tap'
import { makeFeed } from '../../../src/outbound/thread/data-feed.ts'
import { until } from '../../support/machine/until.ts'

function setUp(message: Buffer, world: { pending: number; mayFinish: boolean }) {
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

t.test('feed: nothing is told before the first read; then all bytes, the question, the end', async (t) => {
  for (const bytes of [1, 65_536, 65_537, 1_000_000]) {
    const message = Buffer.alloc(bytes, 'ab')
    const one = setUp(message, { pending: 0, mayFinish: true })
    t.same(one.told, [])
    one.flow()
    await until(one.hasEnded, 5000)
    t.same(one.told, ['start', 'ask', 'end'])
    t.ok(one.read().equals(message))
  }
})

t.test('feed: the question waits for the bytes before the end', async (t) => {
  const world = { pending: 10, mayFinish: true }
  const one = setUp(Buffer.from('message'), world)
  one.flow()
  await until(() => one.read().length === 7, 5000)
  t.same(one.told, ['start'])
  world.pending = 0
  await until(one.hasEnded, 5000)
  t.same(one.told, ['start', 'ask', 'end'])
})

t.test('feed: a no means that the end is never given', async (t) => {
  const one = setUp(Buffer.from('message'), { pending: 0, mayFinish: false })
  one.flow()
  await until(() => one.told.includes('fenced'), 5000)
  t.same(one.told, ['start', 'ask', 'fenced'])
  t.notOk(one.hasEnded())
  one.feed.destroy()
})

t.test('feed: destroyed, it asks nothing any more', async (t) => {
  const world = { pending: 1, mayFinish: true }
  const one = setUp(Buffer.from('message'), world)
  one.flow()
  await until(() => one.read().length === 7, 5000)
  one.feed.destroy()
  world.pending = 0
  await until(() => one.feed.closed, 5000)
  t.same(one.told, ['start'])
})
