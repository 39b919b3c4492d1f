/** operate-queue - the list of held destinations, its bound and its log. */

import t from 'tap'
import { HOLDS_MAX, HOLDS_TOPIC, orderQueue } from '../../../src/actors/message/operate-queue.ts'
import { holdsKey, wakesKey } from '../../../src/state/keys.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20)
const by = { actor: null, act: 'holdQueue', note: null } as const
const order = (world: World, destination: string, what: 'retry' | 'hold' | 'release' | 'drop') =>
  world.run(orderQueue, { destination, order: what, by })

t.test('order-queue: held once, until it is released [queue.hold]', async (t) => {
  const world = new World(NOW_MS, 0)
  order(world, 'a.test', 'hold')
  t.same(world.signals, [{ topic: HOLDS_TOPIC, text: '' }], 'the processes hear that they have to look')
  const since = world.hash(holdsKey()).get('a.test')
  world.nowMs += 1000
  order(world, 'a.test', 'hold')
  order(world, 'a.test', 'drop')
  t.equal(world.hash(holdsKey()).get('a.test'), since)
  t.same(world.signals, [], 'nothing has changed')
  order(world, 'a.test', 'release')
  order(world, 'a.test', 'release')
  t.equal(world.hash(holdsKey()).size, 0)
})

t.test('order-queue: a retry is published to the other processes for a minute [queue.retry]', async (t) => {
  const world = new World(NOW_MS, 0)
  order(world, 'a.test', 'retry')
  world.nowMs += 61_000
  order(world, 'b.test', 'retry')
  t.same([...world.hash(wakesKey()).keys()], ['b.test'])
})

t.test('order-queue: the list is bounded', async (t) => {
  const world = new World(NOW_MS, 0)
  const fields = new Map(Array.from({ length: HOLDS_MAX }, (_, n) => [`d${n}.test`, '1']))
  world.keys.set(holdsKey(), { type: 'hash', fields })
  t.match(order(world, 'one-more.test', 'hold'), { kind: 'refused', code: 'limit_too_high' })
  t.match(order(world, 'd1.test', 'hold'), { kind: 'ordered' })
})
