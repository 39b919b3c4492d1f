/** create-stream - a stream with its name and its place in the list, and the reasons for a refusal. */

import t from 'tap'
import { createStream } from '../../../src/actors/server/create-stream.ts'
import { namesKey, streamsKey } from '../../../src/state/keys.ts'
import { changeState, LIVE_KEY, makeTenant, TEST_KEY } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20)

t.test('create-stream: made, named and listed [stream.create]', async (t) => {
  const world = new World(NOW_MS)
  const { accountId, live } = makeTenant(world)
  const { serverId } = live
  const order = { accountId, serverId, keyHash: LIVE_KEY }
  const made = world.run(createStream, { ...order, streamKind: 'inbound', name: 'Support' })
  if (made.kind !== 'stream') return t.fail(made.code)
  const { streamId } = made.stream
  t.same(made.stream, {
    ...{ streamId, serverId, kind: 'inbound', name: 'Support', isDefault: false, createdAtMs: NOW_MS },
    ...{ archivedAtMs: null, pausedAtMs: null, contentRetentionDays: null },
  })
  t.same(world.states.get(`stream:${streamId}`), made.stream)
  const names = world.hash(namesKey(world.shard, accountId))
  t.equal(names.get(`stream/${serverId}/Support`), streamId)
  t.equal(names.get(`inbound/${serverId}`), streamId)
  t.same([...world.sorted(streamsKey(world.shard, serverId)).keys()].sort(), [live.streamId, streamId])
})

t.test('create-stream: refused, one fault after the other repaired [refusal.order]', async (t) => {
  const world = new World(NOW_MS)
  const { accountId, live, test } = makeTenant(world)
  const order = { accountId, serverId: live.serverId, keyHash: LIVE_KEY }
  const first = world.run(createStream, { ...order, streamKind: 'inbound', name: 'Taken' })
  const streamId = first.kind === 'stream' ? first.stream.streamId : ''
  const body = { ...order, streamKind: 'inbound', name: 'Taken' } as const
  const onTest = { ...body, serverId: test.serverId, keyHash: TEST_KEY }
  changeState(world, 'account', accountId, { status: 'pending' })
  t.match(world.run(createStream, { ...onTest, keyHash: LIVE_KEY }), { code: 'unauthorized' })
  t.match(world.run(createStream, onTest), { code: 'account_not_active' })
  t.match(world.run(createStream, body), { code: 'account_not_active' })
  t.equal(world.run(createStream, { ...body, streamKind: 'broadcast', name: 'News' }).kind, 'stream', 'open to all')
  changeState(world, 'account', accountId, { status: 'closed' })
  t.match(world.run(createStream, { ...body, streamKind: 'broadcast', name: 'More' }), { code: 'account_not_active' })
  changeState(world, 'account', accountId, { status: 'paused' })
  t.match(world.run(createStream, onTest), { code: 'stream_kind_not_allowed' })
  t.same(world.run(createStream, body), { kind: 'refused', code: 'stream_exists', extra: { streamId } })
  const other = world.run(createStream, { ...body, name: 'Other' })
  t.same(other, { kind: 'refused', code: 'inbound_stream_exists', extra: { streamId } })
  t.equal(world.ops.length, 0)
})
