/**
 * release-broadcast - each recipient is released once, at the pace and fairly, and the counts are exact through every
 * interruption.
 */
import t from 'tap'
import { closeAccount, pauseAccount, resumeAccount } from '../../../src/actors/account/change-account.ts'
import { createBroadcast } from '../../../src/actors/broadcast/create-broadcast.ts'
import { endBroadcast } from '../../../src/actors/broadcast/end-broadcast.ts'
import { orderBroadcast } from '../../../src/actors/broadcast/order-broadcast.ts'
import { prepareAttempt } from '../../../src/actors/message/prepare-attempt.ts'
import { operateStream } from '../../../src/actors/server/operate-stream.ts'
import { removeServer } from '../../../src/actors/server/remove-server.ts'
import { addSuppressions } from '../../../src/actors/suppression/add-suppressions.ts'
import { DAY_MS } from '../../../src/state/calendar.ts'
import { broadcastingKey, contentKey, runningKey, sendingKey } from '../../../src/state/keys.ts'
import {
  bucketsLeft,
  logged,
  makeBroadcastStream,
  pass,
  people,
  prepare,
  releasedTo,
  seen,
  submit,
} from '../../support/world/broadcast-world.ts'
import { BY, hmacOf, LIVE_KEY, makeTenant, SENDING_DOMAIN, type Tenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'
import { seedWebhook, waiting } from '../../support/world/webhook-world.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)

function begin(pacePerMinute: number | null = 60_000) {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const streamId = makeBroadcastStream(world, tenant, { pacePerMinute })
  return { world, tenant, streamId }
}

const order = ({ accountId, live }: Tenant, broadcastId: string, what: 'cancel' | 'pause' | 'resume') =>
  ({ accountId, serverId: live.serverId, keyHash: LIVE_KEY, broadcastId, order: what }) as const
const sum = ({ released, failed }: { released: number; failed: number }) => released + failed

for (const [count, buckets] of [
  [1, 1],
  [49, 1],
  [50, 1],
  [51, 1],
  [1000, 8],
  [300, 256],
] as const)
  t.test(`release: ${count} in ${buckets} buckets, each once [broadcast.release]`, async (t) => {
    const { world, tenant, streamId } = begin()
    const to = people(count)
    const { broadcastId } = submit(world, tenant, to, buckets)
    pass(world, 30_000, 1000)
    t.same([...releasedTo(world)].sort(), [...to].sort())
    t.equal(logged(world, tenant), count)
    const ended = seen(world, broadcastId)
    t.match(ended, { status: 'completed', released: count, failed: 0, total: count, progress: null })
    t.same(bucketsLeft(world, ended), [])
    t.equal(world.sorted(runningKey(world.shard, streamId)).size, 0)
    t.equal(world.sorted(broadcastingKey(world.shard, tenant.accountId)).size, 0)
    t.equal((world.counters.get(`server:${tenant.live.serverId}`) as { openBroadcasts: number }).openBroadcasts, 0)
  })

t.test('release: at most the pace, and no burst after a stop [broadcast.pace]', async (t) => {
  const { world, tenant } = begin(600)
  submit(world, tenant, people(500))
  pass(world, 10_000)
  const first = logged(world, tenant)
  t.ok(first >= 100 && first <= 121, `${first} in 10 s at 600 a minute`)
  // The process is away for five minutes.
  world.nowMs += 300_000
  const before = logged(world, tenant)
  pass(world, 5_000)
  t.ok(logged(world, tenant) - before <= 71, `${logged(world, tenant) - before} in the 5 s after a stop`)
})

t.test('release: the default is 600 a minute [broadcast.pace]', async (t) => {
  const { world, tenant } = begin(null)
  submit(world, tenant, people(200))
  pass(world, 5_000)
  const count = logged(world, tenant)
  t.ok(count >= 50 && count <= 71, String(count))
})

t.test('release: a small broadcast does not wait for a large one [broadcast.fair]', async (t) => {
  const { world, tenant } = begin(6000)
  submit(world, tenant, people(3000))
  pass(world, 3_000)
  const small = submit(world, tenant, people(100, 'small'))
  pass(world, 4_000)
  t.equal(seen(world, small.broadcastId).status, 'completed')
})

t.test(
  'release: a recipient suppressed since submission is logged as suppressed and counts as failed [broadcast.late]',
  async (t) => {
    const { world, tenant, streamId } = begin()
    seedWebhook(world, tenant)
    const to = people(20)
    const { broadcastId } = submit(world, tenant, to)
    const recipients = to.slice(0, 5).map((address) => ({ address, hmac: hmacOf(address) }))
    const { accountId, live } = tenant
    world.run(addSuppressions, {
      accountId,
      serverId: live.serverId,
      orderedBy: 'server',
      keyHash: LIVE_KEY,
      streamId,
      recipients,
    })
    pass(world, 5_000)
    t.match(seen(world, broadcastId), { status: 'completed', released: 15, failed: 5, total: 20 })
    t.same([...releasedTo(world)].sort(), to.slice(5).sort())
    t.equal(logged(world, tenant), 20)
    t.equal(waiting(world).filter((one) => JSON.stringify(one).includes('bounced')).length, 5)
  },
)

t.test('release: cancel in the middle is exact [broadcast.cancel]', async (t) => {
  const { world, tenant } = begin(6000)
  const { broadcastId } = submit(world, tenant, people(1000), 4)
  pass(world, 3_000)
  const count = logged(world, tenant)
  t.ok(count > 100 && count < 1000)
  const reply = world.run(orderBroadcast, order(tenant, broadcastId, 'cancel'))
  t.match(reply, { broadcast: { status: 'cancelled', released: count, failed: 1000 - count } })
  pass(world, 30_000, 1000)
  t.equal(logged(world, tenant), count)
  const ended = seen(world, broadcastId)
  t.match(ended, { status: 'cancelled', released: count, failed: 1000 - count, progress: null })
  t.same(bucketsLeft(world, ended), [])
  t.match(world.run(orderBroadcast, order(tenant, broadcastId, 'cancel')), { code: 'broadcast_not_open' })
  t.match(world.run(orderBroadcast, order(tenant, broadcastId, 'resume')), { code: 'broadcast_not_open' })
})

t.test('release: a broadcast is paused and resumed while another one continues [broadcast.pause]', async (t) => {
  const { world, tenant } = begin(6000)
  const one = submit(world, tenant, people(1000))
  pass(world, 1_000)
  t.match(world.run(orderBroadcast, order(tenant, one.broadcastId, 'pause')), {
    broadcast: { status: 'processing', pausedAtMs: world.nowMs },
  })
  const two = submit(world, tenant, people(100, 'two'))
  const before = seen(world, one.broadcastId).progress?.released ?? 0
  pass(world, 5_000)
  t.equal(seen(world, two.broadcastId).status, 'completed')
  t.equal(seen(world, one.broadcastId).progress?.released, before)
  t.match(
    world.run(orderBroadcast, order(tenant, one.broadcastId, 'pause')),
    { broadcast: { status: 'processing' } },
    'already so',
  )
  world.run(orderBroadcast, order(tenant, one.broadcastId, 'resume'))
  pass(world, 20_000)
  t.match(seen(world, one.broadcastId), { status: 'completed', released: 1000, failed: 0, pausedAtMs: null })
})

t.test('release: a paused stream holds a broadcast, and resuming releases it [broadcast.release]', async (t) => {
  const { world, tenant, streamId } = begin(6000)
  const { broadcastId } = submit(world, tenant, people(500))
  pass(world, 1_000)
  world.run(operateStream, { streamId, order: { act: 'pause' }, by: BY })
  const count = logged(world, tenant)
  pass(world, 5_000)
  t.equal(logged(world, tenant), count)
  t.equal(seen(world, broadcastId).status, 'processing')
  world.run(operateStream, { streamId, order: { act: 'resume' }, by: BY })
  pass(world, 10_000)
  t.match(seen(world, broadcastId), { status: 'completed', released: 500 })
})

t.test('release: an account on hold holds it, a pause without hold does not [account.hold]', async (t) => {
  const { world, tenant } = begin(6000)
  const { accountId } = tenant
  const { broadcastId } = submit(world, tenant, people(600))
  pass(world, 1_000)
  world.run(pauseAccount, { accountId, hold: true, by: BY })
  const count = logged(world, tenant)
  pass(world, 5_000)
  t.equal(logged(world, tenant), count)
  world.run(pauseAccount, { accountId, hold: false, by: BY })
  pass(world, 1_000)
  t.ok(logged(world, tenant) > count)
  world.run(resumeAccount, { accountId, by: BY })
  pass(world, 10_000)
  t.match(seen(world, broadcastId), { status: 'completed', released: 600 })
})

t.test('release: a From domain that may not send holds it [broadcast.release]', async (t) => {
  const { world, tenant } = begin(6000)
  const { broadcastId } = submit(world, tenant, people(300))
  pass(world, 500)
  const key = sendingKey(world.shard, tenant.accountId)
  const row = world.hash(key).get(SENDING_DOMAIN) as string
  world.apply({ key, write: 'HDEL', args: [SENDING_DOMAIN] })
  const count = logged(world, tenant)
  pass(world, 3_000)
  t.equal(logged(world, tenant), count)
  t.equal(seen(world, broadcastId).endedAtMs, null)
  t.ok(row)
})

t.test('release: broadcasts of a closed account are cancelled [broadcast.ends]', async (t) => {
  const { world, tenant } = begin(600)
  const broadcasts = [submit(world, tenant, people(300)), submit(world, tenant, people(300, 'b'))]
  pass(world, 2_000)
  world.run(closeAccount, { accountId: tenant.accountId, by: BY })
  pass(world, 2_000)
  for (const { broadcastId } of broadcasts) {
    const ended = seen(world, broadcastId)
    t.equal(ended.status, 'cancelled')
    t.equal(sum(ended), 300)
    t.same(bucketsLeft(world, ended), [])
  }
})

t.test(
  'release: broadcasts of a closed account are cancelled even if their stream is paused [broadcast.ends]',
  async (t) => {
    const { world, tenant, streamId } = begin(600)
    const { broadcastId } = submit(world, tenant, people(300))
    pass(world, 2_000)
    world.run(operateStream, { streamId, order: { act: 'pause' }, by: BY })
    pass(world, 2_000)
    world.run(closeAccount, { accountId: tenant.accountId, by: BY })
    pass(world, 2_000)
    const ended = seen(world, broadcastId)
    t.equal(ended.status, 'cancelled')
    t.equal(sum(ended), 300)
  },
)

t.test('release: broadcasts of a closed account are cancelled even if they are paused [broadcast.ends]', async (t) => {
  const { world, tenant } = begin(600)
  const paused = ['a', 'b'].map((name) => submit(world, tenant, people(300, name)))
  for (const { broadcastId } of paused) world.run(orderBroadcast, order(tenant, broadcastId, 'pause'))
  const other = submit(world, tenant, people(10, 'c'))
  pass(world, 5_000)
  t.equal(seen(world, other.broadcastId).status, 'completed')
  t.equal(logged(world, tenant), 10)
  world.run(closeAccount, { accountId: tenant.accountId, by: BY })
  pass(world, 2_000)
  for (const { broadcastId } of paused) {
    t.match(seen(world, broadcastId), { status: 'cancelled', released: 0, failed: 300, pausedAtMs: null })
    t.same(bucketsLeft(world, seen(world, broadcastId)), [])
  }
})

t.test(
  'release: held back for days, it finds its attachments; they go when it has ended [broadcast.release]',
  async (t) => {
    const { world, tenant } = begin(6000)
    const body = prepare(world, tenant, people(500))
    const file = contentKey(world.shard, body.contentId, 'a0', 0)
    const isThere = () => world.keyNames().includes(file)
    world.apply({ key: file, write: 'SET', args: ['x', 'PXAT', String(world.nowMs + 60_000)] })
    const made = world.run(createBroadcast, { ...body, parts: [...body.parts, { part: 'a0', chunks: 1 }] })
    if (made.kind !== 'broadcast') throw new Error('Broadcast was refused')
    const { broadcastId } = made.broadcast
    pass(world, 1_000)
    world.run(orderBroadcast, order(tenant, broadcastId, 'pause'))
    world.nowMs += 5 * DAY_MS
    t.ok(isThere())
    world.run(orderBroadcast, order(tenant, broadcastId, 'resume'))
    pass(world, 20_000)
    t.match(seen(world, broadcastId), { status: 'completed', released: 500, failed: 0 })
    world.nowMs += 2 * DAY_MS
    t.ok(isThere(), 'while attempts are made')
    world.nowMs += DAY_MS
    t.notOk(isThere())
  },
)

t.test('release: after 30 days what is left fails, though it is paused [broadcast.ends]', async (t) => {
  const { world, tenant } = begin(6000)
  const { broadcastId } = submit(world, tenant, people(500))
  pass(world, 1_000)
  world.run(orderBroadcast, order(tenant, broadcastId, 'pause'))
  const { released } = seen(world, broadcastId).progress ?? { released: -1 }
  world.nowMs += 30 * DAY_MS
  world.fireTimers()
  const ended = seen(world, broadcastId)
  t.match(ended, { status: 'completed', released, failed: 500 - released })
  t.same(bucketsLeft(world, ended), [])
  world.run(endBroadcast, { item: `broadcast-end:${broadcastId}` })
  t.equal(seen(world, broadcastId).released, released, 'once')
})

t.test('release: a lost bucket fails only its own recipients, and the sum is exact [broadcast.release]', async (t) => {
  const { world, tenant } = begin()
  const broadcast = submit(world, tenant, people(200), 4)
  world.apply({ key: bucketsLeft(world, broadcast)[1] as string, write: 'UNLINK', args: [] })
  pass(world, 10_000, 1000)
  const ended = seen(world, broadcast.broadcastId)
  t.equal(ended.status, 'completed')
  t.equal(sum(ended), 200)
  t.ok(ended.failed > 0 && ended.failed < 100)
  t.equal(logged(world, tenant), ended.released)
})

t.test('release: later attempts find the message as the first had it [broadcast.release]', async (t) => {
  const { world, tenant } = begin()
  submit(world, tenant, people(1))
  pass(world, 1_000)
  const [due] = world.deliveries()
  const first = due?.job as { message: object }
  const later = world.run(prepareAttempt, { lane: due?.lane ?? '', item: due?.item ?? '' }) as { message: object }
  t.same(
    { ...later.message, content: null, hasReturnPath: null },
    { ...first.message, content: null, hasReturnPath: null },
  )
})

t.test('release: a server with an open broadcast is not removed [server.remove]', async (t) => {
  const { world, tenant } = begin(600)
  const { broadcastId } = submit(world, tenant, people(300))
  const { accountId, live } = tenant
  const remove = { accountId, serverId: live.serverId, orderedBy: 'operator', keyHash: '', by: BY } as const
  t.match(world.run(removeServer, remove), { code: 'server_in_use' })
  world.run(orderBroadcast, order(tenant, broadcastId, 'cancel'))
  t.match(world.run(removeServer, remove), { kind: 'removed' })
})

t.test('release: content that was not written ahead is no broadcast [broadcast.create]', async (t) => {
  const { world, tenant } = begin()
  const body = prepare(world, tenant, people(10))
  world.nowMs += 60_001
  t.throws(() => world.run(createBroadcast, body), /PEXPIREAT|no such key|missing/i)
})
