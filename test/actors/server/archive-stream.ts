/** archive-stream - once and for good; never the default stream. */

import t from 'tap'
import { createStream } from '../../../src/actors/server/create-stream.ts'
import { archiveStream } from '../../../src/actors/server/patch-stream.ts'
import { namesKey } from '../../../src/state/keys.ts'
import { changeState, LIVE_KEY, makeItem, makeTenant, send } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20)

t.test(
  'archive-stream: takes no messages, keeps its name, frees the place of the inbound one [stream.archive]',
  async (t) => {
    const world = new World(NOW_MS)
    const tenant = makeTenant(world)
    const { serverId } = tenant.live
    const order = { accountId: tenant.accountId, serverId, keyHash: LIVE_KEY }
    for (const streamKind of ['broadcast', 'inbound'] as const) {
      const made = world.run(createStream, { ...order, streamKind, name: streamKind })
      const streamId = made.kind === 'stream' ? made.stream.streamId : ''
      const archived = world.run(archiveStream, { ...order, streamId })
      t.match(archived, { kind: 'stream', stream: { archivedAtMs: NOW_MS } })
      world.nowMs += 5
      t.same(world.run(archiveStream, { ...order, streamId }), archived, 'nothing changes')
      world.nowMs = NOW_MS
      const names = world.hash(namesKey(world.shard, tenant.accountId))
      t.equal(names.get(`stream/${serverId}/${streamKind}`), streamId)
      t.notOk(names.has(`inbound/${serverId}`))
      const expected = streamKind === 'inbound' ? 'stream_kind_not_allowed' : 'stream_archived'
      t.match(send(world, tenant, { messages: [makeItem({ streamId })] }), { code: expected })
    }
  },
)

t.test('archive-stream: refused in order [refusal.order]', async (t) => {
  const world = new World(NOW_MS)
  const { accountId, live, test } = makeTenant(world)
  changeState(world, 'account', accountId, { status: 'closed' })
  const order = { accountId, serverId: live.serverId, keyHash: LIVE_KEY, streamId: test.streamId }
  const code = (body: object = {}) => {
    const reply = world.run(archiveStream, { ...order, ...body })
    return reply.kind === 'refused' ? reply.code : reply.kind
  }
  t.equal(code({ keyHash: 'other' }), 'unauthorized')
  t.equal(code(), 'account_not_active')
  changeState(world, 'account', accountId, { status: 'paused' })
  t.equal(code(), 'not_found')
  t.equal(code({ streamId: live.streamId }), 'default_stream')
})
