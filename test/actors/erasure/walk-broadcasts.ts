/**
 * walk-broadcasts - an erased person waits in no broadcast, even while one is released, and no broadcast from the
 * person continues.
 */
import t from 'tap'
import { orderBroadcast } from '../../../src/actors/broadcast/order-broadcast.ts'
import { contentKey } from '../../../src/state/keys.ts'
import {
  bucketsLeft,
  logged,
  makeBroadcastStream,
  pass,
  people,
  releasedTo,
  seen,
  submit,
} from '../../support/world/broadcast-world.ts'
import { eraseNow, holdWalks, openWorld, order, stateOf, textsOf } from '../../support/world/erasure.ts'
import { LIVE_KEY, SENDING_DOMAIN } from '../../support/world/tenant.ts'

const MINUTE_MS = 60_000
const SENDER = `news@${SENDING_DOMAIN}`
const PERSON = 'p77@example.net'

function open(): ReturnType<typeof openWorld> {
  const opened = openWorld()
  makeBroadcastStream(opened.world, opened.tenant)
  return opened
}

t.test(
  'walk-broadcasts: the person leaves its bucket and counts as failed, and the sums are exact [erasure.broadcasts]',
  async (t) => {
    const { world, tenant } = open()
    const { broadcastId } = submit(world, tenant, people(100), 8)
    t.match(eraseNow(world, tenant, PERSON), { messages: 0 })
    t.notMatch(textsOf(world), PERSON)
    pass(world, MINUTE_MS)
    t.match(seen(world, broadcastId), { status: 'completed', released: 99, failed: 1, total: 100 })
    t.equal(logged(world, tenant), 99)
    t.notOk(releasedTo(world).includes(PERSON))
  },
)

t.test(
  'walk-broadcasts: a release between the order and the walk leaves the person out, and counts it once',
  async (t) => {
    const { world, tenant } = open()
    const { broadcastId } = submit(world, tenant, people(100), 1)
    const id = order(world, tenant, PERSON)
    // Its first step is held back while the broadcast continues.
    holdWalks(world, world.nowMs + MINUTE_MS)
    pass(world, 30_000)
    t.match(seen(world, broadcastId), { status: 'completed', released: 99, failed: 1 })
    pass(world, MINUTE_MS)
    t.match(stateOf(world, id), { messages: 0, completedAtMs: /\d/ })
    t.match(seen(world, broadcastId), { released: 99, failed: 1 })
    t.notMatch(textsOf(world), PERSON)
  },
)

t.test(
  'walk-broadcasts: a released recipient is erased from the log, and counts neither twice nor as failed',
  async (t) => {
    const { world, tenant } = open()
    const { broadcastId } = submit(world, tenant, people(100), 1)
    pass(world, 30_000)
    t.match(eraseNow(world, tenant, PERSON), { messages: 1 })
    t.match(seen(world, broadcastId), { status: 'completed', released: 100, failed: 0 })
    t.notMatch(textsOf(world), PERSON)
  },
)

t.test(
  'walk-broadcasts: open broadcasts from the person are cancelled, and their shared content is removed',
  async (t) => {
    const { world, tenant } = open()
    const done = submit(world, tenant, people(5, 'd'), 1)
    pass(world, MINUTE_MS)
    const running = submit(world, tenant, people(100, 'r'), 4)
    pass(world, 500)
    const before = seen(world, running.broadcastId).progress?.released ?? 0
    t.ok(before > 0 && before < 100, String(before))
    const id = order(world, tenant, SENDER)
    holdWalks(world, world.nowMs + 5_000)
    pass(world, 4_000)
    t.equal(seen(world, running.broadcastId).progress?.released, before, 'nothing is released from it meanwhile')
    pass(world, 10_000)
    t.match(stateOf(world, id), { messages: 0, completedAtMs: /\d/ })
    t.match(seen(world, running.broadcastId), { status: 'cancelled', released: before, failed: 100 - before })
    t.match(seen(world, done.broadcastId), { status: 'completed', released: 5 })
    for (const { contentId } of [done, running])
      for (const part of ['head', 'body']) t.equal(world.string(contentKey(world.shard, contentId, part, 0)), null)
    t.same(bucketsLeft(world, running), [])
    t.notMatch(textsOf(world), SENDER)
  },
)

t.test(
  'walk-broadcasts: a broadcast submitted after the order is later mail, from the person and to it [erasure.cut]',
  async (t) => {
    const { world, tenant } = open()
    order(world, tenant, PERSON)
    order(world, tenant, SENDER)
    const { broadcastId } = submit(world, tenant, people(100), 4)
    pass(world, MINUTE_MS)
    t.match(seen(world, broadcastId), { status: 'completed', released: 100, failed: 0 })
    t.ok(releasedTo(world).includes(PERSON))
  },
)

t.test('walk-broadcasts: a paused one is rewritten too', async (t) => {
  const { world, tenant } = open()
  const { broadcastId } = submit(world, tenant, people(100), 2)
  const body = { accountId: tenant.accountId, serverId: tenant.live.serverId, keyHash: LIVE_KEY, broadcastId }
  world.run(orderBroadcast, { ...body, order: 'pause' })
  eraseNow(world, tenant, PERSON)
  t.notMatch(textsOf(world), PERSON)
  t.match(seen(world, broadcastId).progress, { failed: 1, released: 0 })
  world.run(orderBroadcast, { ...body, order: 'resume' })
  pass(world, MINUTE_MS)
  t.match(seen(world, broadcastId), { status: 'completed', released: 99, failed: 1 })
})
