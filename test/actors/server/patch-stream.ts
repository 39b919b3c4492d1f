/** patch-stream - a new name frees the old one; the days of an inbound stream. */

import t from 'tap'
import { createStream } from '../../../src/actors/server/create-stream.ts'
import { patchStream } from '../../../src/actors/server/patch-stream.ts'
import { namesKey } from '../../../src/state/keys.ts'
import { changeState, LIVE_KEY, makeTenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20)

t.test('patch-stream: name and days [stream.patch]', async (t) => {
  const world = new World(NOW_MS)
  const { accountId, live } = makeTenant(world)
  const order = { accountId, serverId: live.serverId, keyHash: LIVE_KEY }
  const made = world.run(createStream, { ...order, streamKind: 'inbound', name: 'Old' })
  const streamId = made.kind === 'stream' ? made.stream.streamId : ''
  const patch = (changes: object) => world.run(patchStream, { ...order, streamId, changes })
  t.match(patch({ name: 'New', contentRetentionDays: 7 }), { stream: { name: 'New', contentRetentionDays: 7 } })
  t.match(world.states.get(`stream:${streamId}`), { name: 'New', contentRetentionDays: 7 })
  const names = world.hash(namesKey(world.shard, accountId))
  t.equal(names.get(`stream/${live.serverId}/New`), streamId)
  t.notOk(names.has(`stream/${live.serverId}/Old`))
  t.match(patch({ name: 'New' }), { kind: 'stream' })
  t.match(patch({ contentRetentionDays: null }), { stream: { contentRetentionDays: null } })
  patch({})
  t.same(world.ops, [])
  const taken = patch({ name: 'Transactional' })
  t.same(taken, { kind: 'refused', code: 'stream_exists', extra: { streamId: live.streamId } })
})

t.test('patch-stream: refused in order [refusal.order]', async (t) => {
  const world = new World(NOW_MS)
  const { accountId, live, test } = makeTenant(world)
  changeState(world, 'account', accountId, { status: 'closed' })
  const order = { accountId, serverId: live.serverId, keyHash: LIVE_KEY, streamId: live.streamId }
  const changes = { contentRetentionDays: 5 }
  const code = (body: object) => {
    const reply = world.run(patchStream, { ...order, changes, ...body })
    return reply.kind === 'refused' ? reply.code : reply.kind
  }
  t.equal(code({ keyHash: 'other' }), 'unauthorized')
  t.equal(code({}), 'invalid_request')
  t.equal(code({ streamId: test.streamId }), 'account_not_active')
  t.equal(code({ changes: { name: 'x' } }), 'account_not_active')
  changeState(world, 'account', accountId, { status: 'active' })
  t.equal(code({ streamId: test.streamId }), 'not_found')
  t.equal(code({ changes: { name: 'x' } }), 'stream')
})
