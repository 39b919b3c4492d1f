/** fair-queue - whose turn it is: who has cost the least, then who waits longest. */
import t from 'tap'
import { FairQueue } from '../../src/process/fair-queue.ts'

function drained(queue: FairQueue<string>): string[] {
  const taken: string[] = []
  for (let next = queue.take(); next !== null; next = queue.take()) taken.push(next.item)
  return taken
}

t.test('fair-queue: clients take turns, each in its own order', async (t) => {
  const queue = new FairQueue<string>(10, () => 0)
  for (const item of ['a1', 'a2', 'a3', 'b1', 'c1', 'b2']) queue.push(item[0] as string, item)
  t.same(drained(queue), ['a1', 'b1', 'c1', 'a2', 'b2', 'a3'])
})

t.test('fair-queue: a client that cost much waits behind all others, for the rest of the minute', async (t) => {
  let nowMs = 0
  const queue = new FairQueue<string>(10, () => nowMs)
  const fill = () => ['a1', 'a2', 'b1'].map((item) => queue.push(item[0] as string, item))
  queue.charge('a', 900)
  queue.charge('b', 5)
  fill()
  t.same(drained(queue), ['b1', 'a1', 'a2'])
  nowMs = 60_000
  fill()
  t.same(drained(queue), ['a1', 'b1', 'a2'])
})

t.test('fair-queue: what waits is bounded, and so is what is remembered of clients', async (t) => {
  const queue = new FairQueue<string>(2, () => 0)
  t.same(
    ['a', 'b', 'c'].map((client) => queue.push(client, client)),
    [true, true, false],
  )
  t.same([queue.take(() => false), queue.drain(), queue.take()], [null, ['a', 'b'], null])
  queue.charge('late', 1)
  for (let at = 0; at < 10_001; at += 1) queue.charge(String(at), 1)
  queue.push('0', 'zero')
  queue.push('late', 'late')
  t.same(drained(queue), ['zero', 'late'], 'too many are forgotten together')
})
