/** begin-broadcast - a scheduled broadcast begins once, never early, and behind no other once its time has come. */
import t from 'tap'
import { createBroadcast } from '../../../src/actors/broadcast/create-broadcast.ts'
import { orderBroadcast } from '../../../src/actors/broadcast/order-broadcast.ts'
import { DAY_MS } from '../../../src/state/calendar.ts'
import {
  logged,
  makeBroadcastStream,
  pass,
  people,
  prepare,
  seen,
  submit,
} from '../../support/world/broadcast-world.ts'
import { LIVE_KEY, makeTenant, type Tenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const HOUR_MS = 3_600_000

function begin() {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  makeBroadcastStream(world, tenant, { pacePerMinute: 60_000 })
  return { world, tenant }
}

function schedule(world: World, tenant: Tenant, to: readonly string[], sendAtMs: number) {
  return world.run(createBroadcast, { ...prepare(world, tenant, to), sendAtMs })
}

function scheduled(world: World, tenant: Tenant, to: readonly string[], sendAtMs: number) {
  const reply = schedule(world, tenant, to, sendAtMs)
  if (reply.kind !== 'broadcast') throw new Error(`Broadcast was refused: ${reply.code}`)
  return reply.broadcast
}

const order = ({ accountId, live }: Tenant, broadcastId: string, what: 'cancel' | 'pause' | 'resume') =>
  ({ accountId, serverId: live.serverId, keyHash: LIVE_KEY, broadcastId, order: what }) as const

t.test('begin: nothing is released before its time, everything after it [broadcast.at]', async (t) => {
  const { world, tenant } = begin()
  const { broadcastId } = scheduled(world, tenant, people(30), NOW_MS + HOUR_MS)
  pass(world, HOUR_MS - 1_000, 10_000)
  t.equal(logged(world, tenant), 0)
  pass(world, 2_000)
  t.match(seen(world, broadcastId), { status: 'completed', released: 30 })
})

t.test('begin: others of its stream do not wait for it, nor it for them [broadcast.at]', async (t) => {
  const { world, tenant } = begin()
  const first = scheduled(world, tenant, people(10, 'later'), NOW_MS + HOUR_MS)
  const other = submit(world, tenant, people(100))
  pass(world, 3_000)
  t.equal(seen(world, other.broadcastId).status, 'completed')
  t.equal(seen(world, first.broadcastId).status, 'accepted')
  world.nowMs = NOW_MS + HOUR_MS - 500
  const large = submit(world, tenant, people(3_000, 'large'))
  pass(world, 1_500)
  t.equal(seen(world, first.broadcastId).status, 'completed', 'it takes turns with one that runs')
  t.equal(seen(world, large.broadcastId).status, 'processing')
})

t.test('begin: it is paused, resumed and cancelled before its time [broadcast.at]', async (t) => {
  const { world, tenant } = begin()
  const { broadcastId } = scheduled(world, tenant, people(10), NOW_MS + HOUR_MS)
  const gone = scheduled(world, tenant, people(10, 'gone'), NOW_MS + HOUR_MS)
  const other = submit(world, tenant, people(20, 'other'))
  world.run(orderBroadcast, order(tenant, broadcastId, 'pause'))
  world.run(orderBroadcast, order(tenant, broadcastId, 'resume'))
  world.run(orderBroadcast, order(tenant, gone.broadcastId, 'cancel'))
  pass(world, 2_000)
  t.equal(seen(world, other.broadcastId).status, 'completed', 'a resumed one is still behind the others')
  t.equal(logged(world, tenant), 20)
  pass(world, HOUR_MS, 10_000)
  t.match(seen(world, broadcastId), { status: 'completed', released: 10 })
  t.match(seen(world, gone.broadcastId), { status: 'cancelled', released: 0, failed: 10 })
})

t.test('begin: a broadcast that is paused at its time begins when it is resumed [broadcast.at]', async (t) => {
  const { world, tenant } = begin()
  const { broadcastId } = scheduled(world, tenant, people(10), NOW_MS + HOUR_MS)
  world.run(orderBroadcast, order(tenant, broadcastId, 'pause'))
  pass(world, 2 * HOUR_MS, 60_000)
  t.equal(logged(world, tenant), 0)
  world.run(orderBroadcast, order(tenant, broadcastId, 'resume'))
  pass(world, 2_000)
  t.equal(seen(world, broadcastId).status, 'completed')
})

t.test('begin: a clock that is set back begins nothing early [broadcast.at]', async (t) => {
  const { world, tenant } = begin()
  scheduled(world, tenant, people(10), NOW_MS + HOUR_MS)
  world.nowMs = NOW_MS + HOUR_MS - 1
  world.fireTimers()
  world.nowMs -= HOUR_MS / 2
  pass(world, HOUR_MS / 2 - 1_000, 10_000)
  t.equal(logged(world, tenant), 0)
  pass(world, 2_000)
  t.equal(logged(world, tenant), 10)
})

t.test('begin: the time has the same bounds as that of a message [broadcast.at]', async (t) => {
  const { world, tenant } = begin()
  const at = (sendAtMs: number) => schedule(world, tenant, people(1), sendAtMs)
  t.match(at(NOW_MS - 61_000), { kind: 'refused', code: 'invalid_request', extra: { sendAt: 'past' } })
  t.match(at(NOW_MS + 28 * DAY_MS), { kind: 'refused', code: 'invalid_request', extra: { sendAt: 'late' } })
  t.match(at(NOW_MS - 59_000), { kind: 'broadcast' })
  pass(world, 1_000)
  t.equal(logged(world, tenant), 1, 'a time that has just passed means now')
})
