/** ttl-cache - when a check is repeated, and what is served meanwhile. */

import t from 'tap'
import { makeTtlCache } from '../../src/views/ttl-cache.ts'

/** A look whose answers are given one by one. */
function setUp() {
  const world = { nowMs: 1_000, looks: 0, next: async (): Promise<number | null> => world.looks }
  const ask = makeTtlCache({
    first: 0,
    freshMs: 100,
    nowMs: () => world.nowMs,
    look: () => {
      world.looks += 1
      return world.next()
    },
  })
  return { world, ask }
}

t.test('fresh look: one serves for its time, and everybody who asks while it is under way', async (t) => {
  const { world, ask } = setUp()
  t.same(await Promise.all([ask(), ask(), ask()]), [1, 1, 1])
  world.nowMs += 99
  t.equal(await ask(), 1)
  world.nowMs += 1
  t.equal(await ask(), 2)
  world.nowMs -= 100
  t.equal(await ask(), 3, 'the clock was set back')
})

t.test('fresh look: one that finds nothing out leaves what was seen', async (t) => {
  const { world, ask } = setUp()
  world.next = async () => null
  t.equal(await ask(), 0)
  world.nowMs += 100
  world.next = async () => 7
  t.equal(await ask(), 7)
  world.nowMs += 100
  world.next = async () => null
  t.equal(await ask(), 7)
})

t.test('fresh look: a failed one is reported, and repeated by the next caller', async (t) => {
  const { world, ask } = setUp()
  world.next = () => Promise.reject(new Error('broken'))
  await t.rejects(ask(), { message: 'broken' })
  world.next = async () => 5
  t.equal(await ask(), 5)
})
