/** remove-server - a server is gone for clients at once, and deleted once none of its data is left. */

import t from 'tap'
import { entityKey } from '../../../cluster/keyspace.ts'
import { createToken } from '../../../src/actors/account/token.ts'
import { prepareAttempt } from '../../../src/actors/message/prepare-attempt.ts'
import { createServer } from '../../../src/actors/server/create-server.ts'
import { removeServer } from '../../../src/actors/server/remove-server.ts'
import { unpackApiKey, unpackToken } from '../../../src/state/api-key.ts'
import { apiKeyKey, namesKey, serversKey, tokensKey } from '../../../src/state/keys.ts'
import { ACCOUNT_KEY, accountState, LIVE_KEY, makeTenant, send } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20)
const DAY_MS = 86_400_000

function start() {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const { accountId, live } = tenant
  const remove = () => world.run(removeServer, { accountId, serverId: live.serverId, keyHash: ACCOUNT_KEY })
  return { world, tenant, remove }
}

t.test(
  'remove-server: its keys end, its name and its place are free, queued mail is still delivered [server.remove]',
  async (t) => {
    const { world, tenant, remove } = start()
    const { accountId, live } = tenant
    const order = { accountId, serverId: live.serverId, orderedBy: 'account', keyHash: ACCOUNT_KEY } as const
    world.run(createToken, { ...order, name: 'Second', key: { hash: 'h2', prefix: 'p' } })
    t.equal(send(world, tenant).kind, 'accepted')
    t.same(remove(), { kind: 'removed' })
    t.match(send(world, tenant), { code: 'unauthorized' })
    for (const hash of [LIVE_KEY, 'h2'])
      t.equal(unpackApiKey(world.hash(apiKeyKey(world.shard, hash)))?.revokedAtMs, NOW_MS)
    for (const row of world.hash(tokensKey(world.shard, live.serverId)).values())
      t.equal(unpackToken(row).revokedAtMs, NOW_MS)
    t.notOk(world.hash(namesKey(world.shard, accountId)).has('server/Live'))
    t.notOk(world.sorted(serversKey(world.shard, accountId)).has(live.serverId))
    t.equal(accountState(world, tenant).servers, 1)
    t.match(remove(), { code: 'not_found' })
    t.match(world.run(createToken, { ...order, name: 'Third', key: { hash: 'h3', prefix: 'p' } }), {
      code: 'not_found',
    })
    const [due] = world.deliveries()
    t.ok(world.run(prepareAttempt, due!), 'what is queued still goes out')
    const server = { name: 'Live', mode: 'live', key: { hash: 'h4', prefix: 'p' } } as const
    t.equal(world.run(createServer, { accountId, keyHash: ACCOUNT_KEY, server }).kind, 'server')
  },
)

t.test('remove-server: the server itself is deleted after its mail [server.remove, retention.message]', async (t) => {
  const { world, tenant, remove } = start()
  const { serverId } = tenant.live
  send(world, tenant)
  remove()
  for (let day = 0; day < 380; day += 1) {
    world.nowMs += DAY_MS
    world.fireTimers()
  }
  t.ok(world.items.has(`timers sweep:${serverId}`), 'swept while its mail is there')
  for (let day = 0; day < 60; day += 1) {
    world.nowMs += DAY_MS
    world.fireTimers()
  }
  t.notOk(world.items.has(`timers sweep:${serverId}`))
  t.notOk(world.keyNames().includes(entityKey(world.shard, 'server', serverId)))
  t.same(
    world.keyNames().filter((key) => key.includes(serverId)),
    [],
  )
  t.notOk(world.keyNames().includes(entityKey(world.shard, 'stream', tenant.live.streamId)))
  const names = [...world.hash(namesKey(world.shard, tenant.accountId)).keys()]
  t.notOk(
    names.some((name) => name.includes(serverId)),
    'names are free again',
  )
})
