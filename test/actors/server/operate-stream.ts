/** operate-stream - pause, resume and pace, each in the audit log. */

import t from 'tap'
import { operateStream, type StreamAct } from '../../../src/actors/server/operate-stream.ts'
import type { OperatorAct } from '../../../src/state/audit.ts'
import { streamOwner } from '../../../src/state/complaint-threshold.ts'
import { makeTenant, send } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20)
const BY: OperatorAct = { actor: 'token', act: 'pauseStream', note: 'why' }

t.test('operate-stream: paused, resumed with a new window, paced [operator.stream]', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const { streamId } = tenant.live
  const run = (order: StreamAct) => world.run(operateStream, { streamId, order, by: BY })
  world.counters.set(streamOwner(streamId), { hours: [[1, 2000, 9]] })
  t.match(run({ act: 'pause' }), { stream: { pausedAtMs: NOW_MS } })
  t.match(send(world, tenant), { code: 'stream_paused', extra: { streamId, pausedAtMs: NOW_MS } })
  world.nowMs += 1_000
  t.match(run({ act: 'pause' }), { stream: { pausedAtMs: NOW_MS } }, 'already so')
  t.match(world.counters.get(streamOwner(streamId)), { hours: [[1, 2000, 9]] })
  t.match(run({ act: 'resume' }), { stream: { pausedAtMs: null } })
  t.same(world.counters.get(streamOwner(streamId)), {})
  t.equal(send(world, tenant).kind, 'accepted')
  world.counters.set(streamOwner(streamId), { hours: [[1, 5, 0]] })
  run({ act: 'resume' })
  t.same(world.counters.get(streamOwner(streamId)), { hours: [[1, 5, 0]] }, 'a stream that runs keeps its window')
  t.match(run({ act: 'pace', pacePerMinute: 60 }), { stream: { pacePerMinute: 60 } })
  t.match(world.states.get(`stream:${streamId}`), { pacePerMinute: 60, pausedAtMs: null })
  t.match(run({ act: 'pace', pacePerMinute: null }), { stream: { pacePerMinute: null } })
  t.match(world.ops, [{ write: 'ZADD', args: [/^\d+$/, /"why"/] }, { write: 'PEXPIREAT' }])
})

t.test('operate-stream: no such stream', async (t) => {
  const world = new World(NOW_MS)
  const order = { act: 'pause' } as const
  t.match(world.run(operateStream, { streamId: 'none', order, by: BY }), { code: 'not_found' })
  t.same(world.ops, [])
})
