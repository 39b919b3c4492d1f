/** patch-server - names and limits of a server change, and only within its account's. */

import t from 'tap'
import { patchServer } from '../../../src/actors/server/patch-server.ts'
import { namesKey } from '../../../src/state/keys.ts'
import type { ServerChanges } from '../../../src/state/server.ts'
import { ACCOUNT_KEY, makeTenant, send } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20)

function start() {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const { accountId, live } = tenant
  const patch = (changes: ServerChanges) =>
    world.run(patchServer, { accountId, serverId: live.serverId, keyHash: ACCOUNT_KEY, changes })
  return { world, tenant, patch, names: namesKey(world.shard, accountId) }
}

t.test('patch-server: a new name replaces the old one [server.change]', async (t) => {
  const { world, tenant, patch, names } = start()
  const { serverId } = tenant.live
  t.match(patch({ name: 'Test' }), { code: 'server_exists', extra: { serverId: tenant.test.serverId } })
  t.equal(world.ops.length, 0)
  t.match(patch({ name: 'live' }), { kind: 'server', server: { name: 'live' } })
  t.equal(world.hash(names).get('server/live'), serverId)
  t.notOk(world.hash(names).has('server/Live'))
  t.match(patch({ name: 'live' }), { kind: 'server' }, 'its own name is free to itself')
  t.equal(world.hash(names).get('server/live'), serverId)
})

t.test('patch-server: a limit applies from the next send, null removes it [server.limits]', async (t) => {
  const { world, tenant, patch } = start()
  t.match(patch({ perMinuteLimit: 301 }), { code: 'limit_too_high', extra: { max: 300 } })
  t.match(patch({ monthlyCap: 10_001 }), { code: 'limit_too_high', extra: { max: 10_000 } })
  t.match(patch({ name: 'Test', monthlyCap: 10_001 }), { code: 'limit_too_high' }, 'before the name is looked at')
  t.match(patch({ perMinuteLimit: 1, monthlyCap: 10_000 }), { server: { perMinuteLimit: 1, monthlyCap: 10_000 } })
  t.equal(send(world, tenant).kind, 'accepted')
  t.match(send(world, tenant), { code: 'rate_limited', extra: { scope: 'server', limit: 1, used: 1 } })
  t.match(patch({ perMinuteLimit: null }), {
    server: { perMinuteLimit: null, monthlyCap: 10_000 },
    counters: { minute: [NOW_MS / 60_000, 1] },
    accountCounters: { minute: [NOW_MS / 60_000, 1] },
  })
  t.equal(send(world, tenant).kind, 'accepted')
})

t.test('patch-server: nothing to change changes nothing', async (t) => {
  const { world, tenant, patch } = start()
  const before = world.states.get(`server:${tenant.live.serverId}`)
  t.match(patch({}), { kind: 'server', server: before })
  t.equal(world.ops.length, 0)
})
