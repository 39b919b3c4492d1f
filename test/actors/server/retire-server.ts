/** retire-server - all streams of a removed server are archived, however many it has; its webhooks go at once. */

import t from 'tap'
import { entityKey } from '../../../cluster/keyspace.ts'
import { removeServer } from '../../../src/actors/server/remove-server.ts'
import { streamsKey } from '../../../src/state/keys.ts'
import { makeDefaultStream, type StreamState, streamRef } from '../../../src/state/stream.ts'
import { listenersRef, webhookRef } from '../../../src/state/webhook/webhook.ts'
import { ACCOUNT_KEY, accountState, changeState, makeTenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20)

t.test('retire-server: every stream is archived, and one that was stays as it is [server.remove]', async (t) => {
  const world = new World(NOW_MS)
  const { accountId, live, test } = makeTenant(world)
  for (let n = 0; n < 450; n += 1) {
    const streamId = `s${n}`
    const stream = { ...makeDefaultStream(streamId, live.serverId, NOW_MS), archivedAtMs: n === 7 ? 1 : null }
    world.seedState(streamRef(streamId), stream)
    // Four of a millisecond, as a batch may make them.
    const score = String(NOW_MS + 1 + Math.floor(n / 4))
    world.apply({ key: streamsKey(world.shard, live.serverId), write: 'ZADD', args: [score, streamId] })
  }
  world.nowMs += 1000
  world.run(removeServer, { accountId, serverId: live.serverId, keyHash: ACCOUNT_KEY })
  t.ok(world.fireTimers() > 2, 'in several steps')
  const archivedAtMs = (id: string) => (world.states.get(`stream:${id}`) as StreamState).archivedAtMs
  for (let n = 0; n < 450; n += 1) t.equal(archivedAtMs(`s${n}`), n === 7 ? 1 : world.nowMs)
  t.equal(archivedAtMs(live.streamId), world.nowMs, 'the default stream too')
  t.equal(archivedAtMs(test.streamId), null, 'another server keeps its own')
})

t.test(
  'retire-server: webhooks of the server are removed with it, those of another stay [server.remove]',
  async (t) => {
    const world = new World(NOW_MS)
    const tenant = makeTenant(world)
    const { accountId, live, test } = tenant
    for (const { serverId } of [live, test]) {
      const webhookId = `hook-of-${serverId}`
      const webhook = {
        webhookId,
        accountId,
        serverId,
        url: 'https://acme.example/',
        secrets: [{}],
        removedAtMs: null,
        sealedUser: 'u',
      }
      world.seedState(webhookRef(webhookId), webhook)
      world.seedState(listenersRef(serverId), [{ webhookId, events: [], streamId: null, enabled: true }])
      world.apply({ key: entityKey(world.shard, 'webhook', webhookId), write: 'XADD', args: ['1-0', 'st', ''] })
      changeState(world, 'server', serverId, { hasWebhooks: true })
    }
    const webhookServers = [
      { serverId: live.serverId, mode: 'live' },
      { serverId: test.serverId, mode: 'test' },
    ]
    changeState(world, 'account', accountId, { webhookServers })
    const reply = world.run(removeServer, { accountId, serverId: live.serverId, keyHash: ACCOUNT_KEY })
    t.same(reply, { kind: 'removed' })
    t.match(world.states.get(`webhook:hook-of-${live.serverId}`), { removedAtMs: NOW_MS, secrets: [] })
    t.notOk('sealedUser' in (world.states.get(`webhook:hook-of-${live.serverId}`) as object))
    t.match(world.states.get(`webhook:hook-of-${test.serverId}`), { removedAtMs: null, sealedUser: 'u' })
    t.same(world.states.get(`webhooks:${live.serverId}`), [])
    t.match(world.states.get(`server:${live.serverId}`), { hasWebhooks: false, removedAtMs: NOW_MS, keys: [] })
    t.same(accountState(world, tenant).webhookServers, [webhookServers[1]])
    t.ok(world.items.has(`timers drop:hook-of-${live.serverId}`), 'what is queued for it is dropped')
  },
)
