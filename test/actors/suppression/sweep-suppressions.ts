/** sweep-suppressions - a removed server's lists are deleted after its mail, and its persons can be deleted. */

import t from 'tap'
import { entityKey } from '../../../cluster/keyspace.ts'
import { sweep } from '../../../src/actors/message/sweep.ts'
import { removeServer } from '../../../src/actors/server/remove-server.ts'
import { addSuppressions } from '../../../src/actors/suppression/add-suppressions.ts'
import { liftSuppression } from '../../../src/actors/suppression/lift-suppression.ts'
import { STEP_SUPPRESSIONS } from '../../../src/actors/suppression/sweep-suppressions.ts'
import { suppressionsKey } from '../../../src/state/keys.ts'
import { entryOf, listedPlaces, personOf } from '../../support/world/suppression.ts'
import {
  ACCOUNT_KEY,
  hmacOf,
  LIVE_KEY,
  makeItem,
  makeRecipient,
  makeTenant,
  send,
  TEST_KEY,
} from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 0, 10)
const DAY_MS = 86_400_000
const ADA = 'ada@example.net'
const BOB = 'bob@example.net'
const EVE = 'eve@example.net'

function begin() {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const { accountId } = tenant
  const list = (which: 'live' | 'test', addresses: readonly string[]) => {
    const { serverId, streamId } = tenant[which]
    const keyHash = which === 'live' ? LIVE_KEY : TEST_KEY
    const recipients = addresses.map((address) => ({ address, hmac: hmacOf(address) }))
    const order = { accountId, serverId, orderedBy: 'server', keyHash, streamId, recipients } as const
    if (world.run(addSuppressions, order).kind !== 'added') t.fail('not added')
  }
  const lift = (address: string) => {
    const suppressionId = entryOf(world, tenant, address)?.suppressionId ?? ''
    const order = { accountId, serverId: tenant.live.serverId, orderedBy: 'server', keyHash: LIVE_KEY } as const
    t.same(world.run(liftSuppression, { ...order, suppressionId }), { kind: 'lifted' })
  }
  const remove = () => world.run(removeServer, { accountId, serverId: tenant.live.serverId, keyHash: ACCOUNT_KEY })
  const listKeys = () => world.keyNames().filter((key) => /:(suppressed|suppressions):/.test(key))
  return { world, tenant, list, lift, remove, listKeys }
}

function days(world: World, count: number): void {
  for (let day = 0; day < count; day += 1) {
    world.nowMs += DAY_MS
    world.fireTimers()
  }
}

t.test(
  'sweep-suppressions: a removed server’s lists are deleted after its mail [server.remove, retention.person]',
  async (t) => {
    const { world, tenant, list, lift, remove, listKeys } = begin()
    const many = Array.from({ length: 2 * STEP_SUPPRESSIONS + 50 }, (_, index) => `p${index}@example.org`)
    list('live', [ADA, BOB, EVE, ...many])
    list('test', [ADA])
    const kept = listKeys().filter((key) => key.includes(tenant.test.serverId) || key.includes(tenant.test.streamId))
    t.equal(kept.length, 2)
    lift(BOB)
    lift(EVE)
    world.nowMs += 1000
    list('live', [EVE])
    send(world, tenant, { messages: [makeItem({ recipients: [makeRecipient('zoe@example.net')] })] })
    t.match(personOf(world, tenant, ADA), { suppressions: 2 })
    remove()
    days(world, 300)
    t.match(personOf(world, tenant, ADA), { suppressions: 2 }, 'a late bounce may still add to them')
    t.equal(listedPlaces(world, tenant).length, many.length + 4)
    while (
      world.keyNames().includes(entityKey(world.shard, 'server', tenant.live.serverId)) &&
      world.nowMs < NOW_MS + 600 * DAY_MS
    )
      days(world, 1)
    t.same(listKeys(), kept, 'and no key of them is left')
    t.match(personOf(world, tenant, ADA), { suppressions: 1 }, 'who is on another server’s list stays on it')
    for (const address of [BOB, EVE, ...many]) t.equal(personOf(world, tenant, address)?.suppressions ?? 0, 0, address)
    days(world, 120)
    t.match(personOf(world, tenant, ADA), { suppressions: 1 })
    for (const address of [BOB, EVE, ...many]) t.equal(personOf(world, tenant, address), null, 'forgotten')
  },
)

t.test('sweep-suppressions: in steps of a bounded size', async (t) => {
  const { world, tenant, list, remove } = begin()
  const many = Array.from({ length: 2 * STEP_SUPPRESSIONS }, (_, index) => `p${index}@example.org`)
  list('live', many)
  remove()
  const key = suppressionsKey(world.shard, tenant.live.serverId)
  const left: number[] = []
  world.nowMs += DAY_MS
  while (world.keyNames().includes(key)) {
    left.push(world.stream(key).length)
    world.run(sweep, { item: `sweep:${tenant.live.serverId}` })
    t.ok(world.rounds <= 3, 'reads within the bound of a turn')
  }
  t.same(left, [2 * STEP_SUPPRESSIONS, STEP_SUPPRESSIONS, 0])
})
