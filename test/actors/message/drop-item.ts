/** drop-item - a waiting recipient ends by order; one with an attempt in flight does not. */

import t from 'tap'
import { claimsKey } from '../../../cluster/keyspace.ts'
import { dropItem } from '../../../src/actors/message/operate-queue.ts'
import { statusKey } from '../../../src/state/keys.ts'
import { makeItem, makeRecipient, makeTenant, send } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const recipients = [makeRecipient('ada@example.net', 'to'), makeRecipient('bob@example.net', 'to')]

function begin() {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  send(world, tenant, { messages: [makeItem({ recipients })] })
  const rows = () => [...world.hash(statusKey(world.shard, tenant.live.serverId, '202611-0-1')).values()]
  return { world, rows }
}

t.test('drop-item: the recipient bounces by order, and the item is gone [queue.drop]', async (t) => {
  const { world, rows } = begin()
  const [first, second] = world.deliveries()
  const body = { lane: first?.lane ?? '', item: first?.item ?? '' }
  t.same(world.run(dropItem, body), { kind: 'dropped' })
  t.same(world.deliveries(), [second], 'the other one waits on')
  t.ok(rows().some((row) => row.includes('dropped by the operator')))
  t.same(world.run(dropItem, body), { kind: 'left' }, 'once')
})

t.test('drop-item: an item with an attempt in flight is left to its attempt [queue.drop]', async (t) => {
  const { world } = begin()
  const [due] = world.deliveries()
  const body = { lane: due?.lane ?? '', item: due?.item ?? '' }
  const claim = (worker: string) =>
    world.keys.set(claimsKey(world.shard), {
      type: 'hash',
      fields: new Map([[body.item, JSON.stringify([worker, 1])]]),
    })
  claim('worker-1')
  t.same(world.run(dropItem, body), { kind: 'left' })
  t.equal(world.deliveries().length, 2)
  claim('')
  t.same(world.run(dropItem, body), { kind: 'dropped' }, 'its worker is dead')
})
